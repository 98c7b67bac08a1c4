import type { AuditEventHook } from '../../base/audit.ts'
import type { LogFormat, Logger } from '../../base/log.ts'
import type { Tracing } from '../../base/tracing.ts'
import type { AccessTokenAlgorithm } from '../../core/access-tokens.ts'
import { nonceTtl } from '../../core/challenge-text.ts'
import type { NonceStore } from '../../core/sign-in/nonce.ts'
import type { OwnClaims, ResolveLogin } from '../../core/users/application.ts'
import type { Host } from '../../core/users/host.ts'
import type { WalletAdapter } from '../../core/wallet/wallet.ts'
import { adapterIds } from '../../shared/adapters.ts'
import { defaultClaimUrlTemplate } from '../../shared/page-names.ts'
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
  documentPrefixes,
  file,
  flag,
  hook,
  hostName,
  httpOrigin,
  imageAddress,
  integer,
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
} from './kinds.ts'
import { type Group, group, type Option, option, optional } from './option-types.ts'

// Every option of `createCountersign`, once: its variable, check, default and text. Types, refusals, comments in
// gen/options.ts and docs/settings.md follow from it. To add one: a row here, `npm run docs`, and its use.

const daySeconds = 86_400

const start = {
  port: option({
    about: 'Port to listen on; 0 picks a free one.',
    variable: 'PORT',
    kind: integer(0, 65_535),
    default: 8080,
  }),
  host: option({
    about: 'Host name or address to listen on. Other machines cannot reach localhost; `0.0.0.0` lets them in.',
    variable: 'HOST',
    kind: hostName,
    default: 'localhost',
  }),
  appName: option({
    about:
      'Name at the top of every message that a wallet signs, up to 80 characters. Nonces and orders of another ' +
      'name are not found.',
    variable: 'COUNTERSIGN_APP_NAME',
    kind: line(80),
    default: 'Countersign',
  }),
  secret: optional({
    about:
      'Secret that signs session tokens, of 32 random characters or more. Of several, the first signs and all verify.',
    variable: 'COUNTERSIGN_SECRET',
    fromFile: true,
    kind: secrets(32),
    otherwise: 'made and kept in SQLite; required with Redis and PostgreSQL',
  }),
}

const addresses = {
  publicUrl: optional({
    about: 'Address where people reach the service: an http or https origin. With https, cookies are Secure.',
    variable: 'COUNTERSIGN_PUBLIC_URL',
    kind: httpOrigin,
    otherwise: '`http://localhost:{port}`, or https with `tls.cert`',
  }),
  tls: group('TlsOptions', 'TLS of the port.', {
    cert: optional({
      about:
        'File with the certificate of the port and its chain (PEM), for [TLS on the ' +
        'port](operations.md#tls-on-the-port).',
      variable: 'COUNTERSIGN_TLS_CERT',
      kind: file,
      otherwise: 'none: no TLS',
    }),
    key: optional({
      about: 'File with the private key of that certificate (PEM, without a passphrase).',
      variable: 'COUNTERSIGN_TLS_KEY',
      kind: file,
      otherwise: 'none',
    }),
  }),
  trustedOrigins: optional({
    about: 'Origins of the web pages that may ask for nonces, start orders and use the session cookie.',
    variable: 'COUNTERSIGN_TRUSTED_ORIGINS',
    kind: origins,
    otherwise: 'publicUrl; while that is a loopback address, also the other loopback names',
  }),
  enforceOrigin: option({
    about: 'Check of origins. Turn it off in controlled local tests only.',
    variable: 'COUNTERSIGN_ENFORCE_ORIGIN',
    kind: flag,
    default: true,
  }),
  trustProxy: option({
    about:
      'Number of [proxies](proxies.md#trust) in front, whose `X-Forwarded-` headers count; on is 1. The service ' +
      'must be reachable through them only.',
    variable: 'COUNTERSIGN_TRUST_PROXY',
    kind: count(10),
    default: 0,
  }),
  basePath: option({
    about: 'Path that the REST endpoints are under.',
    variable: 'COUNTERSIGN_BASE_PATH',
    kind: path,
    default: '/api/auth',
  }),
  endpointPrefix: option({
    about: 'Path of the direct sign-in endpoints under `basePath`.',
    variable: 'COUNTERSIGN_ENDPOINT_PREFIX',
    kind: path,
    default: '/wallet',
  }),
}

