import type { Host } from './host/host.ts'
import type { ResolveLogin } from './host/standalone.ts'
import type { Logger } from './log.ts'
import { isPlainLine } from './message.ts'
import type { NonceStore } from './nonce.ts'
import { parseOrigin } from './origin.ts'
import type { WalletAdapter } from './wallet/wallet.ts'

/**
 * Everything that can be set. Each option but those marked "code only" is also an environment variable. A value that does
 * not fit stops the start with a `TypeError` of one line that says what to change.
 */
export interface CountersignOptions {
  /** Port to listen on, 0 to 65535; 0 picks a free one. Default 8080. PORT */
  port?: number
  /** Name or address to listen on. Default localhost, which no other machine can reach. HOST */
  host?: string
  /**
   * Where people reach the service: an http or https origin, without a path. With https, cookies are Secure. Default
   * `http://localhost:{port}`. COUNTERSIGN_PUBLIC_URL
   */
  publicUrl?: string
  /**
   * Where state is kept: `sqlite:{file}`, `sqlite::memory:`, `redis://`, `rediss://`, `redis+cluster://h1,h2` or
   * `redis+sentinel://h1,h2/name`. Default `sqlite:./countersign.db`. COUNTERSIGN_STORE
   */
  store?: string
  /**
   * What session tokens are signed with: text of 32 characters or more, from a secure source. With several, the first signs
   * and all verify. Default with an embedded store: made at the first start and kept in it. Required with Redis.
   * COUNTERSIGN_SECRET (comma-separated)
   */
  secret?: string | readonly string[]
  /** The name at the top of every message that a wallet signs, 1 to 80 characters. Default Countersign. COUNTERSIGN_APP_NAME */
  appName?: string
  /**
   * Origins of the web pages that may ask for nonces, start orders and use the session cookie. Default: the origin of
   * publicUrl and the loopback names on the listening port. COUNTERSIGN_TRUSTED_ORIGINS (comma-separated)
   */
  trustedOrigins?: readonly string[]
  /** Whether origins are compared. false is for controlled local tests only. Default true. COUNTERSIGN_ENFORCE_ORIGIN */
  enforceOrigin?: boolean
  /** Path that the REST endpoints are under. Default /api/auth. COUNTERSIGN_BASE_PATH */
  basePath?: string
  /** Path of the direct sign-in endpoints under basePath. Default /wallet. COUNTERSIGN_ENDPOINT_PREFIX */
  endpointPrefix?: string
  /** Life of a nonce, 1 to 3600 seconds. Default 300. COUNTERSIGN_NONCE_TTL_SECONDS */
  nonceTtlSeconds?: number
  /** Life of an order that is not approved, 1 to 3600 seconds. Default 120. COUNTERSIGN_ORDER_TTL_SECONDS */
  orderTtlSeconds?: number
  /** Life of a session that is not used, 1 second to 1 year. Default 604800 (7 days). COUNTERSIGN_SESSION_TTL_SECONDS */
  sessionTtlSeconds?: number
  /**
   * Life of a session however much it is used, sessionTtlSeconds to 2 years. Default 2592000 (30 days), or
   * sessionTtlSeconds when that is longer. COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS
   */
  sessionAbsoluteTtlSeconds?: number
  /** Keeps the nonces elsewhere. Default: the store. Code only. */
  nonceStore?: NonceStore
  /** Wallet adapters: names, or adapters of your own. Default nimiq, ed25519. COUNTERSIGN_ADAPTERS (comma-separated names) */
  adapters?: readonly (string | WalletAdapter)[]
  /** Which Ed25519 verifier: auto takes the native one where it passes a self-test. Default auto. COUNTERSIGN_VERIFIER */
  verifier?: 'auto' | 'portable' | 'native'
  /** Whether the wallet's address is copied to the user's record. Default false. COUNTERSIGN_SYNC_ADDRESS_TO_USER */
  syncAddressToUser?: boolean
  /** Whether the public key is copied to the user's record. Default false. COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER */
  syncPublicKeyToUser?: boolean
  /**
   * Who makes the users and sessions, such as `betterAuthHost(auth)`. The options about sessions and users are then that
   * host's own. Default: the service itself. Code only.
   */
  sessionHost?: Host
  /** Decides which user a proven identity is, or null for none. Default: one user for each wallet identity. Code only. */
  resolveLogin?: ResolveLogin
  /**
   * How many proxies in front append to X-Forwarded-For, -Host and -Proto: false or 0 for none, true for one, up to 10.
   * Only set it when nobody can reach the service around them. Default false. COUNTERSIGN_TRUST_PROXY
   */
  trustProxy?: boolean | number
  /**
   * compare: desktop and phone show the code, for the user to compare. required: only the desktop shows it, and the phone's
   * user has to enter it. Default compare. COUNTERSIGN_CONFIRMATION_CODE
   */
  confirmationCode?: 'compare' | 'required'
  /** Whether each client address has an allowance of calls. Default true. COUNTERSIGN_RATE_LIMIT (on, off) */
  rateLimit?: boolean
  /**
   * The claim URL that the QR code shows. `{origin}`, `{orderId}` and `{claimToken}` are filled in; the token must stay in
   * the fragment, which browsers do not send. Default `{origin}/cross-device/claim/{orderId}#token={claimToken}`.
   * COUNTERSIGN_CLAIM_URL_TEMPLATE
   */
  claimUrlTemplate?: string
  /** Name of the order model where a host framework's database keeps orders. Default crossDeviceOrder. COUNTERSIGN_ORDER_MODEL_NAME */
  orderModelName?: string
  /** Whether the service's own pages (demo and approval) are served. Default true. COUNTERSIGN_PAGES (on, off) */
  pages?: boolean
  /** Where log lines go. Default: warnings and errors to standard error. Code only. */
  logger?: Logger
}

