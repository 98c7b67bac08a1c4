import type { AuditEventHook } from '../../base/audit.ts'
import type { LogFormat, Logger } from '../../base/log.ts'
import type { Tracing } from '../../base/tracing.ts'
import type { AccessTokenAlgorithm } from '../../core/access-tokens.ts'
import type { NonceStore } from '../../core/sign-in/nonce.ts'
import type { ResolveLogin } from '../../core/users/application.ts'
import type { Host } from '../../core/users/host.ts'
import type { WalletAdapter } from '../../core/wallet/wallet.ts'
import type { Limits } from '../../limits/limits.ts'
import type { OwnClaims } from '../../oidc/claims.ts'
import { adapterIds } from '../../shared/adapters.ts'
import { defaultClaimUrlTemplate } from '../../shared/claim-url.ts'
import { defaultKeyPrefix, keyPrefixForm, keyPrefixPattern, storeOperations } from '../../store/map-store.ts'
import type { Store } from '../../store/store.ts'
import {
  audiences,
  bearerKeys,
  choice,
  choiceOr,
  claimUrlTemplate,
  colour,
  count,
  file,
  flag,
  hook,
  httpOrigin,
  imageAddress,
  type Kind,
  line,
  list,
  objectWith,
  origins,
  path,
  rateLimits,
  rpcAddresses,
  secrets,
  text,
  textOr,
  webhookAddress,
  webhookSecrets,
  whole,
  wholeOr,
} from './kinds.ts'

/** TLS of the port. */
export interface TlsOptions {
  /**
   * File with the certificate of the port, in PEM format, followed by those that lead to its authority; needs tls.key.
   * The port then takes TLS only, 1.2 or later, with HTTP/2 and HTTP/1.1 by ALPN. Both files are read again when they
   * change, every ten seconds. Default: none; the port takes no TLS. Variable: COUNTERSIGN_TLS_CERT.
   */
  cert?: string
  /**
   * File with the private key of tls.cert, in PEM format, without a passphrase. Default: none. Variable:
   * COUNTERSIGN_TLS_KEY.
   */
  key?: string
}

/** Connections to Redis with TLS. */
export interface RedisOptions {
  /**
   * File with the certificates, in PEM format, of the authorities that Redis servers and sentinels are checked against
   * with `rediss`. A store that is passed in opened has its own: see `openStore`. Default: the authorities that Node.js
   * trusts. Variable: COUNTERSIGN_REDIS_TLS_CA.
   */
  tlsCa?: string
  /**
   * File with the client certificate, in PEM format, for Redis servers and sentinels that ask for one; needs
   * redis.tlsKey. It is read anew for each connection, as the other files are. Default: none. Variable:
   * COUNTERSIGN_REDIS_TLS_CERT.
   */
  tlsCert?: string
  /**
   * File with the private key of redis.tlsCert, in PEM format, without a passphrase. Default: none. Variable:
   * COUNTERSIGN_REDIS_TLS_KEY.
   */
  tlsKey?: string
  /**
   * Host name that the certificates of all Redis servers and sentinels must have, for servers that are reached by an
   * address or by another name. Default: the host that is connected to. Variable: COUNTERSIGN_REDIS_TLS_SERVER_NAME.
   */
  tlsServerName?: string
}

/** Access tokens for backends. */
export interface AccessTokenOptions {
  /**
   * Backends for which access tokens are issued, as the tokens' `aud`: addresses or names, each of 1 to 200 characters
   * without spaces or commas. Default: none, and no access tokens are issued. Variable:
   * COUNTERSIGN_ACCESS_TOKEN_AUDIENCES (comma-separated).
   */
  audiences?: readonly string[]
  /**
   * Lifetime of an access token in seconds, 30 to 3600, during which it stays valid even if its session is revoked.
   * Default 300. Variable: COUNTERSIGN_ACCESS_TOKEN_TTL_SECONDS.
   */
  ttlSeconds?: number
  /**
   * Algorithm of their signatures: ES256, which every JWT library has, or EdDSA (RFC 8037), which RFC 9864 calls
   * Ed25519. Default ES256. Variable: COUNTERSIGN_ACCESS_TOKEN_ALGORITHM.
   */
  algorithm?: AccessTokenAlgorithm
}

/** The service's own pages. */
export interface PageOptions {
  /**
   * Whether the pages offer a demo wallet, whose key is stored unprotected in the browser; with an https publicUrl,
   * true stops the start. Default: true while publicUrl is a loopback address and http, else false. Variable:
   * COUNTERSIGN_DEMO_WALLET (on, off).
   */
  demoWallet?: boolean
  /**
   * Address of the operator's logo for the approval and sign-in pages: an https address, or a path on the service's own
   * origin. Default: none. Variable: COUNTERSIGN_LOGO_URL.
   */
  logoUrl?: string
  /**
   * Colour of buttons and accents on the approval and sign-in pages, such as #1f6feb. Default: Countersign's. Variable:
   * COUNTERSIGN_ACCENT_COLOR.
   */
  accentColor?: string
  /**
   * JSON file with texts of the pages in further languages, or in place of the English and German ones; see
   * docs/texts.md. Default: none. Variable: COUNTERSIGN_TEXTS_FILE.
   */
  textsFile?: string
}

