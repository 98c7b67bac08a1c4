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

/** What the service does with a reason. */
interface Reason {
  /** Kind of failure. */
  readonly class: ReasonClass
  /** Code of Connect and gRPC. */
  readonly code: CodeName
  /** HTTP status. */
  readonly http: number
  /** Which calls fail for it without listing it in their comment: all, those with input, those with a body. */
  readonly any: 'call' | 'input' | 'body' | 'none'
  /** Level of its line in the log. Lines of level `error` have a reference, and all of them are written. */
  readonly level: 'info' | 'warn' | 'error'
  /** What the line has beside the reason: a message that quotes no input but an origin, a cause that quotes none. */
  readonly log: readonly ('message' | 'cause')[]
  /**
   * Its audit event. `signature`: challenge.refused, from the calls that bring a signature only; `call`: call.refused;
   * `limit`: limit.hit; `order`: what happened to the order tells it.
   */
  readonly audit: 'signature' | 'call' | 'signature else call' | 'limit' | 'order' | 'none'
  /** Limit that it counts towards. `order-wrong-token`: that of the order, and `wrong-token` for the address. */
  readonly counts: 'wrong-token' | 'order-wrong-token' | 'none'
  /** What helps. `same call` and `after a time` are retried by the client; `never`: not without a correction. */
  readonly retry: 'same call' | 'after a time' | 'new nonce' | 'other wallet' | 'new order' | 'never'
  /**
   * Where users see a text of its own: a notice or an ending of the approval page, the element, or its sign-in with a
   * wallet on this device. Elsewhere they see the general text.
   */
  readonly shown: readonly ('notice' | 'ending' | 'element' | 'device')[]
  /** Keys of its metadata. */
  readonly metadata: readonly string[]
}

/** What is so for every reason of a class, unless its row says otherwise. */
const classes = {
  /** The request is wrong, or names something that the service does not have. */
  input: { code: 'invalid_argument', http: 400 },
  /** The caller, or its wallet, may not do this. */
  refused: { code: 'permission_denied', http: 403 },
  /** A token, key, nonce or signature is missing or wrong. */
  token: { code: 'unauthenticated', http: 401 },
  /** A code that a user typed is wrong. */
  code: { code: 'unauthenticated', http: 401, audit: 'order', counts: 'wrong-token' },
  /** What the call is about is gone, or not in the state for it. */
  state: { code: 'failed_precondition', http: 409 },
  /** One caller has done too much. */
  limit: { code: 'resource_exhausted', http: 429, audit: 'limit' },
  /** All callers together have. */
  busy: { code: 'unavailable', http: 503, level: 'warn', audit: 'limit' },
  /** A part that the service depends on does not answer. */
  outage: { code: 'unavailable', http: 503, level: 'warn' },
  /** The service or the application failed. */
  fault: { code: 'internal', http: 500, level: 'error', metadata: ['reference'] },
  /** The service is not set up for the call. */
  setup: { code: 'not_found', http: 404 },
} as const satisfies Record<string, Pick<Reason, 'code' | 'http'> & Partial<Reason>>

type ReasonClass = keyof typeof classes

type Row = Pick<Reason, 'class'> & Partial<Reason>

/** Metadata about an origin that is refused. */
const origin = ['origin', 'origin_source', 'setting', 'proxy_setting'] as const

/**
 * The reasons for which a call can fail: a row for each, with what differs from its class and from `usual`. Everything
 * on the server that decides by reason reads {@link reasons}; code for browsers is held to the rows by types.
 *
 * The list is that of `ErrorReason` in proto/countersign/v1/error_reason.proto, without the prefix, which a test
 * checks. The comments there say what each reason means and what a caller can do about it.
 */
