import type { ErrorReason, ReasonsOf } from '../../shared/errors.ts'

/**
 * Stable code of a failure, for programs to act on. The client's own codes:
 *
 * - WALLET_MISSING: this page has no wallet.
 * - WALLET_DECLINED: the user declined in the wallet.
 * - WALLET_CLOSED: the wallet's window closed without an answer.
 * - WALLET_BLOCKED: the wallet's window could not be opened: the browser blocks pop-up windows of the page.
 * - WALLET_BUSY: the wallet already shows a request, which its user has to answer first.
 * - WALLET_WRONG_KEY: the wallet signed with another key or account than asked for, its user switched accounts in
 *   between, or its key is not an Ed25519 key.
 * - WALLET_FAILED: any other failure of the wallet.
 * - NETWORK: no answer arrived. The call may have taken effect nevertheless.
 * - UNEXPECTED_ANSWER: the answer is not the service's; check `baseUrl`.
 * - ABORTED: the caller's signal was aborted.
 * - CLAIM_URL_INVALID: the text is not a claim URL.
 *
 * All others are the service's reasons, described in proto/countersign/v1/error_reason.proto. A newer service may send
 * reasons that this list does not have.
 */
export type ClientErrorCode =
  | ErrorReason
  | 'WALLET_MISSING'
  | 'WALLET_DECLINED'
  | 'WALLET_CLOSED'
  | 'WALLET_BLOCKED'
  | 'WALLET_BUSY'
  | 'WALLET_WRONG_KEY'
  | 'WALLET_FAILED'
  | 'NETWORK'
  | 'UNEXPECTED_ANSWER'
  | 'ABORTED'
  | 'CLAIM_URL_INVALID'

/** Details of a {@link CountersignClientError}. */
export interface ClientErrorOptions {
  /** Time after which a retry can succeed, in milliseconds, if the service stated one; more than a day is a day. */
  readonly retryAfterMs?: number | undefined
  /** Number of further codes that can be tried after a wrong one, if the service stated it. */
  readonly triesLeft?: number | undefined
  /** Adapter and address of the wallet that is not on the service's list (LOGIN_REFUSED), in its canonical form. */
  readonly adapterId?: string | undefined
  readonly address?: string | undefined
  /** The error underneath: the wallet's, the network's or the protocol's. */
  readonly cause?: unknown
}

/** A timer of more than 24 days would end at once, and a page would ask without a pause. */
const longestWaitMs = 86_400_000

/** The error that every function of the client rejects with: a stable code, a message for developers, and the cause. */
export class CountersignClientError extends Error {
  override readonly name = 'CountersignClientError'
  readonly code: ClientErrorCode
  readonly retryAfterMs: number | undefined
  readonly triesLeft: number | undefined
  readonly adapterId: string | undefined
  readonly address: string | undefined

  constructor(code: ClientErrorCode, message: string, options: ClientErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    const { retryAfterMs } = options
    this.retryAfterMs = retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, longestWaitMs)
    this.triesLeft = options.triesLeft
    this.adapterId = options.adapterId
    this.address = options.address
  }
}

/** The failure of a call that was aborted. */
export function aborted(signal: AbortSignal | undefined): CountersignClientError {
  return new CountersignClientError('ABORTED', 'The call was aborted', { cause: signal?.reason })
}

const passing: ReadonlySet<ClientErrorCode> = new Set<'NETWORK' | ReasonsOf<'same call' | 'after a time'>>([
  'NETWORK',
  'STORE_UNAVAILABLE',
  'RATE_LIMITED',
  'INTERNAL',
  'SERVER_BUSY',
  'HOST_UNAVAILABLE',
])

/**
 * Whether the same call can succeed later, unchanged. RATE_LIMITED with a wait is a limit on calls in a time; without
 * one, a limit on calls for an order, which lasts as long as the order.
 */
export function isPassing({ code, retryAfterMs }: CountersignClientError): boolean {
  return passing.has(code) && (code !== 'RATE_LIMITED' || retryAfterMs !== undefined)
}

/** The coded error for anything that was thrown: what has no code was a mistake in how the element is used. */
export function failureOf(thrown: unknown): CountersignClientError {
  // The page's own client may be another copy of the code, with a class of its own.
  if (thrown instanceof Error && thrown.name === 'CountersignClientError') return thrown as CountersignClientError
  return new CountersignClientError('INVALID_REQUEST', String(thrown), { cause: thrown })
}
