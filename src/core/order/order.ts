import { internalError } from '../../shared/errors.ts'
import type { OrderChallenge, OrderKind, OrderStatus } from '../../shared/orders.ts'
import type { PersonKey } from '../users/people.ts'
import type { ProvenIdentity } from '../wallet/wallet.ts'

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
  /** The exact text that was signed, if it is not the order's message: one that names the account. */
  readonly message?: string
}

/** What a desktop asks for, as the phone shows it. */
export const contentFields = [
  'adapterId',
  'displayTitle',
  'displaySummary',
  'payloadHash',
  'payload',
  'payloadAsWritten',
  'expectedPublicKeyHex',
  'expectedAddress',
] as const satisfies readonly (keyof OrderChallenge)[]

/**
 * An order as it is stored, as JSON, whatever its recipe. Times are epoch milliseconds. Contains hashes of tokens, and
 * no token.
 */
interface StoredOrder extends Pick<OrderChallenge, (typeof contentFields)[number]> {
  readonly orderId: string
  readonly kind: OrderKind
  /** Status of the last step of the history. */
  readonly status: OrderStatus
  /** Every step from `created` on, at most five. */
  readonly history: readonly OrderTransition[]

  /** The origin that started it. */
  readonly origin: string
  /** Name of the application that it was started at. */
  readonly appName: string
  /** The desktop that started it. */
  readonly requester: StoredRequester
  readonly returnTo: string
  /** Public key of the computer, which every finalize proves possession of. */
  readonly computerKey?: string

  readonly challengeId: string
  readonly nonce: string
  readonly issuedAt: number
  /** When it expires, unless it is approved by then: see {@link deadlineOf}. */
  readonly expiresAt: number
  /** The exact text for the wallet to sign, against which its proof is checked. */
  readonly message: string

  /** The digits that the desktop shows. Empty with return codes. */
  readonly confirmationCode: string
  /** Whether the desktop's user has to enter the digits that the phone shows, unless the computer is known. */
  readonly returnCodes?: true
  /** Wrong return codes so far. */
  readonly wrongReturnCodes?: number
  /** Proofs of contract wallets that an RPC was asked about, or is being asked about. */
  readonly contractChecks?: number

  /** Absent for an inbox: no token claims the order, but a session of its user. */
  readonly claimTokenHash?: string
  readonly desktopTokenHash: string
  /** From `claimed` on. */
  readonly challengeTokenHash?: string
  /** Of browsers that another one took the order over from, oldest first. They can only reject, and take back. */
  readonly formerTokenHashes?: readonly string[]
  /** Of an order for an inbox: ids of the sessions that claimed it, by the hashes of the tokens that they got. */
  readonly claimSessions?: Readonly<Record<string, string>>
  /** The newest ticket to hand the order over. */
  readonly handOver?: { readonly ticketHash: string; readonly expiresAt: number; readonly redeemedAt?: number }
  /** From `approved` on. */
  readonly proof?: StoredProof
  /** From `approved` on, with return codes. */
  readonly approval?: OrderApproval
  /** Of a finalized login order. */
  readonly login?: OrderLogin
  /** Of a link order: the user who started it. */
  readonly starter?: OrderStarter
  /** Of an order for an inbox: id of the user who can approve it. */
  readonly inboxUserId?: string
  /** Of a finalized order for an inbox: hash of the key that gets its result again. */
  readonly finalizeKeyHash?: string
  /** Present once the phone has taken the finalized login or link order back. */
  readonly takenBack?: TakeBackOutcome
}

/** Records of orders by the recipe that they follow. One for an inbox is stored, and known to clients, as kind sign. */
export interface OrdersByRecipe {
  readonly login: StoredOrder & { readonly kind: 'login' }
  readonly sign: StoredOrder & { readonly kind: 'sign'; readonly inboxUserId?: undefined }
  readonly inbox: StoredOrder & { readonly kind: 'sign'; readonly inboxUserId: string }
  readonly link: StoredOrder & { readonly kind: 'link'; readonly starter: OrderStarter }
}

/** Name of a recipe. */
export type RecipeName = keyof OrdersByRecipe

/** A stored order. */
export type OrderRecord = OrdersByRecipe[RecipeName]

/** The user who adds a wallet by an order, and the session that started it and has to finalize it. */
export interface OrderStarter extends PersonKey {
  readonly sessionId: string
}

/** Outcome of taking a finalized order back. All fields are absent until it is known. */
export interface TakeBackOutcome {
  /** Of a login order: whether the session was still live. */
  readonly sessionEnded?: boolean
  /** Of a link order: whether the wallet was unlinked. */
  readonly walletUnlinked?: boolean
}

/** The desktop that started an order. `ip` and `userAgent` are empty if unknown. */
export interface StoredRequester {
  readonly ip: string
  readonly userAgent: string
  /** The network that its address is in, if it can be compared. */
  readonly network?: string
  /** Whether the application's backend described it, which had a start key. */
  readonly startedWithKey?: true
  /** Name of that key, if it has one. */
  readonly startedBy?: string
}

/** The desktop that an order is started for. */
export interface Requester extends StoredRequester {
  readonly origin: string
  /** Of a backend: what its orders are counted by, the name of its start key or a hash of one without a name. */
  readonly startKeyId?: string
}

/** What is decided when an order with return codes is approved. */
export interface OrderApproval {
  /** Whether the computer was known for the wallet. It then needs no return code. */
  readonly knownComputer: boolean
  /** Whether the phone's user wants the computer to be remembered. */
  readonly rememberComputer: boolean
}

/** What a repeated finalize needs to get the same session, and a take-back to end it. */
export interface OrderLogin {
  readonly userId: string
  /** Hash of the seed that the session's token is derived from. */
  readonly seedHash: string
  /** The host's name for the session. */
  readonly sessionId: string
}

/** The newest step of an order's history. */
export function newestTransition(order: OrderRecord): OrderTransition {
  return order.history[order.history.length - 1] as OrderTransition
}

/** The proof of an order that is approved or finalized. */
export function proofOf({ orderId, proof }: OrderRecord): StoredProof {
  if (proof !== undefined) return proof
  throw internalError(new Error(`order ${orderId} has no proof`))
}

/** The identity that the proof of an approved or finalized order proves. */
export function identityOf(order: OrderRecord): ProvenIdentity {
  const { adapterId, subject, publicKeyHex, address } = proofOf(order)
  return { adapterId, subject, publicKeyHex, address }
}