/** Limits and ceilings. */
export interface LimitOptions {
  /**
   * Numbers of the limits by name, 1 to 100000 each, over all instances that share the store: sign-in, start-order,
   * order, session and wrong-token a minute for each client address, order-wrong-token a minute for each
   * order, wallet-sign-in a minute for each wallet, and open-orders and watchers at a time for each client address.
   * Those left out keep their default; see docs/operations.md. Without effect if rateLimit is false. Variable:
   * COUNTERSIGN_RATE_LIMITS (such as sign-in=240,order=1200).
   */
  rates?: Partial<Limits>
  /**
   * Connections at a time, 1 to 1000000; more are closed as they are accepted. Default: one for each 64 KiB of the
   * heap. Variable: COUNTERSIGN_MAX_CONNECTIONS.
   */
  connections?: number
  /**
   * Connections of one client address (IPv6: /64) at a time, 1 to 1000000. Without effect if trustProxy is set, because
   * a proxy has one address for all its clients. Default 2000. Variable: COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS.
   */
  connectionsPerAddress?: number
  /**
   * Requests in progress at a time, open streams included, 1 to 1000000; more are refused with SERVER_BUSY. Default:
   * one for each 96 KiB of the heap. Variable: COUNTERSIGN_MAX_REQUESTS.
   */
  requests?: number
  /**
   * Requests at a time whose body has not arrived, 1 to 1000000; more are refused with SERVER_BUSY. Default 1000.
   * Variable: COUNTERSIGN_MAX_PENDING_BODIES.
   */
  pendingBodies?: number
  /**
   * Open streams of events at a time, over all protocols, 1 to 1000000; more are refused with SERVER_BUSY. Default: one
   * for each 128 KiB of the heap. Variable: COUNTERSIGN_MAX_STREAMS.
   */
  streams?: number
  /**
   * Nonces that one process has issued and that are still in the store, 1 to 100000000; more are refused with
   * SERVER_BUSY. An unused nonce is in the store for nonceTtlSeconds and a minute. Default 1000000, about 700 MB in
   * Redis. Variable: COUNTERSIGN_MAX_NONCES.
   */
  nonces?: number
  /**
   * Orders that one process has started and that are still in the store, 1 to 100000000; more are refused with
   * SERVER_BUSY. An order counts for orderTtlSeconds and ten minutes, and once for each 2 KiB that it takes. Default
   * 1000000, about 1.4 GB in Redis and at most 2.5 GB. Variable: COUNTERSIGN_MAX_ORDERS.
   */
  orders?: number
}

/** Metrics for Prometheus. */
export interface MetricsOptions {
  /**
   * Port for Prometheus, 0 to 65535, on which `listen()` serves `/metrics` and nothing else; 0 picks a free one, which
   * the log names. Anyone who reaches it can read it. Default: none. Variable: COUNTERSIGN_METRICS_PORT.
   */
  port?: number
  /**
   * Host name or address on which metrics.port is listened on. Default 127.0.0.1. Variable: COUNTERSIGN_METRICS_HOST.
   */
  host?: string
  /**
   * Collection of metrics, for `metrics()`, in applications that serve them themselves. Default: on if metrics.port is
   * set. Code only.
   */
  collect?: boolean
}

/** Delivery of audit events. */
export interface WebhookOptions {
  /**
   * Address that audit events are delivered to by POST, signed as in Standard Webhooks: https, or http on this machine.
   * Needs webhook.secret. Default: none. Variable: COUNTERSIGN_WEBHOOK_URL.
   */
  url?: string
  /**
   * Secret that signs what is delivered to webhook.url: `whsec_` and 24 to 64 bytes in base64. Of several, each signs.
   * Default: none. Variable: COUNTERSIGN_WEBHOOK_SECRET (comma-separated), or COUNTERSIGN_WEBHOOK_SECRET_FILE.
   */
  secret?: string | readonly string[]
}

/** The OpenID Connect issuer. */
export interface OidcOptions {
  /**
   * JSON file with the clients of the OpenID Connect issuer, which it switches on; needs the package oidc-provider. Not
   * with sessionHost. Default: none. Variable: COUNTERSIGN_OIDC_CLIENTS.
   */
  clients?: string
  /**
   * Template of the e-mail address that clients of the issuer are told, never verified, with `{user_id}`. Default:
   * none, and users have no e-mail address. Variable: COUNTERSIGN_OIDC_EMAIL.
   */
  email?: string
  /**
   * Function that returns further claims of a user for a client of the issuer, such as groups. Not with `people`.
   * Default: none. Code only.
   */
  claims?: OwnClaims
  /**
   * JSON file with further claims of people, by user id or by wallet as `{adapter_id}:{address}`: email, name, groups
   * and others. Read again on SIGHUP. Default: none. Variable: COUNTERSIGN_OIDC_PEOPLE.
   */
  people?: string
}

/**
 * Everything that can be set, in code or, except for the options marked "code only", by an environment variable. A
 * value that does not fit stops the start with a `TypeError` of one line that says what to change.
 *
 * To add an option: declare it here, add its row to `table` below, its place to `places` if it stands in a group, and
 * its name to a section in scripts/docs/settings.ts, and run `npm run docs`.
 */
