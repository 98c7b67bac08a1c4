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
  /**
   * What happened and what to do, if the code that refuses has no better words. `{name}` is a value of the metadata.
   */
  readonly text: string
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
  /** Further parts of the line: a message that quotes no input but an origin, a cause that quotes none. */
  readonly log: readonly ('message' | 'cause')[]
  /**
   * Its audit event. `signature`: challenge.refused, from the calls that bring a signature only; `call`: call.refused;
   * `limit`: limit.hit; `order`: the order's own event has it.
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
  /** The object of the call no longer exists, or is in the wrong state. */
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

type ReasonRow = Pick<Reason, 'class' | 'text'> & Partial<Reason>

/** Metadata about an origin that is refused. */
const origin = ['origin', 'origin_source', 'setting', 'proxy_setting'] as const

/**
 * The reasons for which a call can fail: a row for each, with what differs from its class and from `usual`. Everything
 * on the server that decides by reason reads {@link reasons}; code for browsers is held to the rows by types.
 *
 * The list is that of `ErrorReason` in proto/countersign/v1/error_reason.proto, without the prefix, which a test
 * checks. The comments there say what each reason means and what a caller can do about it.
 */
// biome-ignore format: what differs, then the text.
const rows = {
  INVALID_REQUEST: { class: 'input', any: 'input',
    metadata: ['field', 'type', 'header', 'allowed', 'expected', 'bytes'],
    text: 'The request is malformed' },
  REQUEST_TOO_LARGE: { class: 'input', code: 'resource_exhausted', http: 413, any: 'body', metadata: ['max_bytes'],
    text: 'The body is larger than {max_bytes} bytes' },
  ROUTE_NOT_FOUND: { class: 'input', code: 'unimplemented', http: 404, metadata: ['path'],
    text: 'There is nothing at {path}' },
  METHOD_NOT_ALLOWED: { class: 'input', code: 'unimplemented', http: 405, metadata: ['path', 'method', 'allowed'],
    text: '{path} is for {allowed}, not {method}' },
  RATE_LIMITED: { class: 'limit', any: 'call', retry: 'after a time', shown: ['notice', 'element'],
    metadata: ['limit'],
    text: 'Too many requests from this address or its network; try again later' },
  STORE_UNAVAILABLE: { class: 'outage', any: 'call', log: ['message', 'cause'], retry: 'after a time',
    shown: ['notice', 'element'],
    text: 'The store does not answer; try again shortly' },
  INTERNAL: { class: 'fault', any: 'call', retry: 'same call', shown: ['notice'],
    text: 'The server failed; its log has the cause under {reference}' },
  SERVER_BUSY: { class: 'busy', any: 'call', retry: 'after a time', shown: ['notice'],
    text: 'The server has as much to do as it can; try again shortly' },
  HOST_UNAVAILABLE: { class: 'fault', code: 'unavailable', http: 503, retry: 'after a time', shown: ['notice'],
    metadata: ['reference', 'nonce_used'],
    text: "The application failed or did not answer; try again shortly. The log has the cause under {reference}" },
  NOT_ENABLED: { class: 'setup', log: ['message'],
    text: 'This service is not set up for it' },
  COMPRESSION_UNSUPPORTED: { class: 'input', code: 'unimplemented', http: 415, any: 'body', metadata: ['encodings'],
    text: 'The compression is not supported; supported: {encodings}' },

  ORIGIN_NOT_TRUSTED: { class: 'refused', audit: 'call', log: ['message'], shown: ['notice', 'element'],
    metadata: origin,
    text: 'The origin {origin}, of the {origin_source}, is not trusted' },
  ORIGIN_MISMATCH: { class: 'refused', audit: 'call', log: ['message'], metadata: [...origin, 'expected', 'bound_to'],
    text: 'The origin {origin}, of the {origin_source}, is not {expected}; call from there' },
  APP_NAME_MISMATCH: { class: 'input', metadata: ['app_name', 'setting'],
    text: 'The application name here is "{app_name}"; correct appName in the client or on the server ({setting})' },

  NONCE_NOT_FOUND: { class: 'token', audit: 'signature', log: ['cause'], retry: 'new nonce',
    shown: ['notice', 'device'],
    text: 'The nonce is unknown or was used already; ask for a new challenge' },
  NONCE_EXPIRED: { class: 'state', http: 410, audit: 'signature', retry: 'new nonce', shown: ['notice', 'device'],
    text: 'The challenge has expired; ask for a new one' },
  SIGNATURE_INVALID: { class: 'token', audit: 'signature', retry: 'new nonce', shown: ['notice'],
    text: 'The signature does not prove control of the public key' },
  ADDRESS_MISMATCH: { class: 'token', audit: 'signature', retry: 'new nonce', metadata: ['field'],
    text: 'The address does not belong to the public key' },
  ADAPTER_UNKNOWN: { class: 'input', audit: 'signature', retry: 'other wallet', shown: ['device'],
    metadata: ['adapters'],
    text: 'Name one of the configured wallet adapters as adapter_id: {adapters}' },
  LOGIN_REFUSED: { class: 'refused', audit: 'signature else call', retry: 'other wallet', shown: ['notice', 'device'],
    metadata: ['application_message', 'adapter_id', 'address'],
    text: 'This wallet is not allowed to sign in' },
  CONTRACT_WALLET_NEEDS_RPC: { class: 'input', audit: 'signature', retry: 'other wallet', shown: ['notice', 'device'],
    metadata: ['chain_id', 'setting'],
    text: 'The server has no RPC of chain {chain_id} for contract wallets ({setting}); use another wallet' },
  EVM_RPC_UNAVAILABLE: { class: 'outage', log: ['cause'], retry: 'new nonce', shown: ['notice'],
    metadata: ['chain_id'],
    text: 'The RPC of chain {chain_id} does not answer, so the contract wallet cannot be checked; try again shortly' },

  SESSION_REQUIRED: { class: 'token',
    text: 'Sign in first: send the session token as Authorization: Bearer, or the session cookie' },
  SESSION_INVALID: { class: 'token', audit: 'call',
    text: 'The session is unknown, expired or revoked; sign in again' },
  SESSION_NOT_FOUND: { class: 'state', code: 'not_found', http: 404,
    text: 'You have no session with this id' },
  SESSION_NOT_FRESH: { class: 'refused', audit: 'call', shown: ['notice'],
    text: 'You signed in too long ago to change your wallets; sign in again, then try again' },
  COMPUTER_NOT_FOUND: { class: 'state', code: 'not_found', http: 404,
    text: 'You have no known computer with this id' },
  AUDIENCE_UNKNOWN: { class: 'input', metadata: ['setting'],
    text: 'This audience gets no access tokens; to change that, add it to accessTokens.audiences ({setting})' },
  GROUP_REQUIRED: { class: 'refused', metadata: ['groups'],
    text: 'This is for members of {groups}; ask the operator to add you' },

  ORDER_NOT_FOUND: { class: 'state', code: 'not_found', http: 404, log: ['cause'], retry: 'new order',
    shown: ['ending'],
    text: 'No order has this id, or it ended more than ten minutes ago; start a new one' },
  ORDER_TOKEN_INVALID: { class: 'token', audit: 'call', counts: 'order-wrong-token', retry: 'new order',
    shown: ['ending'],
    text: 'The token is not the one of this order that this call takes' },
  ORDER_EXPIRED: { class: 'state', http: 410, retry: 'new order', shown: ['ending', 'element'],
    text: 'The order has expired; start a new one' },
  ORDER_ALREADY_CLAIMED: { class: 'state', audit: 'call', retry: 'new order', shown: ['ending'],
    text: 'Another phone has already claimed the order' },
  ORDER_NOT_APPROVED: { class: 'state',
    text: 'The phone has not approved the order yet' },
  ORDER_ALREADY_APPROVED: { class: 'state', shown: ['ending'],
    text: 'The phone has already approved the order' },
  ORDER_CHALLENGE_NOT_READ: { class: 'state',
    text: 'The phone has not read the challenge yet; read it first' },
  ORDER_REJECTED: { class: 'state', retry: 'new order', shown: ['ending', 'element'],
    text: 'The order was rejected on the phone, or by three wrong codes; start a new one' },
  ORDER_CANCELLED: { class: 'state', retry: 'new order', shown: ['ending', 'element'],
    text: 'The order was cancelled on the desktop; start a new one' },
  ORDER_FINALIZED: { class: 'state', retry: 'new order', shown: ['ending'],
    text: 'The order is finalized, and its result can no longer be fetched; start a new one' },
  RETURN_CODE_REQUIRED: { class: 'input',
    text: 'Enter the code that the phone shows' },
  RETURN_CODE_WRONG: { class: 'code', metadata: ['tries_left'],
    text: 'The code is not the one that the phone shows' },
  COMPUTER_PROOF_INVALID: { class: 'token', audit: 'call', counts: 'order-wrong-token', retry: 'new order',
    shown: ['element'],
    text: 'The order was started by a computer with a key, and computer_proof does not prove possession of it' },
  HANDOVER_INVALID: { class: 'token', audit: 'call', counts: 'order-wrong-token', shown: ['ending'],
    text: 'The ticket is wrong, used, replaced or more than 60 seconds old; make a new one' },
  NETWORK_MISMATCH: { class: 'refused', audit: 'call', retry: 'new order', shown: ['notice'],
    text: 'The phone is not on the network of the computer, or that is unknown; connect both to one, and start again' },
  START_KEY_REQUIRED: { class: 'token', audit: 'call', counts: 'order-wrong-token', metadata: ['setting'],
    text: "The application's backend starts orders, with one of orderStartKeys ({setting}) as Authorization: Bearer" },
  WRONG_WALLET: { class: 'refused', audit: 'signature', retry: 'other wallet', shown: ['notice'],
    text: 'The order asks for another wallet than the one that signed' },

  WALLET_TAKEN: { class: 'state', audit: 'signature', retry: 'other wallet', shown: ['notice'],
    text: 'The wallet belongs to another user; sign in with it and unlink it there, which needs another wallet there' },
  WALLET_NOT_FOUND: { class: 'state', code: 'not_found', http: 404,
    text: 'You have no wallet with this adapter and address' },
  LAST_WALLET: { class: 'state',
    text: 'This is your only wallet, and without it you could not sign in any more; add another one first' },
} as const satisfies Record<string, ReasonRow>

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
  Object.entries<ReasonRow>(rows).map(([name, row]) => [name, { ...usual, ...classes[row.class], ...row }]),
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

