/**
 * The reasons for which a call can fail, each with its Connect code and its HTTP status.
 *
 * The list is `ErrorReason` in proto/countersign/v1/error_reason.proto, without the prefix; a test holds the two together.
 * What each reason means and what a caller does about it is said there.
 */

/** A status code of Connect and gRPC, as Connect's JSON spells it. */
export type CodeName =
  | 'invalid_argument'
  | 'deadline_exceeded'
  | 'not_found'
  | 'permission_denied'
  | 'resource_exhausted'
  | 'failed_precondition'
  | 'unimplemented'
  | 'internal'
  | 'unavailable'
  | 'unauthenticated'

interface Mapping {
  readonly code: CodeName
  readonly httpStatus: number
}

export const reasons = {
  INVALID_REQUEST: { code: 'invalid_argument', httpStatus: 400 },
  REQUEST_TOO_LARGE: { code: 'resource_exhausted', httpStatus: 413 },
  ROUTE_NOT_FOUND: { code: 'unimplemented', httpStatus: 404 },
  METHOD_NOT_ALLOWED: { code: 'unimplemented', httpStatus: 405 },
  RATE_LIMITED: { code: 'resource_exhausted', httpStatus: 429 },
  STORE_UNAVAILABLE: { code: 'unavailable', httpStatus: 503 },
  INTERNAL: { code: 'internal', httpStatus: 500 },
  ORIGIN_NOT_TRUSTED: { code: 'permission_denied', httpStatus: 403 },
  ORIGIN_MISMATCH: { code: 'permission_denied', httpStatus: 403 },
  APP_NAME_MISMATCH: { code: 'invalid_argument', httpStatus: 400 },
  NONCE_NOT_FOUND: { code: 'unauthenticated', httpStatus: 401 },
  NONCE_EXPIRED: { code: 'failed_precondition', httpStatus: 410 },
  SIGNATURE_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  ADDRESS_MISMATCH: { code: 'unauthenticated', httpStatus: 401 },
  ADAPTER_UNKNOWN: { code: 'invalid_argument', httpStatus: 400 },
  LOGIN_REFUSED: { code: 'permission_denied', httpStatus: 403 },
  SESSION_REQUIRED: { code: 'unauthenticated', httpStatus: 401 },
  SESSION_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  SESSION_NOT_FOUND: { code: 'not_found', httpStatus: 404 },
  ORDER_NOT_FOUND: { code: 'not_found', httpStatus: 404 },
  ORDER_TOKEN_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  ORDER_EXPIRED: { code: 'failed_precondition', httpStatus: 410 },
  ORDER_ALREADY_CLAIMED: { code: 'failed_precondition', httpStatus: 409 },
  ORDER_NOT_APPROVED: { code: 'failed_precondition', httpStatus: 409 },
  ORDER_ALREADY_APPROVED: { code: 'failed_precondition', httpStatus: 409 },
  ORDER_CHALLENGE_NOT_READ: { code: 'failed_precondition', httpStatus: 409 },
  ORDER_REJECTED: { code: 'failed_precondition', httpStatus: 409 },
  ORDER_CANCELLED: { code: 'failed_precondition', httpStatus: 409 },
  ORDER_FINALIZED: { code: 'failed_precondition', httpStatus: 409 },
  CONFIRMATION_CODE_REQUIRED: { code: 'invalid_argument', httpStatus: 400 },
  CONFIRMATION_CODE_WRONG: { code: 'unauthenticated', httpStatus: 401 },
} as const satisfies Record<string, Mapping>

/** One of the reasons for which a call can fail. */
export type ErrorReason = keyof typeof reasons

/** Details of a {@link CountersignError}. */
export interface CountersignErrorOptions {
  /** Milliseconds after which a retry can succeed; sent as RetryInfo and Retry-After. */
  retryAfterMs?: number
  /** What went wrong underneath. It reaches the log, never the caller. */
  cause?: unknown
}

/** A failure that the caller is told about: a stable reason to act on and a message for people. */
export class CountersignError extends Error {
  override readonly name = 'CountersignError'
  readonly reason: ErrorReason
  readonly retryAfterMs: number | undefined

  constructor(reason: ErrorReason, message: string, options: CountersignErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.retryAfterMs = options.retryAfterMs
  }

  /** The Connect and gRPC code of the reason. */
  get code(): CodeName {
    return reasons[this.reason].code
  }

  /** The HTTP status of the reason. */
  get httpStatus(): number {
    return reasons[this.reason].httpStatus
  }
}