// biome-ignore format: a row is one line, or two.
const rows = {
  INVALID_REQUEST: { class: 'input', any: 'input',
    metadata: ['field', 'type', 'header', 'allowed', 'expected', 'bytes'] },
  REQUEST_TOO_LARGE: { class: 'input', code: 'resource_exhausted', http: 413, any: 'body', metadata: ['max_bytes'] },
  ROUTE_NOT_FOUND: { class: 'input', code: 'unimplemented', http: 404, metadata: ['path'] },
  METHOD_NOT_ALLOWED: { class: 'input', code: 'unimplemented', http: 405, metadata: ['path', 'method', 'allowed'] },
  RATE_LIMITED: { class: 'limit', any: 'call', retry: 'after a time', shown: ['notice', 'element'],
    metadata: ['limit'] },
  STORE_UNAVAILABLE: { class: 'outage', any: 'call', log: ['message', 'cause'], retry: 'after a time',
    shown: ['notice', 'element'] },
  INTERNAL: { class: 'fault', any: 'call', retry: 'same call', shown: ['notice'] },
  SERVER_BUSY: { class: 'busy', any: 'call', retry: 'after a time', shown: ['notice'] },
  HOST_UNAVAILABLE: { class: 'fault', code: 'unavailable', http: 503, retry: 'after a time', shown: ['notice'],
    metadata: ['reference', 'nonce_used'] },
  NOT_ENABLED: { class: 'setup', log: ['message'] },
  COMPRESSION_UNSUPPORTED: { class: 'input', code: 'unimplemented', http: 415, any: 'body', metadata: ['encodings'] },

  ORIGIN_NOT_TRUSTED: { class: 'refused', audit: 'call', log: ['message'], shown: ['notice', 'element'],
    metadata: origin },
  ORIGIN_MISMATCH: { class: 'refused', audit: 'call', log: ['message'], metadata: [...origin, 'expected', 'bound_to'] },
  APP_NAME_MISMATCH: { class: 'input', metadata: ['app_name', 'setting'] },

  NONCE_NOT_FOUND: { class: 'token', audit: 'signature', log: ['cause'], retry: 'new nonce',
    shown: ['notice', 'device'] },
  NONCE_EXPIRED: { class: 'state', http: 410, audit: 'signature', retry: 'new nonce', shown: ['notice', 'device'] },
  SIGNATURE_INVALID: { class: 'token', audit: 'signature', retry: 'new nonce', shown: ['notice'] },
  ADDRESS_MISMATCH: { class: 'token', audit: 'signature', retry: 'new nonce' },
  ADAPTER_UNKNOWN: { class: 'input', audit: 'signature', retry: 'other wallet', shown: ['device'],
    metadata: ['adapters'] },
  LOGIN_REFUSED: { class: 'refused', audit: 'signature else call', retry: 'other wallet', shown: ['notice', 'device'],
    metadata: ['application_message'] },
  CONTRACT_WALLET_NEEDS_RPC: { class: 'input', audit: 'signature', retry: 'other wallet', shown: ['notice', 'device'],
    metadata: ['chain_id', 'setting'] },
  EVM_RPC_UNAVAILABLE: { class: 'outage', log: ['cause'], retry: 'new nonce', shown: ['notice'],
    metadata: ['chain_id'] },

  SESSION_REQUIRED: { class: 'token' },
  SESSION_INVALID: { class: 'token', audit: 'call' },
  SESSION_NOT_FOUND: { class: 'state', code: 'not_found', http: 404 },
  SESSION_NOT_FRESH: { class: 'refused', audit: 'call' },
  COMPUTER_NOT_FOUND: { class: 'state', code: 'not_found', http: 404 },
  AUDIENCE_UNKNOWN: { class: 'input', metadata: ['setting'] },

  ORDER_NOT_FOUND: { class: 'state', code: 'not_found', http: 404, log: ['cause'], retry: 'new order',
    shown: ['ending'] },
  ORDER_TOKEN_INVALID: { class: 'token', audit: 'call', counts: 'order-wrong-token', retry: 'new order',
    shown: ['ending'] },
  ORDER_EXPIRED: { class: 'state', http: 410, retry: 'new order', shown: ['ending', 'element'] },
  ORDER_ALREADY_CLAIMED: { class: 'state', audit: 'call', retry: 'new order', shown: ['ending'] },
  ORDER_NOT_APPROVED: { class: 'state' },
  ORDER_ALREADY_APPROVED: { class: 'state', shown: ['ending'] },
  ORDER_CHALLENGE_NOT_READ: { class: 'state' },
  ORDER_REJECTED: { class: 'state', retry: 'new order', shown: ['ending', 'element'] },
  ORDER_CANCELLED: { class: 'state', retry: 'new order', shown: ['ending', 'element'] },
  ORDER_FINALIZED: { class: 'state', retry: 'new order', shown: ['ending'] },
  RETURN_CODE_REQUIRED: { class: 'input' },
  RETURN_CODE_WRONG: { class: 'code', metadata: ['tries_left'] },
  COMPUTER_PROOF_INVALID: { class: 'token', audit: 'call', counts: 'order-wrong-token', retry: 'new order',
    shown: ['element'] },
  HANDOVER_INVALID: { class: 'token', audit: 'call', counts: 'order-wrong-token', shown: ['ending'] },
  NETWORK_MISMATCH: { class: 'refused', audit: 'call', retry: 'new order', shown: ['notice'] },
  START_KEY_REQUIRED: { class: 'token', audit: 'call', counts: 'order-wrong-token', metadata: ['setting'] },
  WRONG_WALLET: { class: 'refused', audit: 'signature', retry: 'other wallet', shown: ['notice'] },

  WALLET_TAKEN: { class: 'state', audit: 'signature', retry: 'other wallet' },
  WALLET_NOT_FOUND: { class: 'state', code: 'not_found', http: 404 },
  LAST_WALLET: { class: 'state' },
} as const satisfies Record<string, Row>

/** What is so unless the class or the row says otherwise. */
const usual = {
  any: 'none',
  level: 'info',
  log: [],
  audit: 'none',
  counts: 'none',
  retry: 'never',
  shown: [],
  metadata: [],
} as const satisfies Partial<Reason>

/** One of the reasons for which a call can fail. */
export type ErrorReason = keyof typeof rows

/** The whole row of each reason, in the order of the protos. */
export const reasons = Object.fromEntries(
  Object.entries<Row>(rows).map(([name, row]) => [name, { ...usual, ...classes[row.class], ...row }]),
) as Readonly<Record<ErrorReason, Reason>>

/** The reasons that have this in their row. For code that must not have the table at run time. */
export type ReasonsOf<Value extends Reason['retry'] | Reason['shown'][number]> = {
  [Name in ErrorReason]: Value extends ItemsOf<(typeof rows)[Name]> ? Name : never
}[ErrorReason]

type ItemsOf<Row> = Row[keyof Row] extends infer Cell ? (Cell extends readonly (infer Item)[] ? Item : Cell) : never

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
    return reasons[this.reason].http
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
 * The failure of the application's own part: `resolveLogin` or the session host failed, answered with something
 * unusable, or did not answer in time. The caller gets a reference and nothing else; the log has the cause under it.
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
 * The failure of a call whose nonce is used by then. HOST_UNAVAILABLE then says to sign again and no longer when to
 * retry, because the same call cannot succeed any more. Anything else that was thrown stays as it is.
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
} as const

/**
 * A call that ended without a reason: its deadline passed, its caller left, or a protocol that is not ours asks for a
 * bare code.
 */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly code: keyof typeof endings

  constructor(code: keyof typeof endings) {
    super(endings[code])
    this.code = code
  }
}