/** The options, checked and completed. What depends on the listening port is left open. */
export interface Settings {
  readonly port: number
  readonly host: string
  readonly publicUrl: string | undefined
  readonly store: string
  readonly secrets: readonly string[] | undefined
  readonly appName: string
  readonly trustedOrigins: readonly string[] | undefined
  readonly enforceOrigin: boolean
  readonly basePath: string
  readonly endpointPrefix: string
  readonly nonceTtlSeconds: number
  readonly orderTtlSeconds: number
  readonly sessionTtlSeconds: number
  readonly sessionAbsoluteTtlSeconds: number
  readonly nonceStore: NonceStore | undefined
  readonly adapters: readonly (string | WalletAdapter)[]
  readonly verifier: 'auto' | 'portable' | 'native'
  readonly syncAddressToUser: boolean
  readonly syncPublicKeyToUser: boolean
  readonly sessionHost: Host | undefined
  readonly resolveLogin: ResolveLogin | undefined
  readonly trustedProxies: number
  readonly confirmationCode: 'compare' | 'required'
  readonly rateLimit: boolean
  readonly claimUrlTemplate: string
  readonly orderModelName: string
  readonly pages: boolean
  readonly logger: Logger | undefined
}

const daySeconds = 86_400
const minSecretLength = 32

