import type { ChallengeAction } from '../challenge.ts'
import type { ErrorReason } from '../errors.ts'
import { equalInConstantTime } from '../token.ts'
import type { Proof, ProvenIdentity } from '../wallet/proof.ts'

/** What an order is for: a session (`login`) or a proof artifact (`sign`). */
export type OrderKind = 'login' | 'sign'

/** Status of an order that is not over. */
type LiveStatus = 'created' | 'claimed' | 'waiting_user' | 'approved'

/** Status of an order that is over. */
type TerminalStatus = 'finalized' | 'rejected' | 'cancelled' | 'expired'

/** Status of an order. */
export type OrderStatus = LiveStatus | TerminalStatus

/** One step of an order's history. */
export interface OrderTransition {
  /** 1 for `created`, and 1 more for each later step. */
  readonly sequence: number
  readonly status: OrderStatus
  /** Epoch milliseconds. Never less than that of the step before, even if the clocks of the instances differ. */
  readonly at: number
}

/** A wallet's proof over an order's message that was found to hold, as it is stored. */
export interface StoredProof extends ProvenIdentity {
  /** Lower-case hex. */
  readonly signatureHex: string
}

/** Newest version of {@link OrderRecord} that this release reads, and the one that it writes. See record.ts. */
export const orderVersion = 1

/** An order as it is stored, as JSON. Times are epoch milliseconds. Contains hashes of tokens, and no token. */
export interface OrderRecord {
  readonly v: typeof orderVersion
  readonly orderId: string
  readonly kind: OrderKind
  /** Status of the last step of the history. */
  readonly status: OrderStatus
  /** Every step from `created` on, at most five. */
  readonly history: readonly OrderTransition[]

  /** The origin that started it. */
  readonly origin: string
  /** Name of the application that it was started at. Absent from the records of releases that did not store it. */
  readonly appName?: string
  /** The desktop that started it. Fields are empty if unknown. */
  readonly requester: { readonly ip: string; readonly userAgent: string }
  /** Id of the adapter that the proof must come from. Absent: any configured adapter. */
  readonly adapterId?: string
  readonly returnTo: string
  readonly displayTitle?: string
  readonly displaySummary?: string
  readonly payloadHash?: string

  readonly challengeId: string
  readonly nonce: string
  readonly issuedAt: number
  /** When it expires, unless it is approved by then: see {@link deadlineOf}. */
  readonly expiresAt: number
  /** The exact text for the wallet to sign, against which its proof is checked. */
  readonly message: string

  /** The digits that the desktop shows. */
  readonly confirmationCode: string
  /** Whether the phone's user has to enter them to approve. */
  readonly codeRequired: boolean
  /** Wrong codes so far. */
  readonly wrongCodes: number

  readonly claimTokenHash: string
  readonly desktopTokenHash: string
  /** From `claimed` on. */
  readonly challengeTokenHash?: string
  /** From `approved` on. */
  readonly proof?: StoredProof
  /** Of a finalized login order: the user, and the hash of the seed that the session's token is derived from. */
  readonly login?: OrderLogin
}

/** What a repeated finalize needs to get the same session. */
export interface OrderLogin {
  readonly userId: string
  readonly seedHash: string
}

/**
 * What a caller wants of an order, as far as it is known before any work is done: enough to decide whether it is still
 * possible, and whether it is a retry.
 */
export type OrderIntent =
  | {
      readonly type: 'claim'
      /**
       * Hash of the challenge token that this claim gets; then those that an earlier try by the same phone may have got
       * while the server had another secret.
       */
      readonly challengeTokenHashes: readonly [string, ...string[]]
    }
  | { readonly type: 'readChallenge' }
  | { readonly type: 'approve'; readonly proof: Proof }
  | { readonly type: 'reject' }
  | { readonly type: 'cancel' }
  | { readonly type: 'finalize' }
  | { readonly type: 'expire' }

/** An intent with everything needed to carry it out: the checked proof, the user. */
export type OrderCommand =
  | Exclude<OrderIntent, { type: 'approve' | 'finalize' }>
  | { readonly type: 'approve'; readonly proof: StoredProof; readonly confirmationCode?: string | undefined }
  | { readonly type: 'finalize'; readonly login?: OrderLogin }

/** The reasons for which an order refuses. */
export type OrderRefusal = Extract<ErrorReason, `ORDER_${string}` | `CONFIRMATION_CODE_${string}`>

/**
 * The result of a command. If `order` is another object than the one that was passed in, it must be stored before
 * anyone is told anything. A refusal can also change the order: it has expired, or a confirmation code was wrong.
 */
export interface Outcome {
  readonly order: OrderRecord
  readonly refusal?: OrderRefusal
}

/** Number of confirmation codes that can still be tried. The last wrong one rejects the order. */
export function codeTriesLeft(order: OrderRecord): number {
  return Math.max(0, maxWrongCodes - order.wrongCodes)
}