export interface CountersignOptions {
  /** Port to listen on, 0 to 65535; 0 picks a free one. Default 8080. Variable: PORT. */
  port?: number
  /** Host name or address to listen on. Default localhost, which other machines cannot reach. Variable: HOST. */
  host?: string
  /**
   * Address where people reach the service: an http or https origin, without a path. With https, cookies are Secure;
   * with tls.cert it must be https. Default `http://localhost:{port}`, or `https://localhost:{port}` with tls.cert.
   * Variable: COUNTERSIGN_PUBLIC_URL.
   */
  publicUrl?: string
  /** TLS of the port. Default: none; the port takes no TLS. */
  tls?: TlsOptions
  /**
   * Place where state is kept: `sqlite:{file}`, `sqlite::memory:`, `redis://`, `rediss://`, `redis+cluster://h1,h2` or
   * `redis+sentinel://h1,h2/name`; or, in code, a store that is already open, which the service does not close. Default
   * `sqlite:./countersign.db`. Variable: COUNTERSIGN_STORE, or COUNTERSIGN_STORE_FILE.
   */
  store?: string | Store
  /**
   * Text that all keys in the store begin with, so that several services can share a store without sharing what they
   * keep: 1 to 64 letters, digits, dots, underscores and hyphens. It also begins the keys in a store that is passed in
   * opened and in nonceStore, but as countersign it adds nothing to them, and nothing in SQLite. Default countersign.
   * Variable: COUNTERSIGN_KEY_PREFIX.
   */
  keyPrefix?: string
  /** TLS of connections to Redis, with an address that begins with `rediss`. */
  redis?: RedisOptions
  /**
   * Secret that session tokens are signed with: text of 32 characters or more, from a secure random source. Of several,
   * the first signs and all verify. Default: made at the first start and kept in the store; a store that several
   * processes share does not keep one, so that the option is required with Redis. Variable: COUNTERSIGN_SECRET
   * (comma-separated), or COUNTERSIGN_SECRET_FILE.
   */
  secret?: string | readonly string[]
  /**
   * Name at the top of every message that a wallet signs, 1 to 80 characters. Nonces and orders of another name, such
   * as those of another service on the same store, are not found. Default Countersign. Variable: COUNTERSIGN_APP_NAME.
   */
  appName?: string
  /**
   * Origins of the web pages that may ask for nonces, start orders and use the session cookie. Nonces and orders of an
   * origin that is removed from the list are no longer found. Default: the origin of publicUrl; while that is unset
   * or a loopback address itself, also localhost, 127.0.0.1 and [::1] on the listening port. Variable:
   * COUNTERSIGN_TRUSTED_ORIGINS (comma-separated).
   */
  trustedOrigins?: readonly string[]
  /**
   * Check of origins; false is for controlled local tests only. Default true. Variable: COUNTERSIGN_ENFORCE_ORIGIN (on,
   * off).
   */
  enforceOrigin?: boolean
  /** Path that the REST endpoints are under. Default /api/auth. Variable: COUNTERSIGN_BASE_PATH. */
  basePath?: string
  /** Path of the direct sign-in endpoints under basePath. Default /wallet. Variable: COUNTERSIGN_ENDPOINT_PREFIX. */
  endpointPrefix?: string
  /** Lifetime of a nonce in seconds, 1 to 3600. Default 300. Variable: COUNTERSIGN_NONCE_TTL_SECONDS. */
  nonceTtlSeconds?: number
  /**
   * Lifetime of an order in seconds, 1 to 3600. Once approved, it has at least 60 seconds left. Default 120. Variable:
   * COUNTERSIGN_ORDER_TTL_SECONDS.
   */
  orderTtlSeconds?: number
  /**
   * Lifetime of an unused session in seconds, 1 to 31622400 (366 days); each use starts it anew. Default 604800 (7
   * days). Variable: COUNTERSIGN_SESSION_TTL_SECONDS.
   */
  sessionTtlSeconds?: number
  /**
   * Greatest lifetime of a session in seconds, even if it is used, sessionTtlSeconds to 63244800 (732 days). Default
   * 2592000 (30 days), or sessionTtlSeconds if that is longer. Variable: COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS.
   */
  sessionAbsoluteTtlSeconds?: number
  /**
   * Time in seconds, 0 to 63244800, for which the IP addresses of sessions are kept, if that is shorter than an unused
   * session lives; 0 keeps none. If it is less than 90 days, none is kept of known computers. Default: as long as the
   * session and the computer. Variable: COUNTERSIGN_ADDRESS_TTL_SECONDS.
   */
  addressTtlSeconds?: number
  /** Access tokens for backends, which are issued if `audiences` is set. */
  accessTokens?: AccessTokenOptions
  /**
   * Store of your own for nonces. Without an atomic `take`, a nonce is used once only if the store of all other state
   * is shared or there is one instance. Default: the store of all other state. Code only.
   */
  nonceStore?: NonceStore
  /**
   * Wallet adapters: names (nimiq, ed25519, ethereum, solana), or adapters of your own. A proof that names none is
   * tried with nimiq and ed25519, in the order given. Default nimiq, ed25519. Variable: COUNTERSIGN_ADAPTERS
   * (comma-separated names).
   */
  adapters?: readonly (string | WalletAdapter)[]
  /**
   * JSON-RPC servers of EVM chains by chain id, which the adapter ethereum asks about contract wallets (EIP-1271,
   * EIP-6492). Needs the package viem. Default: none; contract wallets cannot sign in. Variable: COUNTERSIGN_EVM_RPC
   * (such as 1=https://rpc.example,8453=https://base.example), or COUNTERSIGN_EVM_RPC_FILE.
   */
  evmRpc?: Readonly<Record<string, string>>
  /**
   * Ed25519 verifier: native (node:crypto), portable (tweetnacl), or auto, the native one if it passes a self-test. All
   * give the same answers. Default auto. Variable: COUNTERSIGN_VERIFIER.
   */
  verifier?: 'auto' | 'portable' | 'native'
  /**
   * Copying of the address of the wallet that signed in last to the user's record. Default false. Variable:
   * COUNTERSIGN_SYNC_ADDRESS_TO_USER (on, off).
   */
  syncAddressToUser?: boolean
  /**
   * Copying of the public key of the wallet that signed in last to the user's record. Default false. Variable:
   * COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER (on, off).
   */
  syncPublicKeyToUser?: boolean
  /**
   * Host that makes users and sessions, such as `betterAuthHost(auth)`. The options about sessions and users then do
   * nothing: that host has its own. If one of its methods fails, takes longer than five seconds or breaks the contract,
   * the call fails with HOST_UNAVAILABLE. Default: the service itself. Code only.
   */
  sessionHost?: Host
  /**
   * Function that decides which user a proven identity is, or null to refuse. If it fails or takes longer than five
   * seconds, the call fails with HOST_UNAVAILABLE. Default: one user for each wallet identity. Code only.
   */
  resolveLogin?: ResolveLogin
  /**
   * Number of proxies in front that append to X-Forwarded-For, -Host and -Proto, 0 to 10; false is 0, true is 1. Only
   * set it if the service can be reached through them only. Default 0. Variable: COUNTERSIGN_TRUST_PROXY.
   */
  trustProxy?: boolean | number
  /**
   * Use of an order's code. compare: computer and phone show it, and the user compares. return: the phone shows it once
   * it has approved, and the user enters it on the computer, which hinders relayed orders; see
   * docs/cross-device-security.md. Default compare. Variable: COUNTERSIGN_CONFIRMATION_CODE.
   */
  confirmationCode?: 'compare' | 'return'
  /**
   * Whether users can have their computer remembered, which then needs no return code for 90 days. Default true.
   * Variable: COUNTERSIGN_KNOWN_COMPUTERS (on, off).
   */
  knownComputers?: boolean
  /**
   * Whether the networks of computer and phone are compared. show: the phone shows whether they are the same. enforce:
   * phones are refused unless they are, which locks out phones on mobile data. off: they are not compared. Default
   * show. Variable: COUNTERSIGN_PROXIMITY.
   */
  proximity?: 'show' | 'off' | 'enforce'
  /**
   * Keys of the application's backends, each 32 characters or more, from a secure random source. If set, only calls
   * with one of them as `Authorization: Bearer` start orders. Default: none; pages start orders themselves. Variable:
   * COUNTERSIGN_ORDER_START_KEYS (comma-separated), or COUNTERSIGN_ORDER_START_KEYS_FILE.
   */
  orderStartKeys?: readonly string[]
  /** Limit on the calls of each client address. Default true. Variable: COUNTERSIGN_RATE_LIMIT (on, off). */
  rateLimit?: boolean
  /** Numbers of the limits, and ceilings on what clients hold at a time. */
  limits?: LimitOptions
  /**
   * Template of the claim URL that the QR code shows. `{origin}`, `{orderId}` and `{claimToken}` are filled in; the
   * token must be in the fragment, which browsers do not send. Default
   * `{origin}/c/{orderId}#token={claimToken}`. Variable: COUNTERSIGN_CLAIM_URL_TEMPLATE.
   */
  claimUrlTemplate?: string
  /**
   * Serving of the service's own pages (demo, approval and sign-in). In place of true also their options. Default true.
   * Variable: COUNTERSIGN_PAGES (on, off).
   */
  pages?: boolean | PageOptions
  /**
   * Time in seconds, 0 to 300, for which `drain()`, and so the command after SIGTERM, goes on serving while proxies,
   * clients and watchers are asked to leave. It must be long enough for proxies to notice. Default 2. Variable:
   * COUNTERSIGN_DRAIN_SECONDS.
   */
  drainSeconds?: number
  /**
   * Number of processes, 1 to 64, that serve the port together, if the command runs the service; auto: one for each
   * core that it may use. More than 1, and auto, need Redis. In code it must be 1. Default 1. Variable:
   * COUNTERSIGN_WORKERS.
   */
  workers?: number | 'auto'
  /** Collection of metrics: true for `metrics()` only, or their port and host. Default: off. Code only. */
  metrics?: boolean | MetricsOptions
  /**
   * Traces of calls, through the OpenTelemetry SDK that the process registers; needs the package @opentelemetry/api.
   * on: a call continues its caller's trace. link: it begins one of its own that links to it. In code also what
   * `openTelemetry()` of countersign/opentelemetry returns. Default off. Variable: COUNTERSIGN_TRACING.
   */
  tracing?: 'off' | 'on' | 'link' | Tracing
  /**
   * Form of the log that the service writes itself. json: one JSON object per line. pretty: lines for people. auto:
   * pretty on a terminal, else json. Default auto. Variable: COUNTERSIGN_LOG_FORMAT.
   */
  logFormat?: LogFormat
  /** Delivery of audit events by POST. */
  webhook?: WebhookOptions
  /**
   * Function that is called with each audit event: sign-ins, changes of orders, sessions and wallets, refusals. Its
   * result is not awaited. Default: none; the log has the events. Code only.
   */
  onAuditEvent?: AuditEventHook
  /** The OpenID Connect issuer. Default: none. */
  oidc?: OidcOptions
  /** Receiver of log lines. Default: warnings and errors go to standard error. Code only. */
  logger?: Logger
}

