import { given } from '../../shared/defined-fields.ts'
import type { ErrorReason } from '../../shared/errors.ts'
import type { OrderEvent, OrderStatus } from '../../shared/orders.ts'
import type { Proof } from '../wallet/wallet.ts'
import { rulesOf, withRecipe } from './kinds/recipes.ts'
import {
  newestTransition,
  type OrderApproval,
  type OrderLogin,
  type OrderRecord,
  type StoredProof,
  type TakeBackOutcome,
} from './order.ts'

/** Status of an order that is over. */
type TerminalStatus = 'finalized' | 'rejected' | 'cancelled' | 'expired'

/** Status of an order that is not over. */
type LiveStatus = Exclude<OrderStatus, TerminalStatus>

/** A return code as the desktop sent it, compared with the right one. */
export type ReturnCodeCheck = 'absent' | 'wrong' | 'right'

/**
 * What a call asks of an order, before any work for it is done: enough to decide whether the order still allows it, and
 * whether the call is a retry.
 */
export type OrderIntent =
  | {
      readonly type: 'claim' | 'redeem'
      /**
       * Hash of the challenge token that this call gets; then those that an earlier try by the same phone may have got
       * while the server had another secret.
       */
      readonly challengeTokenHashes: readonly [string, ...string[]]
    }
  /** By a session of the user whose inbox has the order. The hashes are as for a claim. */
  | {
      readonly type: 'claimFromInbox'
      readonly challengeTokenHashes: readonly [string, ...string[]]
      readonly sessionId: string
    }
  | { readonly type: 'preview' | 'readChallenge' | 'reject' | 'cancel' | 'expire' }
  /** Before and after an RPC is asked about a contract wallet's proof; after it only if it did not answer. */
  | { readonly type: 'beginContractCheck' | 'undoContractCheck' }
  | { readonly type: 'approve'; readonly proof: Proof }
  | FinalizeIntent
  | { readonly type: 'handOver'; readonly ticketHash: string; readonly expiresAt: number }
  | ({ readonly type: 'settleTakeBack' } & TakeBackOutcome)

interface FinalizeIntent {
  readonly type: 'finalize'
  readonly returnCode: ReturnCodeCheck
  /** Of an order for an inbox. */
  readonly finalizeKeyHash?: string | undefined
}

/** An intent with everything needed to carry it out: the checked proof, the user. */
export type OrderCommand =
  | Exclude<OrderIntent, { type: 'approve' | 'finalize' }>
  | { readonly type: 'approve'; readonly proof: StoredProof; readonly approval?: OrderApproval | undefined }
  | (FinalizeIntent & { readonly login?: OrderLogin })

/** The reasons for which an order refuses. */
export type OrderRefusal = Extract<
  ErrorReason,
  `ORDER_${string}` | `RETURN_CODE_${string}` | 'HANDOVER_INVALID' | 'RATE_LIMITED'
>

/**
 * The result of a command. If `order` is another object than the one that was passed in, it must be stored before the
 * caller is answered. A refusal can also change the order: it has expired, or a code was wrong.
 */
export interface OrderOutcome {
  readonly order: OrderRecord
  readonly refusal?: OrderRefusal
}

/** Number of return codes that can still be tried. The last wrong one rejects the order. */
export function codeTriesLeft({ wrongReturnCodes = 0 }: OrderRecord): number {
  return Math.max(0, maxWrongCodes - wrongReturnCodes)
}

/** Whether finalizing an approved or finalized order takes the return code. */
export function takesReturnCode(order: OrderRecord): boolean {
  return order.returnCodes === true && order.approval?.knownComputer !== true
}

/** Least time in ms for an approved order to be finalized. */
const approvedLifeMs = 60_000
/** The same if the user has to read the return code on the phone and to enter it. */
const codeEntryMs = 180_000
/** Lifetime of a ticket in ms. */
export const ticketLifeMs = 60_000
/** Time in ms for which a redeemed ticket gets the same answer again. */
const redeemRetryMs = 60_000
/** Most former challenge tokens that are kept: the first, and the last ones. */
const maxFormerTokens = 8
/** Time in ms for which a finalized order returns its result again to the same desktop. */
const finalizeRetryMs = 60_000
/** Time in ms for which an order that is over is remembered. */
const rememberedMs = 10 * 60_000
/** Number of wrong return codes that rejects an order. */
const maxWrongCodes = 3
/** Most times that an RPC answers about contract wallets' proofs for one order. */
const maxContractChecks = 3