/** Checks options and fills in the defaults; a `TypeError` of one line when one does not fit. */
export function resolveSettings(options: CountersignOptions = {}): Settings {
  for (const name of Object.keys(options)) {
    if (!knownOptions.has(name)) throw new TypeError(`${name} is not an option of Countersign`)
  }
  const sessionTtlSeconds = whole('sessionTtlSeconds', options.sessionTtlSeconds ?? 7 * daySeconds, 1, 366 * daySeconds)
  return {
    port: whole('port', options.port ?? 8080, 0, 65_535),
    host: text('host', options.host ?? 'localhost', /^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address'),
    publicUrl: options.publicUrl === undefined ? undefined : httpOrigin('publicUrl', options.publicUrl),
    store: text(
      'store',
      options.store ?? 'sqlite:./countersign.db',
      /^\S.*$/,
      'a store address such as sqlite:./countersign.db',
    ),
    secrets: options.secret === undefined ? undefined : secrets(options.secret),
    appName: appName(options.appName ?? 'Countersign'),
    trustedOrigins: options.trustedOrigins === undefined ? undefined : origins(options.trustedOrigins),
    enforceOrigin: flag('enforceOrigin', options.enforceOrigin ?? true),
    basePath: path('basePath', options.basePath ?? '/api/auth'),
    endpointPrefix: path('endpointPrefix', options.endpointPrefix ?? '/wallet'),
    nonceTtlSeconds: whole('nonceTtlSeconds', options.nonceTtlSeconds ?? 300, 1, 3600),
    orderTtlSeconds: whole('orderTtlSeconds', options.orderTtlSeconds ?? 120, 1, 3600),
    sessionTtlSeconds,
    sessionAbsoluteTtlSeconds: whole(
      'sessionAbsoluteTtlSeconds',
      options.sessionAbsoluteTtlSeconds ?? Math.max(sessionTtlSeconds, 30 * daySeconds),
      sessionTtlSeconds,
      732 * daySeconds,
    ),
    nonceStore: options.nonceStore === undefined ? undefined : nonceStore(options.nonceStore),
    adapters: options.adapters ?? ['nimiq', 'ed25519'],
    verifier: choice('verifier', options.verifier ?? 'auto', ['auto', 'portable', 'native']),
    syncAddressToUser: flag('syncAddressToUser', options.syncAddressToUser ?? false),
    syncPublicKeyToUser: flag('syncPublicKeyToUser', options.syncPublicKeyToUser ?? false),
    sessionHost: options.sessionHost === undefined ? undefined : sessionHost(options.sessionHost),
    resolveLogin: options.resolveLogin === undefined ? undefined : hook('resolveLogin', options.resolveLogin),
    trustedProxies: whole('trustProxy', Number(options.trustProxy ?? 0), 0, 10),
    confirmationCode: choice('confirmationCode', options.confirmationCode ?? 'compare', ['compare', 'required']),
    rateLimit: flag('rateLimit', options.rateLimit ?? true),
    claimUrlTemplate: claimUrlTemplate(
      options.claimUrlTemplate ?? '{origin}/cross-device/claim/{orderId}#token={claimToken}',
    ),
    orderModelName: text(
      'orderModelName',
      options.orderModelName ?? 'crossDeviceOrder',
      /^[A-Za-z][A-Za-z0-9_]{0,63}$/,
      'a name of letters, digits and underscores',
    ),
    pages: flag('pages', options.pages ?? true),
    logger: options.logger,
  }
}

/** The environment variable of each option that has one, and how its text is read. */
const variables = {
  port: ['PORT', readNumber],
  host: ['HOST', readText],
  publicUrl: ['COUNTERSIGN_PUBLIC_URL', readText],
  store: ['COUNTERSIGN_STORE', readText],
  secret: ['COUNTERSIGN_SECRET', readList],
  appName: ['COUNTERSIGN_APP_NAME', readText],
  trustedOrigins: ['COUNTERSIGN_TRUSTED_ORIGINS', readList],
  enforceOrigin: ['COUNTERSIGN_ENFORCE_ORIGIN', readFlag],
  basePath: ['COUNTERSIGN_BASE_PATH', readText],
  endpointPrefix: ['COUNTERSIGN_ENDPOINT_PREFIX', readText],
  nonceTtlSeconds: ['COUNTERSIGN_NONCE_TTL_SECONDS', readNumber],
  orderTtlSeconds: ['COUNTERSIGN_ORDER_TTL_SECONDS', readNumber],
  sessionTtlSeconds: ['COUNTERSIGN_SESSION_TTL_SECONDS', readNumber],
  sessionAbsoluteTtlSeconds: ['COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS', readNumber],
  adapters: ['COUNTERSIGN_ADAPTERS', readList],
  verifier: ['COUNTERSIGN_VERIFIER', readText],
  syncAddressToUser: ['COUNTERSIGN_SYNC_ADDRESS_TO_USER', readFlag],
  syncPublicKeyToUser: ['COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER', readFlag],
  trustProxy: ['COUNTERSIGN_TRUST_PROXY', readFlagOrNumber],
  confirmationCode: ['COUNTERSIGN_CONFIRMATION_CODE', readText],
  rateLimit: ['COUNTERSIGN_RATE_LIMIT', readFlag],
  claimUrlTemplate: ['COUNTERSIGN_CLAIM_URL_TEMPLATE', readText],
  orderModelName: ['COUNTERSIGN_ORDER_MODEL_NAME', readText],
  pages: ['COUNTERSIGN_PAGES', readFlag],
} as const satisfies Partial<Record<keyof CountersignOptions, readonly [string, (value: string) => unknown]>>

type Environment = Readonly<Record<string, string | undefined>>

type VariableOption = keyof typeof variables

const knownOptions: ReadonlySet<string> = new Set([
  ...Object.keys(variables),
  'nonceStore',
  'sessionHost',
  'resolveLogin',
  'logger',
])

/** The options that environment variables set. An empty variable is as good as none. */
export function optionsFromEnvironment(environment: Environment): CountersignOptions {
  const entries = Object.entries(variables).map(([option, [name, read]]): [string, unknown] => {
    const value = environment[name]?.trim()
    return [option, value === undefined || value === '' ? undefined : read(value)]
  })
  // What a reader could not make sense of goes on as text: the check of the option it belongs to names and refuses it.
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as CountersignOptions
}

/**
 * Variables that look like settings and are none: most likely misspelt, so that a default is in force unnoticed. Those that
 * Kubernetes sets for a service of this name are left out.
 */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set<string>(Object.values(variables).map(([name]) => name))
  return Object.keys(environment)
    .filter((name) => name.startsWith('COUNTERSIGN_') && !known.has(name))
    .filter((name) => !/^COUNTERSIGN_(SERVICE|PORT)(_|$)/.test(name))
}