/** Least time in ms for an approved order to be finalized. */
const approvedLifeMs = 60_000
/** Time in ms for which a finalized order returns its result again to the same desktop. */
const finalizeRetryMs = 60_000
/** Time in ms for which an order that is over is remembered. */
const rememberedMs = 10 * 60_000
/** Number of wrong confirmation codes that rejects an order. */
const maxWrongCodes = 3

/** What the signature of an order of this kind is for. */
export function actionOf(kind: OrderKind): ChallengeAction {
  switch (kind) {
    case 'login':
      return 'auth.login'
    case 'sign':
      return 'order.approve'
  }
}

/** Whether an order in this status is over. */
export function isTerminal(status: OrderStatus): status is TerminalStatus {
  return Object.hasOwn(endings, status)
}

/** The newest step of an order's history. */
export function newestTransition(order: OrderRecord): OrderTransition {
  return order.history[order.history.length - 1] as OrderTransition
}

/** When a live order expires. An approved one keeps at least {@link approvedLifeMs} from its approval. */
export function deadlineOf(order: OrderRecord): number {
  if (order.status !== 'approved') return order.expiresAt
  return Math.max(order.expiresAt, newestTransition(order).at + approvedLifeMs)
}

/** When an order is forgotten unless it changes. From then on it counts as absent, even if a store still has it. */
export function forgottenAt(order: OrderRecord): number {
  return (isTerminal(order.status) ? newestTransition(order).at : deadlineOf(order)) + rememberedMs
}

/** What each status does with each intent: it `moves` on, gives the `same` answer as before, or refuses. */
const answers: Readonly<
  Record<Exclude<OrderIntent['type'], 'expire'>, Readonly<Record<LiveStatus, 'moves' | 'same' | OrderRefusal>>>
> = {
  claim: {
    created: 'moves',
    claimed: 'ORDER_ALREADY_CLAIMED',
    waiting_user: 'ORDER_ALREADY_CLAIMED',
    approved: 'ORDER_ALREADY_CLAIMED',
  },
  readChallenge: { created: 'ORDER_CHALLENGE_NOT_READ', claimed: 'moves', waiting_user: 'same', approved: 'same' },
  approve: {
    created: 'ORDER_CHALLENGE_NOT_READ',
    claimed: 'ORDER_CHALLENGE_NOT_READ',
    waiting_user: 'moves',
    approved: 'ORDER_ALREADY_APPROVED',
  },
  reject: {
    created: 'ORDER_CHALLENGE_NOT_READ',
    claimed: 'moves',
    waiting_user: 'moves',
    approved: 'ORDER_ALREADY_APPROVED',
  },
  cancel: { created: 'moves', claimed: 'moves', waiting_user: 'moves', approved: 'moves' },
  finalize: {
    created: 'ORDER_NOT_APPROVED',
    claimed: 'ORDER_NOT_APPROVED',
    waiting_user: 'ORDER_NOT_APPROVED',
    approved: 'moves',
  },
}

/** The refusal of a caller that comes too late. */
const endings: Readonly<Record<TerminalStatus, OrderRefusal>> = {
  finalized: 'ORDER_FINALIZED',
  rejected: 'ORDER_REJECTED',
  cancelled: 'ORDER_CANCELLED',
  expired: 'ORDER_EXPIRED',
}

/**
 * Carries a command out: the state machine of an order, all of it. Pure; `now` is epoch milliseconds.
 *
 * | status       | claim             | readChallenge  | approve            | reject           | cancel      | finalize       |
 * |--------------|-------------------|----------------|--------------------|------------------|-------------|----------------|
 * | created      | → claimed         | NOT_READ       | NOT_READ           | NOT_READ         | → cancelled | NOT_APPROVED   |
 * | claimed      | ALREADY_CLAIMED ¹ | → waiting_user | NOT_READ           | → rejected       | → cancelled | NOT_APPROVED   |
 * | waiting_user | ALREADY_CLAIMED ¹ | same           | → approved ²       | → rejected       | → cancelled | NOT_APPROVED   |
 * | approved     | ALREADY_CLAIMED ¹ | same           | ALREADY_APPROVED ³ | ALREADY_APPROVED | → cancelled | → finalized    |
 * | finalized    | FINALIZED         | FINALIZED      | FINALIZED ³        | FINALIZED        | FINALIZED   | FINALIZED ⁴    |
 * | rejected     | REJECTED          | REJECTED       | REJECTED           | same             | REJECTED    | REJECTED       |
 * | cancelled    | CANCELLED         | CANCELLED      | CANCELLED          | CANCELLED        | same        | CANCELLED      |
 * | expired      | EXPIRED           | EXPIRED        | EXPIRED            | EXPIRED          | EXPIRED     | EXPIRED        |
 *
 * Reasons are written without ORDER_ (NOT_READ is ORDER_CHALLENGE_NOT_READ); `same` answers as before and changes
 * nothing.
 *
 * 1. `same` for the phone that claimed it and comes with the same claim key.
 * 2. If a code is required: CONFIRMATION_CODE_REQUIRED without one; CONFIRMATION_CODE_WRONG for a wrong one, the third
 *    of which moves the order to rejected.
 * 3. `same` for the same proof: the desktop may finalize before the phone's retry arrives.
 * 4. `same` for {@link finalizeRetryMs} after it was finalized.
 *
 * Before any of this, for every command: an order that is {@link forgottenAt | forgotten} is ORDER_NOT_FOUND, and a
 * live one past its {@link deadlineOf | deadline} moves to expired, with the deadline as its time. `expire` does only
 * that, and no status refuses it.
 */