/** A failure with a stable reason to act on and a message for people. */
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

/** The failure of a reason in the words of its row. */
export function refused(reason: ErrorReason, options: CountersignErrorOptions = {}): CountersignError {
  const text = reasons[reason].text.replace(/\{(\w+)\}/g, (_, name: string) => options.metadata?.[name] ?? '')
  return new CountersignError(reason, text, options)
}

/** The refusal of a field of a request, INVALID_REQUEST. `field` is its name in the protos. */
export function invalidField(field: string, message: string, more: ErrorMetadata = {}): CountersignError {
  return new CountersignError('INVALID_REQUEST', message, { metadata: { field, ...more } })
}

/**
 * A failure that is the server's own fault: INTERNAL. The caller gets a reference and nothing else; the log has the
 * cause under it.
 */
export function internalError(cause: unknown): CountersignError {
  return refused('INTERNAL', { metadata: { reference: crypto.randomUUID() }, cause })
}

/**
 * The failure of the application's own part: `resolveLogin` or the session host failed, answered with something
 * unusable, or did not answer in time. The caller gets a reference and nothing else; the log has the cause under it.
 */
export function hostUnavailable(cause: unknown): CountersignError {
  const metadata = { reference: crypto.randomUUID(), nonce_used: 'false' }
  return refused('HOST_UNAVAILABLE', { retryAfterMs: 1000, metadata, cause })
}

/**
 * The failure of a call whose nonce is used by then. HOST_UNAVAILABLE then says to sign again and no longer when to
 * retry, because the same call cannot succeed any more. Anything else that was thrown stays as it is.
 */
export function afterNonceUsed(thrown: unknown): unknown {
  if (!(thrown instanceof CountersignError) || thrown.reason !== 'HOST_UNAVAILABLE') return thrown
  const { message, metadata, cause } = thrown
  const text = message.replace('try again shortly', 'sign again, with a new challenge')
  return new CountersignError('HOST_UNAVAILABLE', text, { metadata: { ...metadata, nonce_used: 'true' }, cause })
}

/** The refusal of what is beyond a ceiling. Nothing was done. */
export function serverBusy(): CountersignError {
  return refused('SERVER_BUSY', { retryAfterMs: 1000 })
}

/** Endings of a call without a reason, each with its answer. */
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
