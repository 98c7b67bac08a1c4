import type { ErrorReason } from './errors.ts'
import type { ProvenIdentity } from './host/host.ts'
import { equalInConstantTime } from './token.ts'

/** What an order is for: a session (`login`) or a proof artifact (`sign`). */
export type OrderKind = 'login' | 'sign'

/** Where an order stands before it is over. */
type LiveStatus = 'created' | 'claimed' | 'waiting_user' | 'approved'

/** What an order can end in. */
type TerminalStatus = 'finalized' | 'rejected' | 'cancelled' | 'expired'

/** Where an order stands. */
export type OrderStatus = LiveStatus | TerminalStatus

/** One step of an order's history. */
export interface OrderTransition {
  /** 1 for `created`, then one more each. */
  readonly sequence: number
  readonly status: OrderStatus
  /** Epoch milliseconds; never before that of the step before, whatever the clocks of the instances say. */
  readonly at: number
}

/** A wallet's proof over an order's message, as it was found to hold. */
export interface OrderProof extends ProvenIdentity {
  /** 64 bytes, lower-case hex. */
  readonly signatureHex: string
}

/** An order as it is stored, as JSON. Times are epoch milliseconds. No token is in it, only hashes. */
export interface OrderRecord {
  /** Version of this shape. */
  readonly v: 1
  readonly orderId: string
  readonly kind: OrderKind
  /** That of the history's last step. */
  readonly status: OrderStatus
  /** Every step from `created` on, at most five. */
  readonly history: readonly OrderTransition[]

  /** The origin that started it. */
  readonly origin: string
  /** The desktop that started it; empty where unknown. */
  readonly requester: { readonly ip: string; readonly userAgent: string }
  /** The adapter that the proof must come from; absent when any configured one will do. */
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
  /** The exact text that the wallet is asked to sign and that its proof is checked against. */
  readonly message: string

  /** The digits that the desktop shows. */
  readonly confirmationCode: string
  /** Whether approving needs them. */
  readonly codeRequired: boolean
  /** Wrong codes so far. */
  readonly wrongCodes: number

  readonly claimTokenHash: string
  readonly desktopTokenHash: string
  /** From `claimed` on. */
  readonly challengeTokenHash?: string
  /** From `approved` on. */
  readonly proof?: OrderProof
  /** Of a finalized login order: whom the session is for, and the hash of the seed that its token is derived from. */
  readonly login?: OrderLogin
}

/** What a repeated finalize needs to get the same session. */
export interface OrderLogin {
  readonly userId: string
  readonly seedHash: string
}

/**
 * What somebody wants of an order, as far as it is known before any work is done for it: enough to see whether it can still
 * be had, and whether it is a retry.
 */
export type OrderIntent =
  | {
      readonly type: 'claim'
      /**
       * Hash of the challenge token that this claim would get. Behind it those that an earlier try by the same phone may
       * have got, when the server's secret was another.
       */
      readonly challengeTokenHashes: readonly [string, ...string[]]
    }
  | { readonly type: 'read' }
  | { readonly type: 'approve'; readonly proof: Pick<OrderProof, 'publicKeyHex' | 'signatureHex'> }
  | { readonly type: 'reject' }
  | { readonly type: 'cancel' }
  | { readonly type: 'finalize' }
  | { readonly type: 'expire' }

/** An intent with all that carrying it out takes: the proof checked, the user known. */
export type OrderCommand =
  | Exclude<OrderIntent, { type: 'approve' | 'finalize' }>
  | { readonly type: 'approve'; readonly proof: OrderProof; readonly confirmationCode?: string | undefined }
  | { readonly type: 'finalize'; readonly login?: OrderLogin }

/** The reasons for which an order refuses. */
export type OrderRefusal = Extract<ErrorReason, `ORDER_${string}` | `CONFIRMATION_CODE_${string}`>

/**
 * What comes of a command. When `order` is another object than the one that went in, it is to be stored before anyone is told
 * anything: a refusal can change an order, too (it has expired; a confirmation code was wrong).
 */
export interface Outcome {
  readonly order: OrderRecord
  readonly refusal?: OrderRefusal
}