/** Options that stand in a group, by the name under which they are resolved, with group and name in it. */
const places = {
  tlsCert: ['tls', 'cert'],
  tlsKey: ['tls', 'key'],
  redisTlsCa: ['redis', 'tlsCa'],
  redisTlsCert: ['redis', 'tlsCert'],
  redisTlsKey: ['redis', 'tlsKey'],
  redisTlsServerName: ['redis', 'tlsServerName'],
  accessTokenAudiences: ['accessTokens', 'audiences'],
  accessTokenTtlSeconds: ['accessTokens', 'ttlSeconds'],
  accessTokenAlgorithm: ['accessTokens', 'algorithm'],
  demoWallet: ['pages', 'demoWallet'],
  logoUrl: ['pages', 'logoUrl'],
  accentColor: ['pages', 'accentColor'],
  textsFile: ['pages', 'textsFile'],
  rateLimits: ['limits', 'rates'],
  maxConnections: ['limits', 'connections'],
  maxConnectionsPerAddress: ['limits', 'connectionsPerAddress'],
  maxRequests: ['limits', 'requests'],
  maxPendingBodies: ['limits', 'pendingBodies'],
  maxStreams: ['limits', 'streams'],
  maxNonces: ['limits', 'nonces'],
  maxOrders: ['limits', 'orders'],
  metricsPort: ['metrics', 'port'],
  metricsHost: ['metrics', 'host'],
  webhookUrl: ['webhook', 'url'],
  webhookSecret: ['webhook', 'secret'],
  metrics: ['metrics', 'collect'],
  oidcClients: ['oidc', 'clients'],
  oidcEmail: ['oidc', 'email'],
  oidcClaims: ['oidc', 'claims'],
  oidcPeople: ['oidc', 'people'],
} as const satisfies Readonly<Record<string, readonly [group: keyof CountersignOptions, name: string]>>

