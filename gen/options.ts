// Written by npm run docs from src/service/config/options.ts.
import type { AuditEventHook } from '../src/base/audit.ts'
import type { Logger } from '../src/base/log.ts'
import type { Tracing } from '../src/base/tracing.ts'
import type { NonceStore } from '../src/core/sign-in/nonce.ts'
import type { OwnClaims, ResolveLogin } from '../src/core/users/application.ts'
import type { Host } from '../src/core/users/host.ts'
import type { WalletAdapter } from '../src/core/wallet/wallet.ts'
import type { Limits } from '../src/limits/limits.ts'
import type { Store } from '../src/store/store.ts'

/**
 * TLS of the port.
 */
export interface TlsOptions {
  /**
   * File with the certificate of the port and its chain (PEM), for TLS on the port. Default: none: no TLS. Variable:
   * COUNTERSIGN_TLS_CERT.
   */
  cert?: string
  /**
   * File with the private key of that certificate (PEM, without a passphrase). Default: none. Variable:
   * COUNTERSIGN_TLS_KEY.
   */
  key?: string
}

/**
 * TLS of connections to Redis, with an address that begins with `rediss`.
 */
export interface RedisOptions {
  /**
   * With `rediss`: file with the certificates of the authorities that servers are checked against (PEM). Default: what
   * Node.js trusts. Variable: COUNTERSIGN_REDIS_TLS_CA.
   */
  tlsCa?: string
  /**
   * With `rediss`: file with a client certificate (PEM), for servers that ask for one. Default: none. Variable:
   * COUNTERSIGN_REDIS_TLS_CERT.
   */
  tlsCert?: string
  /**
   * With `rediss`: file with the private key of the client certificate (PEM, without a passphrase). Default: none.
   * Variable: COUNTERSIGN_REDIS_TLS_KEY.
   */
  tlsKey?: string
  /**
   * With `rediss`: host name that the certificates of all servers must have. Default: the host connected to. Variable:
   * COUNTERSIGN_REDIS_TLS_SERVER_NAME.
   */
  tlsServerName?: string
}

/**
 * Access tokens for backends, which are issued if `audiences` is set.
 */
export interface AccessTokenOptions {
  /**
   * Backends for which access tokens are issued, as the tokens' `aud`, such as `https://api.example`. Default: none: no
   * access tokens. Variable: COUNTERSIGN_ACCESS_TOKEN_AUDIENCES.
   */
  audiences?: readonly string[]
  /**
   * Lifetime of an access token in seconds, during which it stays valid even if its session is revoked. Values: 30 to
   * 3600. Default: `300`. Variable: COUNTERSIGN_ACCESS_TOKEN_TTL_SECONDS.
   */
  ttlSeconds?: number
  /**
   * Algorithm that signs access tokens. `EdDSA` (RFC 8037) and `Ed25519` (RFC 9864) are names of one. Values: `EdDSA`,
   * `Ed25519`. Default: `ES256`. Variable: COUNTERSIGN_ACCESS_TOKEN_ALGORITHM.
   */
  algorithm?: 'ES256' | 'EdDSA' | 'Ed25519'
}

/**
 * The OpenID Connect issuer.
 */
export interface OidcOptions {
  /**
   * JSON file with the clients of the issuer, which it switches on; needs the package oidc-provider. Not with
   * `sessionHost`. Default: none: no issuer. Variable: COUNTERSIGN_OIDC_CLIENTS.
   */
  clients?: string
  /**
   * Beginnings of addresses, or whole ones, of metadata documents of clients that are in no file; `*` for all. Needs
   * `oidc.clients`. Default: none. Variable: COUNTERSIGN_OIDC_CLIENT_DOCUMENTS.
   */
  clientDocuments?: readonly string[]
  /**
   * Template with `{user_id}` of the e-mail address that clients get, never verified. Default: none. Variable:
   * COUNTERSIGN_OIDC_EMAIL.
   */
  email?: string
  /**
   * Function that returns further claims of a user for a client. They add to those of `people`, and win where both name
   * one. Default: none. Code only.
   */
  claims?: OwnClaims
  /**
   * Whether terminals and devices sign in by a code that a person types at `/device` (RFC 8628), with clients that have
   * this grant. Values: `on`. Default: `off`. Variable: COUNTERSIGN_OIDC_DEVICE.
   */
  device?: boolean
}