export function applyCommand(order: OrderRecord, command: OrderCommand, now: number): Outcome {
  return decideEarly(order, command, now) ?? advance(order, command, now)
}

/**
 * The outcome of an intent if the order's status and the time decide it. `undefined` if it would move the order on, so
 * that the work for its command (checking a proof, resolving the user) is worth doing.
 */
export function decideEarly(order: OrderRecord, intent: OrderIntent, now: number): Outcome | undefined {
  if (now >= forgottenAt(order)) return { order, refusal: 'ORDER_NOT_FOUND' }
  if (!isTerminal(order.status) && now >= deadlineOf(order)) {
    const expired = move(order, 'expired', deadlineOf(order))
    return intent.type === 'expire' ? { order: expired } : { order: expired, refusal: endings.expired }
  }
  if (intent.type === 'expire' || isRetry(order, intent, now)) return { order }
  const answer = isTerminal(order.status) ? endings[order.status] : answers[intent.type][order.status]
  if (answer === 'moves') return undefined
  return answer === 'same' ? { order } : { order, refusal: answer }
}

/** Whether the same caller has already carried out this intent. It then gets the same answer. */
function isRetry(order: OrderRecord, intent: OrderIntent, now: number): boolean {
  switch (intent.type) {
    case 'claim': {
      const { challengeTokenHash } = order
      return !isTerminal(order.status) && intent.challengeTokenHashes.some((hash) => hash === challengeTokenHash)
    }
    case 'approve':
      return (
        (order.status === 'approved' || order.status === 'finalized') &&
        order.proof !== undefined &&
        isSameProof(order.proof, intent.proof)
      )
    case 'reject':
      return order.status === 'rejected'
    case 'cancel':
      return order.status === 'cancelled'
    case 'finalize':
      return order.status === 'finalized' && now < newestTransition(order).at + finalizeRetryMs
    case 'readChallenge':
    case 'expire':
      return false
  }
}

/** Whether a proof is the one that was stored. What its sender left out cannot differ. */
function isSameProof(stored: StoredProof, { publicKeyHex, signatureHex, adapterId }: Proof): boolean {
  return (
    stored.signatureHex === signatureHex.toLowerCase() &&
    (publicKeyHex === '' || stored.publicKeyHex === publicKeyHex.toLowerCase()) &&
    (adapterId === undefined || stored.adapterId === adapterId)
  )
}

/** Carries out a command that moves the order on. */
function advance(order: OrderRecord, command: OrderCommand, now: number): Outcome {
  switch (command.type) {
    case 'claim':
      return { order: { ...move(order, 'claimed', now), challengeTokenHash: command.challengeTokenHashes[0] } }
    case 'readChallenge':
      return { order: move(order, 'waiting_user', now) }
    case 'approve':
      return (
        checkCode(order, command.confirmationCode, now) ?? {
          order: { ...move(order, 'approved', now), proof: command.proof },
        }
      )
    case 'reject':
      return { order: move(order, 'rejected', now) }
    case 'cancel':
      return { order: move(order, 'cancelled', now) }
    case 'finalize': {
      const finalized = move(order, 'finalized', now)
      return { order: command.login === undefined ? finalized : { ...finalized, login: command.login } }
    }
    case 'expire':
      return { order }
  }
}

function checkCode(order: OrderRecord, code: string | undefined, now: number): Outcome | undefined {
  if (!order.codeRequired) return undefined
  if (code === undefined) return { order, refusal: 'CONFIRMATION_CODE_REQUIRED' }
  if (equalInConstantTime(code, order.confirmationCode)) return undefined
  // Counted in the order itself, so that guesses made at the same time are all counted.
  const counted = { ...order, wrongCodes: order.wrongCodes + 1 }
  return {
    order: counted.wrongCodes >= maxWrongCodes ? move(counted, 'rejected', now) : counted,
    refusal: 'CONFIRMATION_CODE_WRONG',
  }
}

function move(order: OrderRecord, status: OrderStatus, now: number): OrderRecord {
  const { sequence, at } = newestTransition(order)
  return { ...order, status, history: [...order.history, { sequence: sequence + 1, status, at: Math.max(at, now) }] }
}