type Places = typeof places
type Group = Places[keyof Places][0]
type GroupOptions<Name extends Group> = Extract<NonNullable<CountersignOptions[Name]>, object>
type ValueAt<Place extends readonly [Group, string]> = Place[1] extends keyof GroupOptions<Place[0]>
  ? GroupOptions<Place[0]>[Place[1]]
  : never

/** The options, each under one name: those of a group begin with its word, as their variables do. */
export type FlatOptions = Omit<CountersignOptions, Group> & {
  [Name in keyof Places]?: Exclude<ValueAt<Places[Name]>, undefined>
} & { pages?: boolean }

/** Name of an option, as in {@link FlatOptions}. */
export type Option = keyof FlatOptions

/** The name of an option in code, such as `tls.cert`. */
export function nameInCode(option: Option): string {
  return isPlaced(option) && option !== 'metrics' ? places[option].join('.') : option
}

function isPlaced(name: string): name is keyof Places {
  return Object.hasOwn(places, name)
}

/** Groups that can also be a boolean, with the option that this sets. */
const switches: ReadonlySet<string> = new Set<Group | 'pages'>(['metrics', 'pages'])

/**
 * Takes options out of their groups. Throws a `TypeError` of one line for a group that is no object, and for a name
 * that is in no group.
 */
export function ungrouped(options: CountersignOptions): FlatOptions {
  const flat: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options)) {
    const inGroup = Object.entries(places).filter(([, [group]]) => group === name)
    if (inGroup.length === 0 || (switches.has(name) && typeof value === 'boolean')) {
      if (isPlaced(name) && !switches.has(name)) throw new TypeError(`${name} is now ${nameInCode(name)}`)
      flat[name] = value
      continue
    }
    if (value === undefined) continue
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      const names = inGroup.map(([, [, inner]]) => inner).join(', ')
      throw new TypeError(`${name} must be an object with ${names}${switches.has(name) ? ', or true or false' : ''}`)
    }
    for (const [inner, given] of Object.entries(value)) {
      const [option] = inGroup.find(([, place]) => place[1] === inner) ?? []
      if (option === undefined) throw new TypeError(`${name}.${inner} is not an option of Countersign`)
      flat[option] = given
    }
  }
  return flat
}

/** Puts options into their groups. */
export function grouped(flat: FlatOptions): CountersignOptions {
  const options: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(flat)) {
    if (!isPlaced(name)) {
      if (name !== 'pages' || value === false) options[name] = value
      continue
    }
    const [group, inner] = places[name]
    if (flat.pages === false && group === 'pages') continue
    options[group] = { ...(options[group] as object), [inner]: value }
  }
  if (flat.pages !== undefined) options.pages ??= flat.pages
  return options
}

/** All there is to know about an option. */
export interface Row {
  /** Environment variable; `undefined` for an option that can only be set in code. */
  readonly variable: string | undefined
  /**
   * Whether it can be a secret, or have one in it, so that a variable whose name ends in `_FILE` can name a file that
   * has it.
   */
  readonly fromFile?: true
  readonly kind: Kind<never, unknown>
  /** Value if nothing is set. */
  readonly default: unknown
  /** What docs/settings.md says about the default if the value itself does not tell. Markdown. */
  readonly defaultText?: string
  /** Option further up that this one must not be below. If that is above the default, it is the default. */
  readonly notBelow?: Option
  /** What it is, in one line of Markdown for docs/settings.md. Links are relative to docs/. */
  readonly about: string
}

/** The row of an option of type `Given`. */
type RowOf<Given> = Row & { readonly kind: Kind<Given, unknown> } & (
    | { readonly default: Given }
    | { readonly default: undefined; readonly defaultText: string }
  )

const daySeconds = 86_400