/** An approved order has at least this long to be finalized, milliseconds. */
const approvedLifeMs = 60_000
/** A finalized order hands its result to the same desktop again for this long, milliseconds. */
const finalizeRetryMs = 60_000
/** An order that is over is remembered for this long, milliseconds. */
const rememberedMs = 10 * 60_000
/** This many wrong confirmation codes reject an order. */
const maxWrongCodes = 3

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

/** When an order is forgotten, as things stand. From then on it is as if it had never been, even if a store still has it. */
export function forgottenAt(order: OrderRecord): number {
  return (isTerminal(order.status) ? newestTransition(order).at : deadlineOf(order)) + rememberedMs
}

/** How each status answers each intent: `moves` on, gives the `same` answer as before, or refuses. */
const answers: Readonly<
  Record<Exclude<OrderIntent['type'], 'expire'>, Readonly<Record<LiveStatus, 'moves' | 'same' | OrderRefusal>>>
> = {
  claim: {
    created: 'moves',
    claimed: 'ORDER_ALREADY_CLAIMED',
    waiting_user: 'ORDER_ALREADY_CLAIMED',
    approved: 'ORDER_ALREADY_CLAIMED',
  },
  read: { created: 'ORDER_CHALLENGE_NOT_READ', claimed: 'moves', waiting_user: 'same', approved: 'same' },
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

/** What whoever comes too late learns. */
const endings: Readonly<Record<TerminalStatus, OrderRefusal>> = {
  finalized: 'ORDER_FINALIZED',
  rejected: 'ORDER_REJECTED',
  cancelled: 'ORDER_CANCELLED',
  expired: 'ORDER_EXPIRED',
}

/**
 * Carries a command out: the state machine of an order, all of it. Pure; `now` is epoch milliseconds.
 *
 * | status       | claim             | read           | approve            | reject           | cancel      | finalize       |
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
 * Reasons are written without ORDER_ (NOT_READ is ORDER_CHALLENGE_NOT_READ); `same` answers as before and changes nothing.
 *
 * 1. `same` for the phone that claimed it and comes with the same claim key.
 * 2. Where a code is required: CONFIRMATION_CODE_REQUIRED without one; CONFIRMATION_CODE_WRONG for a wrong one, the third of
 *    which moves the order to rejected.
 * 3. `same` for the same proof: the desktop may well finalize before the phone's retry comes.
 * 4. `same` for {@link finalizeRetryMs} from its finalizing.
 *
 * Before any of this, whatever the command: an order that is {@link forgottenAt | forgotten} is ORDER_NOT_FOUND, and a live
 * one past its {@link deadlineOf | deadline} moves to expired, at the deadline. `expire` does that and nothing else; it is
 * never refused for what it finds.
 */
export function applyCommand(order: OrderRecord, command: OrderCommand, now: number): Outcome {
  return decideEarly(order, command, now) ?? advance(order, command, now)
}

/**
 * What comes of an intent by the order's status and the time alone; `undefined` when it would move the order on, and so is
 * worth the work that its command takes (checking a proof, asking for the user).
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

/** Whether an intent is one that was carried out already, by the same caller: what `same` means beyond the live statuses. */
function isRetry(order: OrderRecord, intent: OrderIntent, now: number): boolean {
  switch (intent.type) {
    case 'claim': {
      const { challengeTokenHash } = order
      return !isTerminal(order.status) && intent.challengeTokenHashes.some((hash) => hash === challengeTokenHash)
    }
    case 'approve':
      return (
        (order.status === 'approved' || order.status === 'finalized') &&
        order.proof?.publicKeyHex === intent.proof.publicKeyHex &&
        order.proof.signatureHex === intent.proof.signatureHex
      )
    case 'reject':
      return order.status === 'rejected'
    case 'cancel':
      return order.status === 'cancelled'
    case 'finalize':
      return order.status === 'finalized' && now < newestTransition(order).at + finalizeRetryMs
    default:
      return false
  }
}

/** Carries out a command that the order's status lets move it on. */
function advance(order: OrderRecord, command: OrderCommand, now: number): Outcome {
  switch (command.type) {
    case 'claim':
      return { order: { ...move(order, 'claimed', now), challengeTokenHash: command.challengeTokenHashes[0] } }
    case 'read':
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
  // Counted in the order itself, so that of guesses made at the same time none goes uncounted.
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