/**
 * The service's own pages; in code, true or false in place of the group.
 */
export interface PageOptions {
  /**
   * Whether the pages offer a demo wallet, whose key is stored unprotected in the browser; never with https. Default:
   * on while publicUrl is a loopback address and http, and with `--lan`. Variable: COUNTERSIGN_DEMO_WALLET.
   */
  demoWallet?: boolean
  /**
   * Logo on the pages: an https address, or a path on this service's origin. Default: none. Variable:
   * COUNTERSIGN_LOGO_URL.
   */
  logoUrl?: string
  /**
   * Whether the logo has the name in it, which then does not stand beside it. Default: off. Variable:
   * COUNTERSIGN_LOGO_HAS_NAME.
   */
  logoHasName?: boolean
  /**
   * Colour of buttons and accents on the pages, such as `#1f6feb`. Default: Countersign's own. Variable:
   * COUNTERSIGN_ACCENT_COLOR.
   */
  accentColor?: string
  /**
   * JSON file with texts of the pages in further languages, or in place of the built-in ones. Default: none. Variable:
   * COUNTERSIGN_TEXTS_FILE.
   */
  textsFile?: string
  /**
   * Whether the sign-in shows three wallets to get, to people who have none. Values: `off`. Default: `on`. Variable:
   * COUNTERSIGN_WALLET_HELP.
   */
  walletHelp?: boolean
}

/**
 * Numbers of the limits, and ceilings on what clients hold at a time.
 */
export interface LimitOptions {
  /**
   * Numbers of the limits by name, such as `sign-in=240,order=1200`; those left out keep their default. Default: each
   * limit has its own. Variable: COUNTERSIGN_RATE_LIMITS.
   */
  rates?: Partial<Limits>
  /**
   * Most connections at a time. Values: 1 to 1000000. Default: one for each 64 KiB of heap. Variable:
   * COUNTERSIGN_MAX_CONNECTIONS.
   */
  connections?: number
  /**
   * Most connections of one client address (IPv6: /64) at a time. Without effect if `trustProxy` is set. Values: 1 to
   * 1000000. Default: `2000`. Variable: COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS.
   */
  connectionsPerAddress?: number
  /**
   * Most requests in progress at a time, open streams included. Values: 1 to 1000000. Default: one for each 96 KiB of
   * heap. Variable: COUNTERSIGN_MAX_REQUESTS.
   */
  requests?: number
  /**
   * Most requests at a time whose body has not arrived. Values: 1 to 1000000. Default: `1000`. Variable:
   * COUNTERSIGN_MAX_PENDING_BODIES.
   */
  pendingBodies?: number
  /**
   * Most open streams of events at a time, over all protocols. Values: 1 to 1000000. Default: one for each 128 KiB of
   * heap. Variable: COUNTERSIGN_MAX_STREAMS.
   */
  streams?: number
  /**
   * Most nonces in the store that one process has issued, about 700 MB in Redis. Values: 1 to 100000000. Default:
   * `1000000`. Variable: COUNTERSIGN_MAX_NONCES.
   */
  nonces?: number
  /**
   * Most orders in the store that one process has started, once for each 2 KiB, at most 2.5 GB in Redis. Values: 1 to
   * 100000000. Default: `1000000`. Variable: COUNTERSIGN_MAX_ORDERS.
   */
  orders?: number
}

/**
 * Metrics for Prometheus; in code, true or false in place of the group.
 */
export interface MetricsOptions {
  /**
   * Port with metrics at `/metrics`; 0 picks a free one, which the log names. Anyone who reaches it can read it.
   * Values: 0 to 65535. Default: none: no metrics. Variable: COUNTERSIGN_METRICS_PORT.
   */
  port?: number
  /**
   * Host name or address of that port; `0.0.0.0` lets other machines in. Default: `127.0.0.1`. Variable:
   * COUNTERSIGN_METRICS_HOST.
   */
  host?: string
  /**
   * Whether metrics are collected, for `countersign.metrics()` in an application that serves them itself. Default: on
   * if `metrics.port` is set. Code only.
   */
  collect?: boolean
}

