import type { ErrorReason } from '../errors.ts'

/**
 * Why a call failed, to act on.
 *
 * Of the client's own: WALLET_MISSING, there is no wallet here. WALLET_DECLINED, its user said no. WALLET_CLOSED, its window
 * closed without an answer, or could not open. WALLET_WRONG_KEY, it answered with another key than asked for, or with one
 * that is no Ed25519 key. WALLET_FAILED, anything else that it did. NETWORK, no answer came: it may be that the call took
 * effect all the same. UNEXPECTED_ANSWER, something else than the service answered: look at baseUrl. ABORTED, by the caller's
 * signal. CLAIM_URL_INVALID, the text is no claim URL.
 *
 * The others come from the service: see proto/countersign/v1/error_reason.proto. A newer service may send reasons that are
 * not in this list.
 */
export type ClientErrorCode =
  | ErrorReason
  | 'WALLET_MISSING'
  | 'WALLET_DECLINED'
  | 'WALLET_CLOSED'
  | 'WALLET_WRONG_KEY'
  | 'WALLET_FAILED'
  | 'NETWORK'
  | 'UNEXPECTED_ANSWER'
  | 'ABORTED'
  | 'CLAIM_URL_INVALID'

/** Details of a {@link CountersignClientError}. */
export interface ClientErrorOptions {
  /** Milliseconds after which a retry can succeed, when the service said so. */
  readonly retryAfterMs?: number | undefined
  /** What was caught: the wallet's, the network's or the protocol's own error. */
  readonly cause?: unknown
}

/** What every function of the client rejects with: a stable code to act on, a message for developers, and the cause. */
export class CountersignClientError extends Error {
  override readonly name = 'CountersignClientError'
  readonly code: ClientErrorCode
  readonly retryAfterMs: number | undefined

  constructor(code: ClientErrorCode, message: string, { retryAfterMs, cause }: ClientErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** The failure of a call whose signal was aborted. */
export function aborted(signal: AbortSignal | undefined): CountersignClientError {
  return new CountersignClientError('ABORTED', 'The call was aborted', { cause: signal?.reason })
}

const passing: ReadonlySet<ClientErrorCode> = new Set(['NETWORK', 'STORE_UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL'])

/** Whether the same call can succeed later: nothing is wrong with it, only with the moment. */
export function isPassing(error: CountersignClientError): boolean {
  return passing.has(error.code)
}