const stores = {
  store: option({
    about:
      'Place where state is kept: `sqlite:{file}`, `sqlite::memory:`, `redis://`, `rediss://`, ' +
      '`redis+cluster://h1,h2`, [`postgres://`](postgresql.md); in code also a store ' +
      'that is already open.',
    variable: 'COUNTERSIGN_STORE',
    fromFile: true,
    kind: textOr(
      /^\S.*$/,
      objectWith<Store>('Store', ['now', ...storeOperations, 'close'], 'an opened store'),
      'a store address such as sqlite:./countersign.db, or an opened store',
    ),
    default: 'sqlite:./countersign.db',
  }),
  keyPrefix: option({
    about:
      'Text that all keys in the store begin with: 1 to 64 letters, digits, dots, underscores and hyphens. ' +
      '[Several services on one store](operations.md#several-services-on-one-store) need one each.',
    variable: 'COUNTERSIGN_KEY_PREFIX',
    kind: text(keyPrefixPattern, keyPrefixForm),
    default: defaultKeyPrefix,
  }),
  redis: group('RedisOptions', 'TLS of connections to Redis, with an address that begins with `rediss`.', {
    tlsCa: optional({
      about: 'With `rediss`: file with the certificates of the authorities that servers are checked against (PEM).',
      variable: 'COUNTERSIGN_REDIS_TLS_CA',
      kind: file,
      otherwise: 'what Node.js trusts',
    }),
    tlsCert: optional({
      about: 'With `rediss`: file with a client certificate (PEM), for servers that ask for one.',
      variable: 'COUNTERSIGN_REDIS_TLS_CERT',
      kind: file,
      otherwise: 'none',
    }),
    tlsKey: optional({
      about: 'With `rediss`: file with the private key of the client certificate (PEM, without a passphrase).',
      variable: 'COUNTERSIGN_REDIS_TLS_KEY',
      kind: file,
      otherwise: 'none',
    }),
    tlsServerName: optional({
      about: 'With `rediss`: host name that the certificates of all servers must have.',
      variable: 'COUNTERSIGN_REDIS_TLS_SERVER_NAME',
      kind: text(/^(?=.*[A-Za-z])[A-Za-z0-9._-]{1,253}$/, 'a host name'),
      otherwise: 'the host connected to',
    }),
  }),
}

const orders = {
  orderTtlSeconds: option({
    about: 'Lifetime of an order in seconds. Once approved, it has at least 60 seconds left.',
    variable: 'COUNTERSIGN_ORDER_TTL_SECONDS',
    kind: integer(1, 3600),
    default: 120,
  }),
  confirmationCode: optional({
    about:
      "Use of an order's code. `compare`: computer and phone show it, and the user compares. `return`: the phone " +
      'shows it after the approval, and the user enters it on the computer, against ' +
      '[relayed orders](cross-device-security.md).',
    variable: 'COUNTERSIGN_CONFIRMATION_CODE',
    kind: choice('compare', 'return'),
    otherwise: '`return`; while publicUrl is a loopback address, and with `--lan`, `compare`',
  }),
  knownComputers: option({
    about: 'Whether users can have their computer remembered, which then needs no return code for 90 days.',
    variable: 'COUNTERSIGN_KNOWN_COMPUTERS',
    kind: flag,
    default: true,
  }),
  proximity: option({
    about:
      'Comparison of the networks of computer and phone. `show`: the phone says whether they are the same. ' +
      '`enforce`: they must be, which locks out phones on mobile data. `off`: they are not compared.',
    variable: 'COUNTERSIGN_PROXIMITY',
    kind: choice('show', 'off', 'enforce'),
    default: 'show',
  }),
  orderStartKeys: optional({
    about:
      "Keys of the application's backends, of 32 random characters or more. If set, only calls with one of them " +
      "as `Authorization: Bearer` start orders, besides the service's own pages, which write no words. An entry " +
      'can be `name=key`, with a name of up to 32 letters, digits ' +
      'and signs of `_.-`, which is shown to those who approve; two keys of one name are a rotation.',
    variable: 'COUNTERSIGN_ORDER_START_KEYS',
    fromFile: true,
    kind: bearerKeys(32),
    otherwise: 'none: pages of trusted origins start orders',
  }),
  claimUrlTemplate: option({
    about:
      'Template of the claim URL that the QR code shows, with `{origin}`, `{orderId}` and, in the fragment, ' +
      '`{claimToken}`.',
    variable: 'COUNTERSIGN_CLAIM_URL_TEMPLATE',
    kind: claimUrlTemplate,
    default: defaultClaimUrlTemplate,
  }),
}