function readText(value: string): string {
  return value
}

function readList(value: string): string[] {
  return value.split(',').map((entry) => entry.trim())
}

function readNumber(value: string): number | string {
  return /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value
}

function readFlag(value: string): boolean | string {
  if (/^(true|on|yes|1)$/i.test(value)) return true
  return /^(false|off|no|0)$/i.test(value) ? false : value
}

function readFlagOrNumber(value: string): boolean | number | string {
  const number = readNumber(value)
  return typeof number === 'number' ? number : readFlag(value)
}

function refuse(option: string, expected: string, got?: unknown): never {
  const variable = option in variables ? ` (${variables[option as VariableOption][0]})` : ''
  throw new TypeError(
    `${option}${variable} must be ${expected}${got === undefined ? '' : `, not ${JSON.stringify(got)}`}`,
  )
}

function whole(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  return refuse(option, `a whole number from ${min} to ${max}`, Number.isNaN(value) ? String(value) : value)
}

function flag(option: string, value: unknown): boolean {
  return typeof value === 'boolean' ? value : refuse(option, 'true or false (on or off)', value)
}

function text(option: string, value: unknown, pattern: RegExp, expected: string): string {
  if (typeof value === 'string' && pattern.test(value)) return value
  // A store address can hold a password.
  return refuse(option, expected, option === 'store' ? undefined : value)
}

function choice<Choice extends string>(option: string, value: unknown, choices: readonly Choice[]): Choice {
  return choices.find((one) => one === value) ?? refuse(option, choices.join(' or '), value)
}

function hook<Hook>(option: string, value: Hook): Hook {
  return typeof value === 'function' ? value : refuse(option, 'a function')
}

function httpOrigin(option: string, value: unknown): string {
  const origin = typeof value === 'string' ? parseOrigin(value.replace(/\/$/, '')) : undefined
  if (origin !== undefined && /^https?:/.test(origin)) return origin
  return refuse(option, 'an http or https address without a path, such as https://auth.example', value)
}

function origins(value: unknown): string[] {
  if (!Array.isArray(value)) return refuse('trustedOrigins', 'a list of origins', value)
  return value.map(
    (entry: unknown) =>
      (typeof entry === 'string' ? parseOrigin(entry.replace(/\/$/, '')) : undefined) ??
      refuse('trustedOrigins', 'a list of origins such as https://app.example', entry),
  )
}

function secrets(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value]
  const good = list.filter((entry) => typeof entry === 'string' && entry.length >= minSecretLength)
  if (good.length === list.length && list.length > 0) return good as string[]
  return refuse(
    'secret',
    `text of ${minSecretLength} characters or more, such as the output of: openssl rand -base64 32`,
  )
}

function appName(value: unknown): string {
  if (typeof value === 'string' && value.length <= 80 && value.trim() === value && value !== '' && isPlainLine(value)) {
    return value
  }
  return refuse('appName', 'one line of 1 to 80 characters, without space around it', value)
}

function path(option: string, value: unknown): string {
  return text(option, value, /^(\/[A-Za-z0-9._~-]+)+$/, 'a path such as /api/auth, without a slash at the end')
}

function claimUrlTemplate(value: unknown): string {
  const expected =
    'an address with {orderId} and, after a #, {claimToken}, such as {origin}/cross-device/claim/{orderId}#token={claimToken}'
  if (typeof value !== 'string') return refuse('claimUrlTemplate', expected, value)
  const hash = value.indexOf('#')
  const fits = hash > 0 && value.includes('{orderId}') && value.indexOf('{claimToken}') > hash
  const filled = value.replaceAll('{origin}', 'https://a.example').replaceAll(/\{(orderId|claimToken)\}/g, 'x')
  return fits && URL.canParse(filled) && !/[{}]/.test(filled) ? value : refuse('claimUrlTemplate', expected, value)
}

function nonceStore(value: NonceStore): NonceStore {
  const functions = [value.get, value.set, value.delete].every((method) => typeof method === 'function')
  return functions ? value : refuse('nonceStore', 'an object with the functions get, set and delete')
}

function sessionHost(value: Host): Host {
  return typeof value?.createSession === 'function'
    ? value
    : refuse('sessionHost', 'a host such as betterAuthHost(auth)')
}
