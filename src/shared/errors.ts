/**
 * The reasons for which a call can fail, each with its Connect code and its HTTP status.
 *
 * The list is that of `ErrorReason` in proto/countersign/v1/error_reason.proto, without the prefix, which a test
 * checks. The comments there say what each reason means and what a caller can do about it.
 */

/** A status code of Connect and gRPC, as Connect's JSON spells it. */
export type CodeName =
  | 'invalid_argument'
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
  SERVER_BUSY: { code: 'unavailable', httpStatus: 503 },
  HOST_UNAVAILABLE: { code: 'unavailable', httpStatus: 503 },
  NOT_ENABLED: { code: 'not_found', httpStatus: 404 },
  COMPRESSION_UNSUPPORTED: { code: 'unimplemented', httpStatus: 415 },
  ORIGIN_NOT_TRUSTED: { code: 'permission_denied', httpStatus: 403 },
  ORIGIN_MISMATCH: { code: 'permission_denied', httpStatus: 403 },
  APP_NAME_MISMATCH: { code: 'invalid_argument', httpStatus: 400 },
  NONCE_NOT_FOUND: { code: 'unauthenticated', httpStatus: 401 },
  NONCE_EXPIRED: { code: 'failed_precondition', httpStatus: 410 },
  SIGNATURE_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  ADDRESS_MISMATCH: { code: 'unauthenticated', httpStatus: 401 },
  ADAPTER_UNKNOWN: { code: 'invalid_argument', httpStatus: 400 },
  LOGIN_REFUSED: { code: 'permission_denied', httpStatus: 403 },
  CONTRACT_WALLET_NEEDS_RPC: { code: 'invalid_argument', httpStatus: 400 },
  EVM_RPC_UNAVAILABLE: { code: 'unavailable', httpStatus: 503 },
  SESSION_REQUIRED: { code: 'unauthenticated', httpStatus: 401 },
  SESSION_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  SESSION_NOT_FOUND: { code: 'not_found', httpStatus: 404 },
  SESSION_NOT_FRESH: { code: 'permission_denied', httpStatus: 403 },
  COMPUTER_NOT_FOUND: { code: 'not_found', httpStatus: 404 },
  AUDIENCE_UNKNOWN: { code: 'invalid_argument', httpStatus: 400 },
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
  RETURN_CODE_REQUIRED: { code: 'invalid_argument', httpStatus: 400 },
  RETURN_CODE_WRONG: { code: 'unauthenticated', httpStatus: 401 },
  COMPUTER_PROOF_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  HANDOVER_INVALID: { code: 'unauthenticated', httpStatus: 401 },
  NETWORK_MISMATCH: { code: 'permission_denied', httpStatus: 403 },
  START_KEY_REQUIRED: { code: 'unauthenticated', httpStatus: 401 },
  WRONG_WALLET: { code: 'permission_denied', httpStatus: 403 },
  WALLET_TAKEN: { code: 'failed_precondition', httpStatus: 409 },
  WALLET_NOT_FOUND: { code: 'not_found', httpStatus: 404 },
  LAST_WALLET: { code: 'failed_precondition', httpStatus: 409 },
} as const satisfies Record<string, Mapping>

/** One of the reasons for which a call can fail. */
export type ErrorReason = keyof typeof reasons

/**
 * Everything variable that a failure's message says, by name, such as the origin seen or the setting to change. Sent as
 * the metadata of ErrorInfo. error_reason.proto lists the keys of each reason.
 */
export type ErrorMetadata = Readonly<Record<string, string>>

/** Details of a {@link CountersignError}. */
export interface CountersignErrorOptions {
  /** Time in milliseconds after which a retry can succeed. Sent as RetryInfo and Retry-After. */
  readonly retryAfterMs?: number
  /** Sent as the metadata of ErrorInfo. */
  readonly metadata?: ErrorMetadata
  /** The underlying error. It is logged and never sent to the caller. */
  readonly cause?: unknown
}

/** A failure that the caller is told about: a stable reason to act on and a message for people. */
export class CountersignError extends Error {
  override readonly name = 'CountersignError'
  readonly reason: ErrorReason
  readonly retryAfterMs: number | undefined
  readonly metadata: ErrorMetadata

  constructor(reason: ErrorReason, message: string, options: CountersignErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.retryAfterMs = options.retryAfterMs
    this.metadata = options.metadata ?? {}
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

/**
 * A failure that is the server's own fault: INTERNAL. The caller gets a reference and nothing else; the log has the
 * cause under it.
 */
export function internalError(cause: unknown): CountersignError {
  const reference = crypto.randomUUID()
  return new CountersignError('INTERNAL', `The server failed; its log has the cause under ${reference}`, {
    metadata: { reference },
    cause,
  })
}

/**
 * The failure of the application's own part: `resolveLogin` or the session host failed, answered with something unusable, or did
 * not answer in time. The caller gets a reference and nothing else; the log has the cause under it.
 */
export function hostUnavailable(cause: unknown): CountersignError {
  const reference = crypto.randomUUID()
  return new CountersignError(
    'HOST_UNAVAILABLE',
    `${hostFailed}; try again shortly. The server's log has the cause under ${reference}`,
    { retryAfterMs: 1000, metadata: { reference, nonce_used: 'false' }, cause },
  )
}

/**
 * The failure of a call whose nonce is used by then. HOST_UNAVAILABLE then says to sign again and no longer when to retry,
 * because the same call cannot succeed any more. Anything else that was thrown stays as it is.
 */
export function afterNonceUsed(thrown: unknown): unknown {
  if (!(thrown instanceof CountersignError) || thrown.reason !== 'HOST_UNAVAILABLE') return thrown
  const { metadata, cause } = thrown
  return new CountersignError(
    'HOST_UNAVAILABLE',
    `${hostFailed}; sign again, with a new challenge. The server's log has the cause under ${metadata.reference}`,
    { metadata: { ...metadata, nonce_used: 'true' }, cause },
  )
}

const hostFailed = 'The application that decides about users and sessions failed or did not answer'

/** The refusal of what is beyond a ceiling. Nothing was done. */
export function serverBusy(): CountersignError {
  return new CountersignError('SERVER_BUSY', 'The server has as much to do as it can; try again shortly', {
    retryAfterMs: 1000,
  })
}

/** How a call can end that has no reason, with what its caller is told. */
const endings = {
  deadline_exceeded: 'The deadline of the call has passed',
  canceled: 'The caller left before the call was over',
  // gRPC's health check asks for it.
  not_found: 'This server has no service of this name',
  // gRPC's server reflection has no reasons either.
  resource_exhausted: 'This stream has had all the requests that it takes; open another one',
} as const

/**
 * A call that ended without a reason: its deadline passed, its caller left, or a protocol that is not ours asks for a bare
 * code.
 */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly code: keyof typeof endings

  constructor(code: keyof typeof endings) {
    super(endings[code])
    this.code = code
  }
}