const sessions = {
  sessionTtlSeconds: option({
    about: 'Lifetime of an unused session in seconds; each use starts it anew. The default is 7 days.',
    variable: 'COUNTERSIGN_SESSION_TTL_SECONDS',
    kind: integer(1, 366 * daySeconds),
    default: 7 * daySeconds,
  }),
  sessionAbsoluteTtlSeconds: option({
    about:
      'Greatest lifetime of a session in seconds, even if it is used, and that of its cookie. The default is 30 days.',
    variable: 'COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS',
    kind: integer(1, 732 * daySeconds),
    notBelow: 'sessionTtlSeconds',
    default: 30 * daySeconds,
  }),
  addressTtlSeconds: optional({
    about:
      'Time in seconds for which the IP addresses of sessions are kept; 0 keeps none. Below 90 days, known ' +
      'computers have none.',
    variable: 'COUNTERSIGN_ADDRESS_TTL_SECONDS',
    kind: integer(0, 732 * daySeconds),
    otherwise: 'as long as the session',
  }),
  accessTokens: group('AccessTokenOptions', 'Access tokens for backends, which are issued if `audiences` is set.', {
    audiences: optional({
      about:
        "Backends for which [access tokens](access-tokens.md) are issued, as the tokens' `aud`, such as " +
        '`https://api.example`.',
      variable: 'COUNTERSIGN_ACCESS_TOKEN_AUDIENCES',
      kind: audiences,
      otherwise: 'none: no access tokens',
    }),
    ttlSeconds: option({
      about: 'Lifetime of an access token in seconds, during which it stays valid even if its session is revoked.',
      variable: 'COUNTERSIGN_ACCESS_TOKEN_TTL_SECONDS',
      kind: integer(30, 3600),
      default: 300,
    }),
    algorithm: option({
      about: 'Algorithm that signs access tokens. `EdDSA` (RFC 8037) and `Ed25519` (RFC 9864) are names of one.',
      variable: 'COUNTERSIGN_ACCESS_TOKEN_ALGORITHM',
      kind: choice<AccessTokenAlgorithm>('ES256', 'EdDSA', 'Ed25519'),
      default: 'ES256',
    }),
  }),
  people: optional({
    about:
      'JSON file with [people](private-applications.md#the-people-file), by user id or by wallet as ' +
      '`{adapter_id}:{address}`: groups, email, name and other claims. Read again on SIGHUP. Not with `sessionHost`.',
    variable: 'COUNTERSIGN_PEOPLE',
    kind: file,
    otherwise: 'none',
  }),
  admit: option({
    about:
      'Who may sign in: `anyone`, or only the `people` of the file, whose sessions count as long as they are ' +
      'listed.',
    variable: 'COUNTERSIGN_ADMIT',
    kind: choice('anyone', 'people'),
    default: 'anyone',
  }),
  syncAddressToUser: option({
    about: "Copying of the address of the wallet that signed in last to the user's record.",
    variable: 'COUNTERSIGN_SYNC_ADDRESS_TO_USER',
    kind: flag,
    default: false,
  }),
  syncPublicKeyToUser: option({
    about: "Copying of the public key of the wallet that signed in last to the user's record.",
    variable: 'COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER',
    kind: flag,
    default: false,
  }),
}