/** Whether an order in this status is over. */
export function isTerminal(status: OrderStatus): status is TerminalStatus {
  return Object.hasOwn(endings, status)
}

/**
 * When a live order expires. An approved one keeps at least {@link approvedLifeMs} from its approval,
 * {@link codeEntryMs} if it takes a return code, or what its recipe says.
 */
export function deadlineOf(order: OrderRecord): number {
  if (order.status !== 'approved') return order.expiresAt
  const { finishMs = takesReturnCode(order) ? codeEntryMs : approvedLifeMs } = rulesOf(order)
  return Math.max(order.expiresAt, newestTransition(order).at + finishMs)
}

/** Time and tries that are left to finalize an approved order. */
export function deadlinesOf(order: OrderRecord): Pick<OrderEvent, 'finishBy' | 'triesLeft'> {
  if (order.status !== 'approved') return {}
  const finishBy = deadlineOf(order)
  return takesReturnCode(order) ? { finishBy, triesLeft: codeTriesLeft(order) } : { finishBy }
}

/** When an order is forgotten unless it changes. From then on it counts as absent, even if a store still has it. */
export function forgottenAt(order: OrderRecord): number {
  return (isTerminal(order.status) ? newestTransition(order).at : deadlineOf(order)) + rememberedMs
}

const unread = 'ORDER_CHALLENGE_NOT_READ'
const taken = 'ORDER_ALREADY_CLAIMED'
const approved = 'ORDER_ALREADY_APPROVED'
const pending = 'ORDER_NOT_APPROVED'

/** An order that is not claimed has no ticket. */
const handedOver = { created: unread, claimed: 'moves', waiting_user: 'moves', approved } as const

/** What each status does with each intent: it `moves` on, gives the `same` answer as before, or refuses. */
const answers: Readonly<
  Record<
    Exclude<OrderIntent['type'], 'expire' | 'settleTakeBack' | 'undoContractCheck'>,
    Readonly<Record<LiveStatus, 'moves' | 'same' | OrderRefusal>>
  >