/** A host to listen on. */
const hostName = text(/^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address')

/** Every option: parsing, checks, defaults and documentation all come from here. */
const table = {
  port: { variable: 'PORT', kind: whole(0, 65_535), default: 8080, about: 'port to listen on; 0 picks a free one' },
  host: {
    variable: 'HOST',
    kind: hostName,
    default: 'localhost',
    about: 'host name or address to listen on; `0.0.0.0` lets other machines in',
  },
  publicUrl: {
    variable: 'COUNTERSIGN_PUBLIC_URL',
    kind: httpOrigin,
    default: undefined,
    defaultText: '`http://localhost:{port}`, or https with a certificate',
    about: 'address at which users reach the service; with https, cookies are Secure',
  },
  tlsCert: {
    variable: 'COUNTERSIGN_TLS_CERT',
    kind: file,
    default: undefined,
    defaultText: 'none: no TLS',
    about:
      'file with the certificate of the port and those that lead to its authority (PEM); the port then takes TLS only ([TLS on the port](operations.md#tls-on-the-port))',
  },
  tlsKey: {
    variable: 'COUNTERSIGN_TLS_KEY',
    kind: file,
    default: undefined,
    defaultText: 'none',
    about: 'file with the private key of that certificate (PEM, without a passphrase)',
  },
  store: {
    variable: 'COUNTERSIGN_STORE',
    fromFile: true,
    kind: textOr<Store>(
      /^\S.*$/,
      ['now', ...storeOperations, 'close'],
      'a store address such as sqlite:./countersign.db, or an opened store',
    ),
    default: 'sqlite:./countersign.db',
    about:
      'where state is kept; also `sqlite::memory:`, `redis://`, `rediss://`, `redis+cluster://h1,h2`, `redis+sentinel://h1,h2/name` (Redis 7 or later), or in code an opened store',
  },
  keyPrefix: {
    variable: 'COUNTERSIGN_KEY_PREFIX',
    kind: text(keyPrefixPattern, keyPrefixForm),
    default: defaultKeyPrefix,
    about: 'text that all keys in the store begin with; each of several services on one store needs its own',
  },
  redisTlsCa: {
    variable: 'COUNTERSIGN_REDIS_TLS_CA',
    kind: file,
    default: undefined,
    defaultText: 'what Node.js trusts',
    about: 'with `rediss`: file with the certificates of the authorities that servers are checked against (PEM)',
  },
  redisTlsCert: {
    variable: 'COUNTERSIGN_REDIS_TLS_CERT',
    kind: file,
    default: undefined,
    defaultText: 'none',
    about: 'with `rediss`: file with a client certificate (PEM), for servers that ask for one',
  },
  redisTlsKey: {
    variable: 'COUNTERSIGN_REDIS_TLS_KEY',
    kind: file,
    default: undefined,
    defaultText: 'none',
    about: 'with `rediss`: file with the private key of the client certificate (PEM, without a passphrase)',
  },
  redisTlsServerName: {
    variable: 'COUNTERSIGN_REDIS_TLS_SERVER_NAME',
    kind: text(/^(?=.*[A-Za-z])[A-Za-z0-9._-]{1,253}$/, 'a host name'),
    default: undefined,
    defaultText: 'the host connected to',
    about: 'with `rediss`: host name that the certificates of the servers must have',
  },
  secret: {
    variable: 'COUNTERSIGN_SECRET',
    fromFile: true,
    kind: secrets(32),
    default: undefined,
    defaultText: 'made and kept in SQLite; required with Redis',
    about:
      'signs session tokens, 32 characters or more; to rotate it, a comma-separated list: the first signs, all verify',
  },
  appName: {
    variable: 'COUNTERSIGN_APP_NAME',
    kind: line(80),
    default: 'Countersign',
    about: 'name at the top of every message that a wallet signs, up to 80 characters',
  },
  trustedOrigins: {
    variable: 'COUNTERSIGN_TRUSTED_ORIGINS',
    kind: origins,
    default: undefined,
    defaultText: 'publicUrl; while that is a loopback address, also the other loopback names',
    about: 'origins of the web pages that may sign users in, comma-separated',
  },
  enforceOrigin: {
    variable: 'COUNTERSIGN_ENFORCE_ORIGIN',
    kind: flag,
    default: true,
    about: 'whether origins are checked; `off` is for controlled local tests only',
  },
  basePath: {
    variable: 'COUNTERSIGN_BASE_PATH',
    kind: path,
    default: '/api/auth',
    about: 'path that the REST endpoints are under',
  },
  endpointPrefix: {
    variable: 'COUNTERSIGN_ENDPOINT_PREFIX',
    kind: path,
    default: '/wallet',
    about: 'path of the direct sign-in endpoints under basePath',
  },
  nonceTtlSeconds: {
    variable: 'COUNTERSIGN_NONCE_TTL_SECONDS',
    kind: whole(1, 3600),
    default: 300,
    about: 'lifetime of a nonce in seconds',
  },
  orderTtlSeconds: {
    variable: 'COUNTERSIGN_ORDER_TTL_SECONDS',
    kind: whole(1, 3600),
    default: 120,
    about: 'lifetime of an order in seconds; once approved, it has at least 60 seconds left',
  },
  sessionTtlSeconds: {
    variable: 'COUNTERSIGN_SESSION_TTL_SECONDS',
    kind: whole(1, 366 * daySeconds),
    default: 7 * daySeconds,
    about: 'lifetime of an unused session in seconds (the default is 7 days)',
  },
  sessionAbsoluteTtlSeconds: {
    variable: 'COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS',
    kind: whole(1, 732 * daySeconds),
    notBelow: 'sessionTtlSeconds',
    default: 30 * daySeconds,
    about: 'greatest lifetime of a session in seconds, even if it is used (the default is 30 days)',
  },
  addressTtlSeconds: {
    variable: 'COUNTERSIGN_ADDRESS_TTL_SECONDS',
    kind: whole(0, 732 * daySeconds),
    default: undefined,
    defaultText: 'as long as the session',
    about:
      'time in seconds for which the IP addresses of sessions are kept, if that is shorter; 0 keeps none. Below 90 days, known computers have none',
  },
  accessTokenAudiences: {
    variable: 'COUNTERSIGN_ACCESS_TOKEN_AUDIENCES',
    kind: audiences,
    default: undefined,
    defaultText: 'none: no access tokens',
    about:
      'backends for which [access tokens](access-tokens.md) are issued, comma-separated, such as `https://api.example`',
  },
  accessTokenTtlSeconds: {
    variable: 'COUNTERSIGN_ACCESS_TOKEN_TTL_SECONDS',
    kind: whole(30, 3600),
    default: 300,
    about: 'lifetime of an access token in seconds, during which it stays valid even if its session is revoked',
  },
  accessTokenAlgorithm: {
    variable: 'COUNTERSIGN_ACCESS_TOKEN_ALGORITHM',
    kind: choice<AccessTokenAlgorithm>('ES256', 'EdDSA', 'Ed25519'),
    default: 'ES256',
    about:
      'algorithm that signs access tokens. `EdDSA` and `Ed25519` are names of one. The key set has keys of both kinds',
  },
  adapters: {
    variable: 'COUNTERSIGN_ADAPTERS',
    kind: list<string | WalletAdapter>('a list of wallet adapters such as nimiq,ed25519'),
    default: ['nimiq', 'ed25519'],
    about: `wallet adapters, comma-separated, of ${adapterIds.map((id) => `\`${id}\``).join(', ')}; in code also adapters of your own. A proof that names none is tried with \`nimiq\` and \`ed25519\`, in the order given`,
  },
  evmRpc: {
    variable: 'COUNTERSIGN_EVM_RPC',
    fromFile: true,
    kind: rpcAddresses,
    default: undefined,
    defaultText: 'none',
    about:
      'JSON-RPC servers by chain id, such as `1=https://rpc.example,8453=https://base.example`, which `ethereum` asks about contract wallets; needs the package viem',
  },
  demoWallet: {
    variable: 'COUNTERSIGN_DEMO_WALLET',
    kind: flag,
    default: undefined,
    defaultText: 'on while publicUrl is a loopback address and http, and with `--lan`',
    about: 'whether the pages offer a demo wallet, whose key is stored unprotected in the browser; never with https',
  },
  verifier: {
    variable: 'COUNTERSIGN_VERIFIER',
    kind: choice('auto', 'portable', 'native'),
    default: 'auto',
    about:
      'Ed25519 verifier: `portable` is tweetnacl, `native` is node:crypto, `auto` is `native` if it passes a self-test; all give the same answers',
  },
  syncAddressToUser: {
    variable: 'COUNTERSIGN_SYNC_ADDRESS_TO_USER',
    kind: flag,
    default: false,
    about: "whether the wallet's address is copied to the user's record",
  },
  syncPublicKeyToUser: {
    variable: 'COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER',
    kind: flag,
    default: false,
    about: "whether the public key is copied to the user's record",
  },
  trustProxy: {
    variable: 'COUNTERSIGN_TRUST_PROXY',
    kind: count(10),
    default: 0,
    about: 'number of proxies in front whose `X-Forwarded-For`, `-Host` and `-Proto` count; `on` is 1',
  },
  confirmationCode: {
    variable: 'COUNTERSIGN_CONFIRMATION_CODE',
    kind: choice('compare', 'return'),
    default: 'compare',
    about:
      '`compare`: computer and phone show the code, the user compares; `return`: the phone shows it after the approval, the user enters it on the computer, which hinders relayed orders',
  },
  knownComputers: {
    variable: 'COUNTERSIGN_KNOWN_COMPUTERS',
    kind: flag,
    default: true,
    about: 'whether users can have their computer remembered, which then needs no return code for 90 days',
  },
  proximity: {
    variable: 'COUNTERSIGN_PROXIMITY',
    kind: choice('show', 'off', 'enforce'),
    default: 'show',
    about:
      '`show`: the phone says whether it is on the network of the computer; `enforce`: it must be, which locks out phones on mobile data; `off`: networks are not compared',
  },
  orderStartKeys: {
    variable: 'COUNTERSIGN_ORDER_START_KEYS',
    fromFile: true,
    kind: bearerKeys(32),
    default: undefined,
    defaultText: 'none',
    about:
      'keys of the application’s backend, comma-separated: only calls with one start orders; unset, pages start them',
  },
  logoUrl: {
    variable: 'COUNTERSIGN_LOGO_URL',
    kind: imageAddress,
    default: undefined,
    defaultText: 'none',
    about: 'logo on the approval and sign-in pages: an https address or a path on this service’s origin',
  },
  accentColor: {
    variable: 'COUNTERSIGN_ACCENT_COLOR',
    kind: colour,
    default: undefined,
    defaultText: 'Countersign’s own',
    about: 'colour of buttons and accents on the approval and sign-in pages, such as `#1f6feb`',
  },
  textsFile: {
    variable: 'COUNTERSIGN_TEXTS_FILE',
    kind: file,
    default: undefined,
    defaultText: 'none',
    about: 'JSON file with texts of the approval and sign-in pages in further languages ([texts.md](texts.md))',
  },
  rateLimit: {
    variable: 'COUNTERSIGN_RATE_LIMIT',
    kind: flag,
    default: true,
    about: 'whether the calls of each client address are limited; `off` is for tests',
  },
  rateLimits: {
    variable: 'COUNTERSIGN_RATE_LIMITS',
    kind: rateLimits,
    default: undefined,
    defaultText: 'each limit has its own',
    about:
      'numbers of the [limits](operations.md#rate-limits) by name, such as `sign-in=240,order=1200`; those left out keep their default',
  },
  maxConnections: {
    variable: 'COUNTERSIGN_MAX_CONNECTIONS',
    kind: whole(1, 1_000_000),
    default: undefined,
    defaultText: 'one for each 64 KiB of heap',
    about: 'most connections at a time; more are closed as they are accepted',
  },
  maxConnectionsPerAddress: {
    variable: 'COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS',
    kind: whole(1, 1_000_000),
    default: 2000,
    about: 'most connections of one client address (IPv6: /64) at a time; without effect if `trustProxy` is set',
  },
  maxRequests: {
    variable: 'COUNTERSIGN_MAX_REQUESTS',
    kind: whole(1, 1_000_000),
    default: undefined,
    defaultText: 'one for each 96 KiB of heap',
    about: 'most requests in progress at a time, open streams included; more are refused with `SERVER_BUSY`',
  },
  maxPendingBodies: {
    variable: 'COUNTERSIGN_MAX_PENDING_BODIES',
    kind: whole(1, 1_000_000),
    default: 1000,
    about: 'most requests at a time whose body has not arrived; more are refused with `SERVER_BUSY`',
  },
  maxStreams: {
    variable: 'COUNTERSIGN_MAX_STREAMS',
    kind: whole(1, 1_000_000),
    default: undefined,
    defaultText: 'one for each 128 KiB of heap',
    about: 'most open streams of events at a time; more are refused with `SERVER_BUSY`',
  },
  maxNonces: {
    variable: 'COUNTERSIGN_MAX_NONCES',
    kind: whole(1, 100_000_000),
    default: 1_000_000,
    about:
      'most nonces that one process has issued and that are still in the store; more are refused with `SERVER_BUSY`',
  },
  maxOrders: {
    variable: 'COUNTERSIGN_MAX_ORDERS',
    kind: whole(1, 100_000_000),
    default: 1_000_000,
    about:
      'most orders that one process has started and that are still in the store; more are refused with `SERVER_BUSY`',
  },
  claimUrlTemplate: {
    variable: 'COUNTERSIGN_CLAIM_URL_TEMPLATE',
    kind: claimUrlTemplate,
    default: defaultClaimUrlTemplate,
    about: 'claim URL that the QR code shows',
  },
  pages: {
    variable: 'COUNTERSIGN_PAGES',
    kind: flag,
    default: true,
    about: "whether the service's own demo, approval and sign-in pages are served",
  },
  drainSeconds: {
    variable: 'COUNTERSIGN_DRAIN_SECONDS',
    kind: whole(0, 300),
    default: 2,
    about:
      'time in seconds after SIGTERM in which calls are still served while proxies, clients and watchers are asked to leave',
  },
  workers: {
    variable: 'COUNTERSIGN_WORKERS',
    kind: wholeOr(1, 64, 'auto'),
    default: 1,
    about:
      'number of processes that serve the port ([More than one core](operations.md#more-than-one-core)); `auto`: one for each core; more than 1, and `auto`, need Redis',
  },
  metricsPort: {
    variable: 'COUNTERSIGN_METRICS_PORT',
    kind: whole(0, 65_535),
    default: undefined,
    defaultText: 'none: no metrics',
    about: 'port on which Prometheus finds [metrics](metrics.md), at `/metrics`; 0 picks a free one',
  },
  metricsHost: {
    variable: 'COUNTERSIGN_METRICS_HOST',
    kind: hostName,
    default: '127.0.0.1',
    about: 'host name or address of that port; `0.0.0.0` lets other machines in',
  },
  metrics: {
    variable: undefined,
    kind: flag,
    default: undefined,
    defaultText: 'on if metricsPort is set',
    about: 'whether metrics are collected, for `countersign.metrics()` in an application that serves them itself',
  },
  logFormat: {
    variable: 'COUNTERSIGN_LOG_FORMAT',
    kind: choice<LogFormat>('auto', 'json', 'pretty'),
    default: 'auto',
    about:
      'form of the log: `json` is one JSON object per line, `pretty` is for people, `auto` is `pretty` on a terminal and `json` elsewhere',
  },
  tracing: {
    variable: 'COUNTERSIGN_TRACING',
    kind: choiceOr<'off' | 'on' | 'link', Tracing>(
      ['off', 'on', 'link'],
      ['begin', 'step', 'background', 'headers'],
      'off, on or link, or what openTelemetry() of countersign/opentelemetry returns',
    ),
    default: 'off',
    about:
      '[traces](tracing.md) through OpenTelemetry; `on`: calls continue the traces of their callers; `link`: they begin traces of their own that link to these',
  },
  webhookUrl: {
    variable: 'COUNTERSIGN_WEBHOOK_URL',
    kind: webhookAddress,
    default: undefined,
    defaultText: 'none',
    about: 'https address that [audit events](audit.md) are delivered to, signed; needs webhookSecret',
  },
  webhookSecret: {
    variable: 'COUNTERSIGN_WEBHOOK_SECRET',
    fromFile: true,
    kind: webhookSecrets,
    default: undefined,
    defaultText: 'none',
    about: 'signs what is delivered to `webhook.url`: `whsec_` and 24 to 64 bytes in base64; of several, each signs',
  },
  nonceStore: {
    variable: undefined,
    kind: objectWith<NonceStore>(['get', 'set', 'delete'], 'an object with the functions get, set and delete'),
    default: undefined,
    defaultText: 'the store',
    about: 'store of your own for nonces: `{get, set(key, value, {ttlSeconds}), delete, take?}`',
  },
  sessionHost: {
    variable: undefined,
    kind: objectWith<Host>(
      [
        'resolveUser',
        'createSession',
        'orderSessionId',
        'endOrderSession',
        'currentSession',
        'signOut',
        'listSessions',
        'revokeSession',
        'introspect',
      ],
      'a host with all methods of the type Host, such as betterAuthHost(auth)',
    ),
    default: undefined,
    defaultText: 'the service itself',
    about: 'host that makes users and sessions, such as `betterAuthHost(auth)`',
  },
  resolveLogin: {
    variable: undefined,
    kind: hook<ResolveLogin>(),
    default: undefined,
    defaultText: 'one user for each wallet',
    about:
      'function that decides who signs in: `(identity) => {id}`, or `null` to refuse; compare `adapterId` and `address`, never the key alone',
  },
  oidcClients: {
    variable: 'COUNTERSIGN_OIDC_CLIENTS',
    kind: file,
    default: undefined,
    defaultText: 'none: no issuer',
    about: 'JSON file with the clients of the OpenID Connect issuer, which it switches on',
  },
  oidcEmail: {
    variable: 'COUNTERSIGN_OIDC_EMAIL',
    kind: text(/^[^\s@{}]*\{user_id\}[^\s@{}]*@[^\s@{}]+$/, 'a template such as {user_id}@users.example'),
    default: undefined,
    defaultText: 'none',
    about: 'template of the e-mail address that clients of the issuer are told, never verified',
  },
  oidcClaims: {
    variable: undefined,
    kind: hook<OwnClaims>(),
    default: undefined,
    defaultText: 'none',
    about: 'function that returns further claims of a user for a client of the issuer',
  },
  oidcPeople: {
    variable: 'COUNTERSIGN_OIDC_PEOPLE',
    kind: file,
    default: undefined,
    defaultText: 'none',
    about:
      'JSON file with further claims of people for clients of the issuer, by user id or wallet; read again on SIGHUP',
  },
  onAuditEvent: {
    variable: undefined,
    kind: hook<AuditEventHook>(),
    default: undefined,
    defaultText: 'none',
    about: 'function that is called with each audit event',
  },
  logger: {
    variable: undefined,
    kind: objectWith<Logger>(
      ['debug', 'info', 'warn', 'error'],
      'an object with the functions debug, info, warn and error',
    ),
    default: undefined,
    defaultText: 'warnings and errors to standard error',
    about: 'receiver of log lines',
  },
} satisfies { readonly [Name in Option]-?: RowOf<Required<FlatOptions>[Name]> }

/** The options, checked and completed. What depends on the listening port, the store or the size
 * of the heap stays `undefined`. */
export type Settings = {
  readonly [Name in Option]:
    | ReturnType<(typeof table)[Name]['kind']['check']>
    | Extract<(typeof table)[Name]['default'], undefined>
}

/** The table's rows, each with the option it is about. */
export const optionRows = Object.entries(table) as [Option, Row][]