const oidc = {
  oidc: group('OidcOptions', 'The OpenID Connect issuer.', {
    clients: optional({
      about:
        'JSON file with the clients of the [issuer](oidc.md), which it switches on; needs the package ' +
        'oidc-provider. Not with `sessionHost`.',
      variable: 'COUNTERSIGN_OIDC_CLIENTS',
      kind: file,
      otherwise: 'none: no issuer',
    }),
    clientDocuments: optional({
      about:
        'Beginnings of addresses, or whole ones, of metadata documents of [clients that are in no ' +
        'file](mcp.md#clients-that-come-with-a-document); `*` for all. Needs `oidc.clients`.',
      variable: 'COUNTERSIGN_OIDC_CLIENT_DOCUMENTS',
      kind: documentPrefixes,
      otherwise: 'none',
    }),
    email: optional({
      about: 'Template with `{user_id}` of the e-mail address that clients get, never verified.',
      variable: 'COUNTERSIGN_OIDC_EMAIL',
      kind: text(/^[^\s@{}]*\{user_id\}[^\s@{}]*@[^\s@{}]+$/, 'a template such as {user_id}@users.example'),
      otherwise: 'none',
    }),
    claims: optional({
      about:
        'Function that returns further claims of a user for a client. They add to those of `people`, and win ' +
        'where both name one.',
      kind: hook<OwnClaims>('OwnClaims'),
      otherwise: 'none',
    }),
    device: option({
      about:
        'Whether [terminals and devices](terminals.md) sign in by a code that a person types at `/device` ' +
        '(RFC 8628), with clients that have this grant.',
      variable: 'COUNTERSIGN_OIDC_DEVICE',
      kind: flag,
      default: false,
    }),
  }),
}

const wallets = {
  adapters: option({
    about:
      `Wallet adapters: names (${adapterIds.map((id) => `\`${id}\``).join(', ')}); in code also adapters of ` +
      `your own. A proof that names none is tried with \`nimiq\` and \`ed25519\`, in the order given.`,
    variable: 'COUNTERSIGN_ADAPTERS',
    kind: list<string | WalletAdapter>('(string | WalletAdapter)', 'a list of wallet adapters such as nimiq,ed25519'),
    default: ['nimiq', 'ed25519'],
  }),
  evmRpc: optional({
    about:
      'JSON-RPC servers by EVM chain id, such as `1=https://rpc.example,8453=https://base.example`, which check ' +
      'contract wallets (EIP-1271, EIP-6492).',
    variable: 'COUNTERSIGN_EVM_RPC',
    fromFile: true,
    kind: rpcAddresses,
    otherwise: 'none: no contract wallets',
  }),
  verifier: option({
    about:
      'Ed25519 verifier: `portable` is tweetnacl, `native` is node:crypto, `auto` is `native` if it passes a ' +
      'self-test.',
    variable: 'COUNTERSIGN_VERIFIER',
    kind: choice('auto', 'portable', 'native'),
    default: 'auto',
  }),
  nonceTtlSeconds: option({
    about: 'Lifetime of a nonce in seconds.',
    variable: 'COUNTERSIGN_NONCE_TTL_SECONDS',
    kind: integer(nonceTtl.minSeconds, nonceTtl.maxSeconds),
    default: nonceTtl.defaultSeconds,
  }),
}

const pages = {
  pages: group('PageOptions', "The service's own pages; in code, true or false in place of the group.", {
    served: option({
      about:
        "Whether the service's own pages are served. `/` is the demo on loopback names and with `--lan`; elsewhere " +
        'it leads to the sign-in or account page.',
      variable: 'COUNTERSIGN_PAGES',
      ofGroup: 'only',
      kind: flag,
      default: true,
    }),
    demoWallet: optional({
      about: 'Whether the pages offer a demo wallet, whose key is stored unprotected in the browser; never with https.',
      variable: 'COUNTERSIGN_DEMO_WALLET',
      kind: flag,
      otherwise: 'on while publicUrl is a loopback address and http, and with `--lan`',
    }),
    logoUrl: optional({
      about: "Logo on the pages: an https address, or a path on this service's origin.",
      variable: 'COUNTERSIGN_LOGO_URL',
      kind: imageAddress,
      otherwise: 'none',
    }),
    logoHasName: optional({
      about: 'Whether the logo has the name in it, which then does not stand beside it.',
      variable: 'COUNTERSIGN_LOGO_HAS_NAME',
      kind: flag,
      otherwise: 'off',
    }),
    accentColor: optional({
      about: 'Colour of buttons and accents on the pages, such as `#1f6feb`.',
      variable: 'COUNTERSIGN_ACCENT_COLOR',
      kind: colour,
      otherwise: "Countersign's own",
    }),
    textsFile: optional({
      about:
        'JSON file with [texts](pages.md#texts) of the pages in further languages, or in place of the built-in ones.',
      variable: 'COUNTERSIGN_TEXTS_FILE',
      kind: file,
      otherwise: 'none',
    }),
    walletHelp: option({
      about: 'Whether the sign-in shows three wallets to get, to people who have none.',
      variable: 'COUNTERSIGN_WALLET_HELP',
      kind: flag,
      default: true,
    }),
  }),
}