> = {
  claim: { created: 'moves', claimed: taken, waiting_user: taken, approved: taken },
  claimFromInbox: { created: 'moves', claimed: 'moves', waiting_user: 'moves', approved },
  preview: { created: 'same', claimed: taken, waiting_user: taken, approved: taken },
  readChallenge: { created: unread, claimed: 'moves', waiting_user: 'same', approved: 'same' },
  approve: { created: unread, claimed: unread, waiting_user: 'moves', approved },
  beginContractCheck: { created: unread, claimed: unread, waiting_user: 'moves', approved },
  reject: { created: unread, claimed: 'moves', waiting_user: 'moves', approved: 'moves' },
  cancel: { created: 'moves', claimed: 'moves', waiting_user: 'moves', approved: 'moves' },
  finalize: { created: pending, claimed: pending, waiting_user: pending, approved: 'moves' },
  handOver: handedOver,
  redeem: handedOver,
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
 * | status       | claim     | readChallenge  | hand-over ⁵ | approve     | reject      | cancel      | finalize      |
 * |--------------|-----------|----------------|-------------|-------------|-------------|-------------|---------------|
 * | created      | → claimed | NOT_READ       | NOT_READ    | NOT_READ    | NOT_READ    | → cancelled | NOT_APPROVED  |
 * | claimed      | CLAIMED ¹ | → waiting_user | done        | NOT_READ    | → rejected  | → cancelled | NOT_APPROVED  |
 * | waiting_user | CLAIMED ¹ | same           | done        | → approved  | → rejected  | → cancelled | NOT_APPROVED  |
 * | approved     | CLAIMED ¹ | same           | APPROVED    | APPROVED ²  | → rejected  | → cancelled | → finalized ⁶ |
 * | finalized    | FINALIZED | FINALIZED      | FINALIZED   | FINALIZED ² | FINALIZED ⁴ | FINALIZED   | FINALIZED ³   |
 * | rejected     | REJECTED  | REJECTED       | REJECTED    | REJECTED    | same        | REJECTED    | REJECTED      |
 * | cancelled    | CANCELLED | CANCELLED      | CANCELLED   | CANCELLED   | CANCELLED   | same        | CANCELLED     |
 * | expired      | EXPIRED   | EXPIRED        | EXPIRED     | EXPIRED     | EXPIRED     | EXPIRED     | EXPIRED       |
 *
 * Reasons are written without ORDER_, CHALLENGE_ and ALREADY_: NOT_READ is ORDER_CHALLENGE_NOT_READ, CLAIMED and
 * APPROVED are ORDER_ALREADY_CLAIMED and ORDER_ALREADY_APPROVED. `same` answers as before and changes nothing.
 *
 * 1. `same` for the phone that claimed it and comes with the same claim key.
 * 2. `same` for the same proof: the desktop may finalize before the phone's retry arrives.
 * 3. `same` for {@link finalizeRetryMs} after it was finalized, with the rules of 6, and until a third wrong return
 *    code; for an inbox, for the same finalize key, until it is forgotten. REJECTED once it is taken back.
 * 4. A login or link order is taken back: it stays finalized, and its session is to be ended, or its wallet unlinked.
 *    `same` if it is taken back already.
 * 5. Both making and redeeming a ticket. Before the status of the order counts, a ticket that is used or too old is
 *    HANDOVER_INVALID. `same` for {@link redeemRetryMs} for the browser that redeemed it and comes with the same claim
 *    key.
 * 6. If it takes a return code: RETURN_CODE_REQUIRED without one; RETURN_CODE_WRONG for a wrong one, the third of which
 *    moves the order to rejected.
 *
 * `preview` has no column: it answers for a created order, changes nothing, and refuses as claim does, also the phone
 * that claimed it.
 *
 * `claimFromInbox` is claim for orders for an inbox. In claimed and waiting_user it replaces the challenge token and
 * voids the ticket, and the status stays; approved is ALREADY_APPROVED. With the claim key of a claim it is `same`.
 *
 * A part of approve, with no column of its own: `beginContractCheck`, before an RPC is asked about a contract wallet's
 * proof, answers as an approve with a proof that is not stored, counts in waiting_user, and is RATE_LIMITED from
 * {@link maxContractChecks} on. `undoContractCheck`, after an RPC that did not answer, takes one off in waiting_user;
 * nothing else changes, and nothing refuses it. `settleTakeBack` has no column either: it changes an order whose
 * take-back is not settled, and no other.
 *
 * Before any of this, for every command: an order that is {@link forgottenAt | forgotten} is ORDER_NOT_FOUND, and a
 * live one past its {@link deadlineOf | deadline} moves to expired, with the deadline as its time. `expire` does only
 * that, and no status refuses it.
 */
export function applyCommand(order: OrderRecord, command: OrderCommand, now: number): OrderOutcome {
  return decideEarly(order, command, now) ?? advance(order, command, now)
}

/**
 * The outcome of an intent if the order's status and the time decide it. `undefined` if it would move the order on, so
 * that the work for its command (checking a proof, resolving the user) is worth doing.
 */
export function decideEarly(order: OrderRecord, intent: OrderIntent, now: number): OrderOutcome | undefined {
  if (now >= forgottenAt(order)) return { order, refusal: 'ORDER_NOT_FOUND' }
  if (!isTerminal(order.status) && now >= deadlineOf(order)) {
    // The same answer as later, when the expiry is stored.
    return decideEarly(move(order, 'expired', deadlineOf(order)), intent, now)
  }
  if (intent.type === 'expire') return { order }
  if (intent.type === 'settleTakeBack') return isUnsettled(order) ? undefined : { order }
  if (intent.type === 'undoContractCheck') return order.status === 'waiting_user' ? undefined : { order }
  if (order.takenBack !== undefined && intent.type === 'finalize') return { order, refusal: 'ORDER_REJECTED' }
  const codeOutcome = intent.type === 'finalize' ? checkReturnCode(order, intent, now) : undefined
  if (codeOutcome !== undefined) return codeOutcome
  if (isRetry(order, intent, now)) return { order }
  if (intent.type === 'redeem' && !isRedeemable(order, now)) return { order, refusal: 'HANDOVER_INVALID' }
  if (intent.type === 'reject' && canBeTakenBack(order)) return undefined
  const answer = isTerminal(order.status) ? endings[order.status] : answers[intent.type][order.status]
  if (answer === 'moves' && intent.type === 'beginContractCheck' && (order.contractChecks ?? 0) >= maxContractChecks) {
    return { order, refusal: 'RATE_LIMITED' }
  }
  if (answer === 'moves') return undefined
  return answer === 'same' ? { order } : { order, refusal: answer }
}

/** Whether a desktop that finalized the order gets the result again, as far as time and finalize key decide. */
function isFinalizeRetry(order: OrderRecord, { finalizeKeyHash }: FinalizeIntent, now: number): boolean {
  if (order.status !== 'finalized') return false
  if (rulesOf(order).takesFinalizeKey) return order.finalizeKeyHash === finalizeKeyHash
  return now < newestTransition(order).at + finalizeRetryMs && codeTriesLeft(order) > 0
}

/** A ticket is good for one use. */
function isRedeemable({ handOver }: OrderRecord, now: number): boolean {
  return handOver !== undefined && handOver.redeemedAt === undefined && now < handOver.expiresAt
}

/** Whether the order is taken back, and nothing is known of what it had made yet. */
export function isUnsettled({ takenBack }: OrderRecord): boolean {
  return takenBack !== undefined && Object.keys(takenBack).length === 0
}

/** Whether the order has made a session or linked a wallet, or is about to, and is not taken back. */
function canBeTakenBack(order: OrderRecord): boolean {
  const { status, takenBack } = order
  return (
    status === 'finalized' && takenBack === undefined && withRecipe(order, ({ takeBack }) => takeBack !== undefined)
  )
}

/** Whether the same caller has already carried out this intent. It then gets the same answer. */
function isRetry(order: OrderRecord, intent: OrderIntent, now: number): boolean {
  switch (intent.type) {
    case 'claim':
    case 'claimFromInbox':
      return !isTerminal(order.status) && intent.challengeTokenHashes.some((hash) => isOfPhone(order, hash))
    case 'redeem': {
      const { status, challengeTokenHash = '', handOver } = order
      const until = (handOver?.redeemedAt ?? Number.NEGATIVE_INFINITY) + redeemRetryMs
      return !isTerminal(status) && now < until && intent.challengeTokenHashes.includes(challengeTokenHash)
    }
    case 'approve': {
      const { status, proof } = order
      return (
        (status === 'approved' || status === 'finalized') && proof !== undefined && isSameProof(proof, intent.proof)
      )
    }
    case 'reject':
      return order.status === 'rejected' || order.takenBack !== undefined
    case 'cancel':
      return order.status === 'cancelled'
    case 'finalize':
      return isFinalizeRetry(order, intent, now)
    default:
      return false
  }
}

/** Whether a challenge token is the phone's, or that of a browser which handed the order over. */
function isOfPhone({ challengeTokenHash, formerTokenHashes = [] }: OrderRecord, hash: string): boolean {
  return hash === challengeTokenHash || formerTokenHashes.includes(hash)
}

/**
 * Whether a proof is the one that was stored. What its sender left out cannot differ; a key that is not stored was
 * checked.
 */
function isSameProof(stored: StoredProof, { publicKeyHex, signatureHex, adapterId }: Proof): boolean {
  return (
    oneSpelling(stored.signatureHex) === oneSpelling(signatureHex) &&
    (publicKeyHex === '' || stored.publicKeyHex === '' || stored.publicKeyHex === publicKeyHex.toLowerCase()) &&
    (adapterId === undefined || stored.adapterId === adapterId)
  )
}

/** A signature in one of its spellings: of 65 bytes r‖s‖v, the v of 27 and 28 is also written as 0 and 1. */
function oneSpelling(signatureHex: string): string {
  const hex = signatureHex.toLowerCase()
  return hex.length === 130 ? hex.replace(/00$/, '1b').replace(/01$/, '1c') : hex
}

/** Carries out a command that moves the order on. */
function advance(order: OrderRecord, command: OrderCommand, now: number): OrderOutcome {
  switch (command.type) {
    case 'claim':
      return { order: { ...move(order, 'claimed', now), challengeTokenHash: command.challengeTokenHashes[0] } }
    case 'claimFromInbox': {
      // A ticket of the browser before would lead to a token that approves.
      const { handOver: _handOver, ...claimed } = order.status === 'created' ? move(order, 'claimed', now) : order
      return { order: withPhone(claimed, command.challengeTokenHashes[0], command.sessionId) }
    }
    case 'readChallenge':
      return { order: move(order, 'waiting_user', now) }
    case 'approve': {
      const { proof, approval } = command
      return { order: { ...move(order, 'approved', now), proof, ...given({ approval }) } }
    }
    case 'beginContractCheck':
      // Counted in the order itself, so that checks made at the same time are all counted.
      return { order: { ...order, contractChecks: (order.contractChecks ?? 0) + 1 } }
    case 'undoContractCheck':
      return { order: { ...order, contractChecks: Math.max(0, (order.contractChecks ?? 0) - 1) } }
    case 'reject':
      // The status stays: the desktop has been shown it.
      return { order: order.status === 'finalized' ? { ...order, takenBack: {} } : move(order, 'rejected', now) }
    case 'settleTakeBack': {
      const { sessionEnded, walletUnlinked } = command
      return { order: { ...order, takenBack: given({ sessionEnded, walletUnlinked }) } }
    }
    case 'handOver':
      return { order: { ...order, handOver: { ticketHash: command.ticketHash, expiresAt: command.expiresAt } } }
    case 'redeem': {
      const handOver = order.handOver && { ...order.handOver, redeemedAt: now }
      return { order: { ...withPhone(order, command.challengeTokenHashes[0]), ...given({ handOver }) } }
    }
    case 'cancel':
      return { order: move(order, 'cancelled', now) }
    case 'finalize': {
      const { login, finalizeKeyHash } = command
      return { order: { ...move(order, 'finalized', now), ...given({ login, finalizeKeyHash }) } }
    }
    case 'preview':
    case 'expire':
      return { order }
  }
}

/**
 * An order with another challenge token. Former tokens can only reject, and take back. In an inbox, a token belongs to
 * a session; after a hand-over, to the session of the token before it.
 */
function withPhone(order: OrderRecord, challengeTokenHash: string, sessionId?: string): OrderRecord {
  const { challengeTokenHash: before, formerTokenHashes = [], claimSessions = {} } = order
  const former = before === undefined ? [] : [...formerTokenHashes, before]
  const kept = former.length > maxFormerTokens ? [former[0] as string, ...former.slice(2)] : former
  const session = sessionId ?? (before === undefined ? undefined : claimSessions[before])
  const sessions = Object.entries(claimSessions).filter(([hash]) => kept.includes(hash))
  return {
    ...order,
    challengeTokenHash,
    ...(before === undefined ? {} : { formerTokenHashes: kept }),
    ...(session === undefined
      ? {}
      : { claimSessions: Object.fromEntries([...sessions, [challengeTokenHash, session]]) }),
  }
}

/** Outcome of a finalize that its return code decides; `undefined` if no code is needed, or the code is right. */
function checkReturnCode(order: OrderRecord, intent: FinalizeIntent, now: number): OrderOutcome | undefined {
  const { returnCode } = intent
  const looked = order.status === 'approved' || isFinalizeRetry(order, intent, now)
  if (!looked || !takesReturnCode(order) || returnCode === 'right') return undefined
  if (returnCode === 'absent') return { order, refusal: 'RETURN_CODE_REQUIRED' }
  // Counted in the order itself, so that guesses made at the same time are all counted.
  const counted = { ...order, wrongReturnCodes: (order.wrongReturnCodes ?? 0) + 1 }
  const ended = order.status === 'approved' && codeTriesLeft(counted) === 0
  return { order: ended ? move(counted, 'rejected', now) : counted, refusal: 'RETURN_CODE_WRONG' }
}

function move(order: OrderRecord, status: OrderStatus, now: number): OrderRecord {
  const { sequence, at } = newestTransition(order)
  return { ...order, status, history: [...order.history, { sequence: sequence + 1, status, at: Math.max(at, now) }] }
}