/**
 * Delivery of audit events by POST.
 */
export interface WebhookOptions {
  /**
   * Address that audit events are delivered to: https, or http on this machine. Needs `webhook.secret`. Default: none.
   * Variable: COUNTERSIGN_WEBHOOK_URL.
   */
  url?: string
  /**
   * Secret that signs what is delivered: `whsec_` and 24 to 64 bytes in base64. Of several, each signs. Default: none.
   * Variable: COUNTERSIGN_WEBHOOK_SECRET, or COUNTERSIGN_WEBHOOK_SECRET_FILE.
   */
  secret?: string | readonly string[]
}

/**
 * Everything that can be set, in code or, except for the options marked "code only", by an environment variable. A
 * value that does not fit stops the start with a `TypeError` of one line that says what to change.
 */
export interface CountersignOptions {
  /**
   * Port to listen on; 0 picks a free one. Values: 0 to 65535. Default: `8080`. Variable: PORT.
   */
  port?: number
  /**
   * Host name or address to listen on. Other machines cannot reach localhost; `0.0.0.0` lets them in. Default:
   * `localhost`. Variable: HOST.
   */
  host?: string
  /**
   * Name at the top of every message that a wallet signs, up to 80 characters. Nonces and orders of another name are
   * not found. Default: `Countersign`. Variable: COUNTERSIGN_APP_NAME.
   */
  appName?: string
  /**
   * Secret that signs session tokens, of 32 random characters or more. Of several, the first signs and all verify.
   * Default: made and kept in SQLite; required with Redis and PostgreSQL. Variable: COUNTERSIGN_SECRET, or
   * COUNTERSIGN_SECRET_FILE.
   */
  secret?: string | readonly string[]
  /**
   * Address where people reach the service: an http or https origin. With https, cookies are Secure. Default:
   * `http://localhost:{port}`, or https with `tls.cert`. Variable: COUNTERSIGN_PUBLIC_URL.
   */
  publicUrl?: string
  /**
   * TLS of the port.
   */
  tls?: TlsOptions
  /**
   * Origins of the web pages that may ask for nonces, start orders and use the session cookie. Default: publicUrl;
   * while that is a loopback address, also the other loopback names. Variable: COUNTERSIGN_TRUSTED_ORIGINS.
   */
  trustedOrigins?: readonly string[]
  /**
   * Check of origins. Turn it off in controlled local tests only. Values: `off`. Default: `on`. Variable:
   * COUNTERSIGN_ENFORCE_ORIGIN.
   */
  enforceOrigin?: boolean
  /**
   * Number of proxies in front, whose `X-Forwarded-` headers count; on is 1. The service must be reachable through them
   * only. Values: 0 to 10. Default: `0`. Variable: COUNTERSIGN_TRUST_PROXY.
   */
  trustProxy?: boolean | number
  /**
   * Path that the REST endpoints are under. Default: `/api/auth`. Variable: COUNTERSIGN_BASE_PATH.
   */
  basePath?: string
  /**
   * Path of the direct sign-in endpoints under `basePath`. Default: `/wallet`. Variable: COUNTERSIGN_ENDPOINT_PREFIX.
   */
  endpointPrefix?: string
  /**
   * Place where state is kept: `sqlite:{file}`, `sqlite::memory:`, `redis://`, `rediss://`, `redis+cluster://h1,h2`,
   * `postgres://`; in code also a store that is already open. Default: `sqlite:./countersign.db`. Variable:
   * COUNTERSIGN_STORE, or COUNTERSIGN_STORE_FILE.
   */
  store?: string | Store
  /**
   * Text that all keys in the store begin with: 1 to 64 letters, digits, dots, underscores and hyphens. Several
   * services on one store need one each. Default: `countersign`. Variable: COUNTERSIGN_KEY_PREFIX.
   */
  keyPrefix?: string
  /**
   * TLS of connections to Redis, with an address that begins with `rediss`.
   */
  redis?: RedisOptions
  /**
   * Lifetime of an order in seconds. Once approved, it has at least 60 seconds left. Values: 1 to 3600. Default: `120`.
   * Variable: COUNTERSIGN_ORDER_TTL_SECONDS.
   */
  orderTtlSeconds?: number
  /**
   * Use of an order's code. `compare`: computer and phone show it, and the user compares. `return`: the phone shows it
   * after the approval, and the user enters it on the computer, against relayed orders. Values: `compare`, `return`.
   * Default: `return`; while publicUrl is a loopback address, and with `--lan`, `compare`. Variable:
   * COUNTERSIGN_CONFIRMATION_CODE.
   */
  confirmationCode?: 'compare' | 'return'
  /**
   * Whether users can have their computer remembered, which then needs no return code for 90 days. Values: `off`.
   * Default: `on`. Variable: COUNTERSIGN_KNOWN_COMPUTERS.
   */
  knownComputers?: boolean
  /**
   * Comparison of the networks of computer and phone. `show`: the phone says whether they are the same. `enforce`: they
   * must be, which locks out phones on mobile data. `off`: they are not compared. Values: `off`, `enforce`. Default:
   * `show`. Variable: COUNTERSIGN_PROXIMITY.
   */
  proximity?: 'show' | 'off' | 'enforce'
  /**
   * Keys of the application's backends, of 32 random characters or more. If set, only calls with one of them as
   * `Authorization: Bearer` start orders, besides the service's own pages, which write no words. An entry can be
   * `name=key`, with a name of up to 32 letters, digits and signs of `_.-`, which is shown to those who approve; two
   * keys of one name are a rotation. Default: none: pages of trusted origins start orders. Variable:
   * COUNTERSIGN_ORDER_START_KEYS, or COUNTERSIGN_ORDER_START_KEYS_FILE.
   */
  orderStartKeys?: readonly string[]
  /**
   * Template of the claim URL that the QR code shows, with `{origin}`, `{orderId}` and, in the fragment,
   * `{claimToken}`. Default: `{origin}/c/{orderId}#token={claimToken}`. Variable: COUNTERSIGN_CLAIM_URL_TEMPLATE.
   */
  claimUrlTemplate?: string
  /**
   * Lifetime of an unused session in seconds; each use starts it anew. The default is 7 days. Values: 1 to 31622400.
   * Default: `604800`. Variable: COUNTERSIGN_SESSION_TTL_SECONDS.
   */
  sessionTtlSeconds?: number
  /**
   * Greatest lifetime of a session in seconds, even if it is used, and that of its cookie. The default is 30 days.
   * Values: sessionTtlSeconds to 63244800. Default: `2592000`. Variable: COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS.
   */
  sessionAbsoluteTtlSeconds?: number
  /**
   * Time in seconds for which the IP addresses of sessions are kept; 0 keeps none. Below 90 days, known computers have
   * none. Values: 0 to 63244800. Default: as long as the session. Variable: COUNTERSIGN_ADDRESS_TTL_SECONDS.
   */
  addressTtlSeconds?: number
  /**
   * Access tokens for backends, which are issued if `audiences` is set.
   */
  accessTokens?: AccessTokenOptions
  /**
   * JSON file with people, by user id or by wallet as `{adapter_id}:{address}`: groups, email, name and other claims.
   * Read again on SIGHUP. Not with `sessionHost`. Default: none. Variable: COUNTERSIGN_PEOPLE.
   */
  people?: string
  /**
   * Who may sign in: `anyone`, or only the `people` of the file, whose sessions count as long as they are listed.
   * Values: `people`. Default: `anyone`. Variable: COUNTERSIGN_ADMIT.
   */
  admit?: 'anyone' | 'people'
  /**
   * Copying of the address of the wallet that signed in last to the user's record. Values: `on`. Default: `off`.
   * Variable: COUNTERSIGN_SYNC_ADDRESS_TO_USER.
   */
  syncAddressToUser?: boolean
  /**
   * Copying of the public key of the wallet that signed in last to the user's record. Values: `on`. Default: `off`.
   * Variable: COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER.
   */
  syncPublicKeyToUser?: boolean
  /**
   * The OpenID Connect issuer.
   */
  oidc?: OidcOptions
  /**
   * Wallet adapters: names (`nimiq`, `ed25519`, `ethereum`, `solana`); in code also adapters of your own. A proof that
   * names none is tried with `nimiq` and `ed25519`, in the order given. Default: `nimiq,ed25519`. Variable:
   * COUNTERSIGN_ADAPTERS.
   */
  adapters?: readonly (string | WalletAdapter)[]
  /**
   * JSON-RPC servers by EVM chain id, such as `1=https://rpc.example,8453=https://base.example`, which check contract
   * wallets (EIP-1271, EIP-6492). Default: none: no contract wallets. Variable: COUNTERSIGN_EVM_RPC, or
   * COUNTERSIGN_EVM_RPC_FILE.
   */
  evmRpc?: Readonly<Record<string, string>>
  /**
   * Ed25519 verifier: `portable` is tweetnacl, `native` is node:crypto, `auto` is `native` if it passes a self-test.
   * Values: `portable`, `native`. Default: `auto`. Variable: COUNTERSIGN_VERIFIER.
   */
  verifier?: 'auto' | 'portable' | 'native'
  /**
   * Lifetime of a nonce in seconds. Values: 1 to 3600. Default: `300`. Variable: COUNTERSIGN_NONCE_TTL_SECONDS.
   */
  nonceTtlSeconds?: number
  /**
   * The service's own pages; in code, true or false in place of the group. Whether the service's own pages are served.
   * `/` is the demo on loopback names and with `--lan`; elsewhere it leads to the sign-in or account page. Values:
   * `off`. Default: `on`. Variable: COUNTERSIGN_PAGES.
   */
  pages?: boolean | PageOptions
  /**
   * Whether the calls of each client address are limited; `off` is for tests. Values: `off`. Default: `on`. Variable:
   * COUNTERSIGN_RATE_LIMIT.
   */
  rateLimit?: boolean
  /**
   * Numbers of the limits, and ceilings on what clients hold at a time.
   */
  limits?: LimitOptions
  /**
   * Form of the log: `json` has one object per line, `pretty` is for people, `auto` is `pretty` on a terminal only.
   * Values: `json`, `pretty`. Default: `auto`. Variable: COUNTERSIGN_LOG_FORMAT.
   */
  logFormat?: 'auto' | 'json' | 'pretty'
  /**
   * Metrics for Prometheus; in code, true or false in place of the group.
   */
  metrics?: boolean | MetricsOptions
  /**
   * Traces through OpenTelemetry. `on`: calls continue the traces of their callers. `link`: they begin traces of their
   * own that link to these. In code also what `openTelemetry()` returns. Values: `on`, `link`. Default: `off`.
   * Variable: COUNTERSIGN_TRACING.
   */
  tracing?: 'off' | 'on' | 'link' | Tracing
  /**
   * Time in seconds after SIGTERM, or in `drain()`, in which calls are still served. Values: 0 to 300. Default: `2`.
   * Variable: COUNTERSIGN_DRAIN_SECONDS.
   */
  drainSeconds?: number
  /**
   * Delivery of audit events by POST.
   */
  webhook?: WebhookOptions
  /**
   * Store of your own for nonces: `{get, set(key, value, {ttlSeconds}), delete, take?}`, best with an atomic `take`.
   * Default: the store. Code only.
   */
  nonceStore?: NonceStore
  /**
   * Host that makes users and sessions, such as `betterAuthHost(auth)`; the options about sessions and users then do
   * nothing. Default: the service itself. Code only.
   */
  sessionHost?: Host
  /**
   * Function that decides which user a proven identity is: `(identity) => {id}`, or `null` to refuse. Compare
   * `adapterId` and `address`, never the key alone. Default: one user for each wallet. Code only.
   */
  resolveLogin?: ResolveLogin
  /**
   * Function that is called with each audit event; its result is not awaited. Default: none; the log has the events.
   * Code only.
   */
  onAuditEvent?: AuditEventHook
  /**
   * Receiver of log lines. Default: warnings and errors to standard error. Code only.
   */
  logger?: Logger
}