const limits = {
  rateLimit: option({
    about: 'Whether the calls of each client address are limited; `off` is for tests.',
    variable: 'COUNTERSIGN_RATE_LIMIT',
    kind: flag,
    default: true,
  }),
  limits: group('LimitOptions', 'Numbers of the limits, and ceilings on what clients hold at a time.', {
    rates: optional({
      about:
        'Numbers of the [limits](operations.md#rate-limits) by name, such as `sign-in=240,order=1200`; those ' +
        'left out keep their default.',
      variable: 'COUNTERSIGN_RATE_LIMITS',
      kind: rateLimits,
      otherwise: 'each limit has its own',
    }),
    connections: optional({
      about: 'Most connections at a time.',
      variable: 'COUNTERSIGN_MAX_CONNECTIONS',
      kind: integer(1, 1_000_000),
      otherwise: 'one for each 64 KiB of heap',
    }),
    connectionsPerAddress: option({
      about: 'Most connections of one client address (IPv6: /64) at a time. Without effect if `trustProxy` is set.',
      variable: 'COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS',
      kind: integer(1, 1_000_000),
      default: 2000,
    }),
    requests: optional({
      about: 'Most requests in progress at a time, open streams included.',
      variable: 'COUNTERSIGN_MAX_REQUESTS',
      kind: integer(1, 1_000_000),
      otherwise: 'one for each 96 KiB of heap',
    }),
    pendingBodies: option({
      about: 'Most requests at a time whose body has not arrived.',
      variable: 'COUNTERSIGN_MAX_PENDING_BODIES',
      kind: integer(1, 1_000_000),
      default: 1000,
    }),
    streams: optional({
      about: 'Most open streams of events at a time, over all protocols.',
      variable: 'COUNTERSIGN_MAX_STREAMS',
      kind: integer(1, 1_000_000),
      otherwise: 'one for each 128 KiB of heap',
    }),
    nonces: option({
      about: 'Most nonces in the store that one process has issued, about 700 MB in Redis.',
      variable: 'COUNTERSIGN_MAX_NONCES',
      kind: integer(1, 100_000_000),
      default: 1_000_000,
    }),
    orders: option({
      about: 'Most orders in the store that one process has started, once for each 2 KiB, at most 2.5 GB in Redis.',
      variable: 'COUNTERSIGN_MAX_ORDERS',
      kind: integer(1, 100_000_000),
      default: 1_000_000,
    }),
  }),
}

const operations = {
  logFormat: option({
    about:
      'Form of the log: `json` has one object per line, `pretty` is for people, `auto` is `pretty` on a terminal only.',
    variable: 'COUNTERSIGN_LOG_FORMAT',
    kind: choice<LogFormat>('auto', 'json', 'pretty'),
    default: 'auto',
  }),
  metrics: group(
    'MetricsOptions',
    '[Metrics](metrics.md) for Prometheus; in code, true or false in place of the group.',
    {
      port: optional({
        about:
          'Port with [metrics](metrics.md) at `/metrics`; 0 picks a free one, which the log names. Anyone who ' +
          'reaches it can read it.',
        variable: 'COUNTERSIGN_METRICS_PORT',
        kind: integer(0, 65_535),
        otherwise: 'none: no metrics',
      }),
      host: option({
        about: 'Host name or address of that port; `0.0.0.0` lets other machines in.',
        variable: 'COUNTERSIGN_METRICS_HOST',
        kind: hostName,
        default: '127.0.0.1',
      }),
      collect: optional({
        about: 'Whether metrics are collected, for `countersign.metrics()` in an application that serves them itself.',
        ofGroup: 'too',
        kind: flag,
        otherwise: 'on if `metrics.port` is set',
      }),
    },
  ),
  tracing: option({
    about:
      '[Traces](tracing.md) through OpenTelemetry. `on`: calls continue the traces of their callers. `link`: ' +
      'they begin traces of their own that link to these. In code also what `openTelemetry()` returns.',
    variable: 'COUNTERSIGN_TRACING',
    kind: choiceOr<'off' | 'on' | 'link', Tracing>(
      ['off', 'on', 'link'],
      objectWith('Tracing', ['begin', 'step', 'background', 'headers'], 'a tracing'),
      'off, on or link, or what openTelemetry() of countersign/opentelemetry returns',
    ),
    default: 'off',
  }),
  drainSeconds: option({
    about:
      'Time in seconds after SIGTERM, or in `drain()`, in which calls are ' + '[still served](operations.md#stopping).',
    variable: 'COUNTERSIGN_DRAIN_SECONDS',
    kind: integer(0, 300),
    default: 2,
  }),
  webhook: group('WebhookOptions', 'Delivery of audit events by POST.', {
    url: optional({
      about:
        'Address that [audit events](audit.md) are delivered to: https, or http on this machine. Needs ' +
        '`webhook.secret`.',
      variable: 'COUNTERSIGN_WEBHOOK_URL',
      kind: webhookAddress,
      otherwise: 'none',
    }),
    secret: optional({
      about: 'Secret that signs what is delivered: `whsec_` and 24 to 64 bytes in base64. Of several, each signs.',
      variable: 'COUNTERSIGN_WEBHOOK_SECRET',
      fromFile: true,
      kind: webhookSecrets,
      otherwise: 'none',
    }),
  }),
}

const codeOnly = {
  nonceStore: optional({
    about:
      'Store of your own for nonces: `{get, set(key, value, {ttlSeconds}), delete, take?}`, [best with an atomic ' +
      '`take`](operations.md#a-nonce-store-of-your-own).',
    kind: objectWith<NonceStore>(
      'NonceStore',
      ['get', 'set', 'delete'],
      'an object with the functions get, set and delete',
    ),
    otherwise: 'the store',
  }),
  sessionHost: optional({
    about:
      '[Host](operations.md#hooks-of-the-application) that makes users and sessions, such as ' +
      '`betterAuthHost(auth)`; the options about sessions and users then do nothing.',
    kind: objectWith<Host>(
      'Host',
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
    otherwise: 'the service itself',
  }),
  resolveLogin: optional({
    about:
      '[Function](operations.md#hooks-of-the-application) that decides which user a proven identity is: ' +
      '`(identity) => {id}`, or `null` to refuse. Compare `adapterId` and `address`, never the key alone.',
    kind: hook<ResolveLogin>('ResolveLogin'),
    otherwise: 'one user for each wallet',
  }),
  onAuditEvent: optional({
    about: 'Function that is called with each audit event; its result is not awaited.',
    kind: hook<AuditEventHook>('AuditEventHook'),
    otherwise: 'none; the log has the events',
  }),
  logger: optional({
    about: 'Receiver of log lines.',
    kind: objectWith<Logger>(
      'Logger',
      ['debug', 'info', 'warn', 'error'],
      'an object with the functions debug, info, warn and error',
    ),
    otherwise: 'warnings and errors to standard error',
  }),
}

/** The options by subject, in the order of docs/settings.md. */
export const sections = {
  Start: start,
  'Addresses and origins': addresses,
  Store: stores,
  Orders: orders,
  Sessions: sessions,
  'OpenID Connect': oidc,
  Wallets: wallets,
  Pages: pages,
  Limits: limits,
  Operations: operations,
  'Code only': codeOnly,
}

/** All options and groups of options, by name. */
export const tree = {
  ...start,
  ...addresses,
  ...stores,
  ...orders,
  ...sessions,
  ...oidc,
  ...wallets,
  ...pages,
  ...limits,
  ...operations,
  ...codeOnly,
}

type Tree = typeof tree

type GivenTo<Entry> =
  Entry extends Option<infer Given, unknown>
    ? Given
    : Entry extends Group<infer Options>
      ? boolean | { readonly [Name in keyof Options]?: GivenTo<Options[Name]> }
      : never

type ResolvedOf<Entry> =
  Entry extends Option<never, infer Value>
    ? Value
    : Entry extends Group<infer Options>
      ? { readonly [Name in keyof Options]: ResolvedOf<Options[Name]> }
      : never

/** What the kinds of the options take. The types in gen/options.ts are written from it. */
export type Given = { readonly [Name in keyof Tree]?: GivenTo<Tree[Name]> }

/** The options, checked and completed. What depends on the port, the store or the heap stays `undefined`. */
export type Settings = { readonly [Name in keyof Tree]: ResolvedOf<Tree[Name]> }
