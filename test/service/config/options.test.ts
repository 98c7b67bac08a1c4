import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { defaultLimits } from '../../../src/limits/limits.ts'
import type { Option } from '../../../src/service/config/option-types.ts'
import { allOptions, optionsFromEnvironment, resolveSettings } from '../../../src/service/config.ts'
import { optionsWith, refusal, settingOf } from './support.ts'

/** What an option promises. It is written down a second time here, so that no number changes by mistake. */
interface Promised {
  /** Its environment variable; absent if it can only be set in code. */
  readonly variable?: string
  readonly default?: unknown
  /** Smallest and largest number. */
  readonly range?: readonly [min: number, max: number]
  /** All words. */
  readonly choices?: readonly string[]
  /** Texts of the shortest and the greatest length, and others just inside the bounds, one of them not the default. */
  readonly inside?: readonly unknown[]
  /** Values just outside the bounds. */
  readonly outside?: readonly unknown[]
  /** Whether it is true or false. */
  readonly flag?: true
}

const x = (length: number): string => 'x'.repeat(length)
const day = 86_400
const most = 1_000_000
const file = { inside: ['x', './a b.pem', '/tls/cert.pem'], outside: ['', ' ', ' x', 'x\n', 'x ', 'a\nb'] }
const hostName = { inside: ['x', x(253), '::1', '0.0.0.0'], outside: ['', x(254), 'a/b', 'a b'] }
const notAPath = ['', '/', 'a', '/a/', '//a', '/a//b', '/a b', '/a?b', '/a#b', '/%2e']
const webhookSecret = `whsec_${'A'.repeat(32)}`
const functions = { get: async () => null, set: async () => {}, delete: async () => {} }

const hostMethods = [
  'resolveUser',
  'createSession',
  'orderSessionId',
  'endOrderSession',
  'currentSession',
  'signOut',
  'listSessions',
  'revokeSession',
  'introspect',
]
const wholeHost = Object.fromEntries(hostMethods.map((name) => [name, async () => undefined]))

const promised: Readonly<Record<string, Promised>> = {
  port: { variable: 'PORT', default: 8080, range: [0, 65_535] },
  host: { variable: 'HOST', default: 'localhost', ...hostName },
  publicUrl: {
    variable: 'COUNTERSIGN_PUBLIC_URL',
    inside: ['http://a.example', 'https://a.example:8443'],
    outside: [
      ...['', 'a.example', 'ftp://a.example', 'app://a.example', 'https://'],
      ...['https://a.example/path', 'https://u:p@a.example'],
    ],
  },
  'tls.cert': { variable: 'COUNTERSIGN_TLS_CERT', ...file },
  'tls.key': { variable: 'COUNTERSIGN_TLS_KEY', ...file },
  store: {
    variable: 'COUNTERSIGN_STORE',
    default: 'sqlite:./countersign.db',
    inside: ['sqlite::memory:', 'redis://localhost'],
    outside: ['', ' x', ' sqlite:a', functions],
  },
  keyPrefix: {
    variable: 'COUNTERSIGN_KEY_PREFIX',
    default: 'countersign',
    inside: ['x', x(64), 'A.b_c-9'],
    outside: ['', x(65), 'a:b', 'a{b', '{a}', 'a*', 'a b', 'a\n', 'é'],
  },
  'redis.tlsCa': { variable: 'COUNTERSIGN_REDIS_TLS_CA', ...file },
  'redis.tlsCert': { variable: 'COUNTERSIGN_REDIS_TLS_CERT', ...file },
  'redis.tlsKey': { variable: 'COUNTERSIGN_REDIS_TLS_KEY', ...file },
  'redis.tlsServerName': {
    variable: 'COUNTERSIGN_REDIS_TLS_SERVER_NAME',
    inside: ['x', x(253), 'redis.example'],
    outside: ['', x(254), '127.0.0.1', '::1', 'a b'],
  },
  secret: {
    variable: 'COUNTERSIGN_SECRET',
    inside: [[x(32)], [x(32), x(1000)]],
    outside: ['', x(31), [x(31)], [x(32), x(31)], [x(32), ''], [x(32), 1], []],
  },
  appName: {
    variable: 'COUNTERSIGN_APP_NAME',
    default: 'Countersign',
    inside: ['x', x(80), 'é'.repeat(80)],
    outside: ['', x(81), ' x', 'x ', 'a\nb', 'a\u202eb'],
  },
  trustedOrigins: {
    variable: 'COUNTERSIGN_TRUSTED_ORIGINS',
    inside: [[], ['https://a.example'], ['https://a.example', 'app://shell']],
    outside: [
      ...[['*'], [''], ['https://a.example', ''], [1], 'https://a.example'],
      ...[['https://*.example'], ['https://a.example/path'], ['https://a.example/'.repeat(2)]],
    ],
  },
  enforceOrigin: { variable: 'COUNTERSIGN_ENFORCE_ORIGIN', default: true, flag: true },
  basePath: {
    variable: 'COUNTERSIGN_BASE_PATH',
    default: '/api/auth',
    inside: ['/a', '/a/b.c_~-9'],
    outside: notAPath,
  },
  endpointPrefix: {
    variable: 'COUNTERSIGN_ENDPOINT_PREFIX',
    default: '/wallet',
    inside: ['/a'],
    outside: notAPath,
  },
  nonceTtlSeconds: { variable: 'COUNTERSIGN_NONCE_TTL_SECONDS', default: 300, range: [1, 3600] },
  orderTtlSeconds: { variable: 'COUNTERSIGN_ORDER_TTL_SECONDS', default: 120, range: [1, 3600] },
  sessionTtlSeconds: { variable: 'COUNTERSIGN_SESSION_TTL_SECONDS', default: 7 * day, range: [1, 366 * day] },
  'accessTokens.audiences': {
    variable: 'COUNTERSIGN_ACCESS_TOKEN_AUDIENCES',
    inside: [['a'], ['https://api.example', 'orders'], [x(200)]],
    outside: [[], [''], [x(201)], ['a b'], ['a,b'], ['é'], ['a', 'a'], ['a', 1], 'a'],
  },
  'accessTokens.ttlSeconds': { variable: 'COUNTERSIGN_ACCESS_TOKEN_TTL_SECONDS', default: 300, range: [30, 3600] },
  'accessTokens.algorithm': {
    variable: 'COUNTERSIGN_ACCESS_TOKEN_ALGORITHM',
    default: 'ES256',
    choices: ['ES256', 'EdDSA', 'Ed25519'],
    outside: ['RS256', 'none'],
  },
  sessionAbsoluteTtlSeconds: {
    variable: 'COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS',
    default: 30 * day,
    // It cannot be below sessionTtlSeconds, whose default is 7 days.
    range: [7 * day, 732 * day],
  },
  addressTtlSeconds: { variable: 'COUNTERSIGN_ADDRESS_TTL_SECONDS', range: [0, 63_244_800] },
  adapters: {
    variable: 'COUNTERSIGN_ADAPTERS',
    default: ['nimiq', 'ed25519'],
    inside: [['nimiq'], ['ed25519']],
    outside: ['nimiq', {}],
  },
  verifier: { variable: 'COUNTERSIGN_VERIFIER', default: 'auto', choices: ['auto', 'portable', 'native'] },
  syncAddressToUser: { variable: 'COUNTERSIGN_SYNC_ADDRESS_TO_USER', default: false, flag: true },
  syncPublicKeyToUser: { variable: 'COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER', default: false, flag: true },
  trustProxy: { variable: 'COUNTERSIGN_TRUST_PROXY', default: 0, range: [0, 10] },
  confirmationCode: {
    variable: 'COUNTERSIGN_CONFIRMATION_CODE',
    choices: ['compare', 'return'],
    outside: ['required'],
  },
  knownComputers: { variable: 'COUNTERSIGN_KNOWN_COMPUTERS', default: true, flag: true },
  proximity: { variable: 'COUNTERSIGN_PROXIMITY', default: 'show', choices: ['show', 'off', 'enforce'] },
  evmRpc: {
    variable: 'COUNTERSIGN_EVM_RPC',
    inside: [{ 1: 'https://rpc.example' }, { 8453: 'http://127.0.0.1:8545/key', 1: 'https://rpc.example/?key=1' }],
    outside: [
      ...[{}, [], 'https://rpc.example', { 0: 'https://a.example' }, { x: 'https://a.example' }, { 1: 'rpc.example' }],
      ...[{ 1: 'https://a b' }, { 1: 'ftp://a.example' }, { 1: 'https://a.example#x' }, { 1: 1 }, 1],
    ],
  },
  'pages.demoWallet': { variable: 'COUNTERSIGN_DEMO_WALLET', flag: true },
  'pages.walletHelp': { variable: 'COUNTERSIGN_WALLET_HELP', default: true, flag: true },
  orderStartKeys: {
    variable: 'COUNTERSIGN_ORDER_START_KEYS',
    inside: [[x(32)], [x(32), x(1000)]],
    outside: [
      ...[[x(31)], [x(32), x(31)], [x(32), ''], [x(32), 1], []],
      ...[[`${x(32)} x`], [`${x(32)},x`], [`${x(32)}é`], x(32)],
    ],
  },
  'pages.logoUrl': {
    variable: 'COUNTERSIGN_LOGO_URL',
    inside: ['/logo.svg', 'https://a.example/logo.png?v=2'],
    outside: [
      ...['', 'logo.svg', '//a.example/x', 'http://a.example/x', 'data:image/png,x'],
      ...['https://a.example/x y', 'https://a.example/;x', "https://a.example/'x"],
    ],
  },
  'pages.logoHasName': { variable: 'COUNTERSIGN_LOGO_HAS_NAME', flag: true },
  'pages.accentColor': {
    variable: 'COUNTERSIGN_ACCENT_COLOR',
    inside: ['#abc', '#A1b2C3'],
    outside: ['', '#ab', '#abcd', '#abcdeg', 'red', '#abc;'],
  },
  'oidc.clients': { variable: 'COUNTERSIGN_OIDC_CLIENTS', ...file },
  'oidc.clientDocuments': {
    variable: 'COUNTERSIGN_OIDC_CLIENT_DOCUMENTS',
    inside: [['*'], ['https://a.example/', 'https://b.example/client.json'], [`https://a.example/${x(182)}`]],
    outside: [
      ...[[], [''], ['**'], '*', ['https://a.example/*'], ['http://a.example/']],
      ...[['https://a.example'], [`https://a.example/${x(183)}`]],
    ],
  },
  'oidc.email': {
    variable: 'COUNTERSIGN_OIDC_EMAIL',
    inside: ['{user_id}@users.example'],
    outside: ['', '{user_id}', 'x@users.example', '{user_id}@a b', '{name}{user_id}@a'],
  },
  'oidc.device': { variable: 'COUNTERSIGN_OIDC_DEVICE', default: false, flag: true },
  'oidc.claims': { inside: [async () => ({})], outside: [{}, 'x'] },
  people: { variable: 'COUNTERSIGN_PEOPLE', ...file },
  admit: { variable: 'COUNTERSIGN_ADMIT', default: 'anyone', choices: ['anyone', 'people'], outside: ['everyone'] },
  'pages.textsFile': { variable: 'COUNTERSIGN_TEXTS_FILE', ...file },
  rateLimit: { variable: 'COUNTERSIGN_RATE_LIMIT', default: true, flag: true },
  'limits.rates': {
    variable: 'COUNTERSIGN_RATE_LIMITS',
    inside: [defaultLimits],
    outside: [
      ...[{}, [], 'sign-in=1', { signIn: 1 }, { constructor: 1 }],
      ...[{ 'sign-in': 0 }, { 'sign-in': 100_001 }, { 'sign-in': 1.5 }, { 'sign-in': '1' }],
    ],
  },
  'limits.connections': { variable: 'COUNTERSIGN_MAX_CONNECTIONS', range: [1, most] },
  'limits.connectionsPerAddress': {
    variable: 'COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS',
    default: 2000,
    range: [1, most],
  },
  'limits.requests': { variable: 'COUNTERSIGN_MAX_REQUESTS', range: [1, most] },
  'limits.pendingBodies': { variable: 'COUNTERSIGN_MAX_PENDING_BODIES', default: 1000, range: [1, most] },
  'limits.streams': { variable: 'COUNTERSIGN_MAX_STREAMS', range: [1, most] },
  'limits.nonces': { variable: 'COUNTERSIGN_MAX_NONCES', default: 1_000_000, range: [1, 100_000_000] },
  'limits.orders': { variable: 'COUNTERSIGN_MAX_ORDERS', default: 1_000_000, range: [1, 100_000_000] },
  claimUrlTemplate: {
    variable: 'COUNTERSIGN_CLAIM_URL_TEMPLATE',
    default: '{origin}/c/{orderId}#token={claimToken}',
    inside: ['https://phone.example/{orderId}#{claimToken}', 'app:{orderId}#{claimToken}'],
    outside: [
      '',
      '{origin}/{orderId}',
      '{origin}/{claimToken}#{orderId}',
      '{origin}/{orderId}?{claimToken}',
      '{origin}/claim?o={orderId}&t={claimToken}',
      '{origin}/{orderId}#',
      '{origin}/{other}/{orderId}#{claimToken}',
      '#{orderId}{claimToken}',
      '{origin}/{orderId}?token={claimToken}#{claimToken}',
      '{origin}/#{claimToken}',
      '/{orderId}#{claimToken}',
      '{origin}/{orderid}#{claimToken}',
    ],
  },
  pages: { variable: 'COUNTERSIGN_PAGES', default: true, flag: true },
  drainSeconds: { variable: 'COUNTERSIGN_DRAIN_SECONDS', default: 2, range: [0, 300] },
  'metrics.port': { variable: 'COUNTERSIGN_METRICS_PORT', range: [0, 65_535] },
  'metrics.host': { variable: 'COUNTERSIGN_METRICS_HOST', default: '127.0.0.1', ...hostName },
  tracing: { variable: 'COUNTERSIGN_TRACING', default: 'off', choices: ['off', 'on', 'link'] },
  'metrics.collect': { flag: true },
  logFormat: {
    variable: 'COUNTERSIGN_LOG_FORMAT',
    default: 'auto',
    choices: ['auto', 'json', 'pretty'],
    outside: ['xml'],
  },
  nonceStore: {
    inside: [functions],
    outside: [{}, 'x', { ...functions, delete: true }, { get: () => {}, set: () => {} }],
  },
  sessionHost: {
    inside: [wholeHost],
    outside: [{}, 'x', ...hostMethods.map((name) => ({ ...wholeHost, [name]: undefined }))],
  },
  resolveLogin: { inside: [async () => null], outside: [{}, 'x'] },
  'webhook.url': {
    variable: 'COUNTERSIGN_WEBHOOK_URL',
    inside: ['https://hooks.example/a?b=c', 'http://localhost:9000/'],
    outside: [
      ...['http://hooks.example', 'ftp://hooks.example', 'hooks.example', 'https://user:word@hooks.example'],
      'https://a.example/#x',
    ],
  },
  'webhook.secret': {
    variable: 'COUNTERSIGN_WEBHOOK_SECRET',
    inside: [[webhookSecret], [webhookSecret, `whsec_${'A'.repeat(86)}==`]],
    outside: [
      ...['x', 'whsec_', webhookSecret.slice(0, -1), `whsec_${'A'.repeat(88)}`, 'A'.repeat(44)],
      ...[[webhookSecret, ''], []],
    ],
  },
  onAuditEvent: { inside: [() => {}], outside: [{}, 'x'] },
  logger: { inside: [silentLogger], outside: [{}, 'x', { ...silentLogger, warn: undefined }] },
}

const rows = allOptions.map((named) => ({ ...named, named, ...promised[named.name] }))

const resolved = (name: string, value: unknown): unknown => settingOf(resolveSettings(optionsWith(name, value)), name)

const fromVariable = (variable: string, text: string, name: string): unknown =>
  settingOf(resolveSettings(optionsFromEnvironment({ [variable]: text })), name)

/** Expects an option to refuse a value in one line that names it. */
function expectRefused(name: string, value: unknown): void {
  const message = refusal(() => resolved(name, value))
  expect(message).toMatch(new RegExp(`^${name}( \\(${promised[name]?.variable}\\))? must be .`))
  expect(message).not.toMatch(/[\n\r\u2028\u2029]/)
}

/** A value as the text of an environment variable. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([key, one]) => `${key}=${one}`)
    .join(', ')
}

/** Values of every type of JavaScript that are no value of most options. */
const ofWrongType = [Symbol('x'), 1n, Number.NaN, new Date(0), /x/]

test('every option of the table is promised here, and no other', () => {
  expect(Object.keys(promised).toSorted()).toEqual(allOptions.map(({ name }) => name).toSorted())
})

describe.each(rows)('$name', ({ name, option, variable, range, choices, inside = [], outside = [], flag, ...more }) => {
  test('has its variable and its default', () => {
    expect(option.variable).toBe(variable)
    expect(settingOf(resolveSettings(), name)).toEqual(more.default)
    expect(resolved(name, undefined)).toEqual(more.default)
  })

  test('takes what is just inside its bounds, from its variable alike', () => {
    const values = [...(range ?? []), ...(choices ?? []), ...(flag ? [true, false] : []), ...inside]
    expect(values.some((value) => !isDeepStrictEqual(value, more.default))).toBe(true)
    for (const value of values) {
      expect(resolved(name, value)).toEqual(value)
      const text = textOf(value)
      // An empty variable counts as unset.
      if (variable === undefined || text === '') continue
      expect(resolveSettings(optionsFromEnvironment({ [variable]: ` ${text} ` }))).toEqual(
        resolveSettings(optionsWith(name, value)),
      )
    }
  })

  test('refuses what is just outside them', () => {
    const refused = [...outside, ...beyond(range), ...(choices === undefined ? [] : misspelt(choices))]
    expect(flag === true || refused.length > 0).toBe(true)
    for (const value of refused) expectRefused(name, value)
    if (variable === undefined) return
    // An empty variable counts as unset.
    const texts = refused.filter(
      (value) => (typeof value === 'string' && value.trim() === value) || typeof value === 'number',
    )
    for (const text of texts.map(String)) {
      if (text === '' || isListOf(option)) continue
      expect(() => fromVariable(variable, text, name), text).toThrow(TypeError)
    }
  })

  test('refuses every other type', () => {
    const isNumber = range !== undefined
    const wrong: unknown[] = [
      ...ofWrongType,
      ...(isNumber ? ['1', '', [1], { valueOf: () => 1 }, 1.5, Number.POSITIVE_INFINITY] : [1, 0]),
      ...(flag ? ['true', 'on', 'maybe', '', 0, 1, []] : [{}]),
      ...(flag || name === 'trustProxy' ? [] : [true, false]),
    ]
    for (const value of wrong) expectRefused(name, value)
    // In code, null counts as unset.
    expect(resolved(name, null)).toEqual(more.default)
  })
})

test('limits are named in a list, and a bad name or number is told in one line', () => {
  const limits = (text: string): unknown => fromVariable('COUNTERSIGN_RATE_LIMITS', text, 'limits.rates')
  const some = { order: 1, watchers: 100_000 }
  expect(limits('order=1, watchers=100000')).toEqual({ ...defaultLimits, ...some })
  expect(resolved('limits.rates', some)).toEqual({ ...defaultLimits, ...some })
  for (const text of [
    'ordre=5',
    'order=0',
    'order=100001',
    'order=1.5',
    'order=x',
    'order=',
    'order',
    'order=1,order=2',
    '__proto__=1',
  ]) {
    expect(() => limits(text), text).toThrow(
      /^limits\.rates \(COUNTERSIGN_RATE_LIMITS\) must be whole numbers from 1 to 100000 by name, .*, not "[^"\n]*"$/,
    )
  }
})

test('addresses are kept in their canonical form, and a proxy that is trusted is one proxy', () => {
  const given = { publicUrl: 'https://Auth.example/', trustedOrigins: ['https://A.example', 'app://shell'] }
  const kept = {
    publicUrl: 'https://auth.example',
    trustedOrigins: ['https://a.example', 'app://shell'],
    trustProxy: 1,
  }
  expect(resolveSettings({ ...given, trustProxy: true })).toMatchObject(kept)
})

test('an absolute life of one second is the shortest, with an ordinary one of one second', () => {
  const shortest = { sessionTtlSeconds: 1, sessionAbsoluteTtlSeconds: 1 }
  expect(resolveSettings(shortest)).toMatchObject(shortest)
  expect(() => resolveSettings({ ...shortest, sessionAbsoluteTtlSeconds: 0 })).toThrow(TypeError)
})

function beyond(range: Promised['range']): number[] {
  return range === undefined ? [] : [range[0] - 1, range[1] + 1]
}

function misspelt(choices: readonly string[]): string[] {
  const all = choices.flatMap((choice) => [choice.toUpperCase(), choice.toLowerCase(), `${choice}x`, choice.slice(1)])
  return all.filter((text) => !choices.includes(text))
}

/** Whether a variable's text is a list, one entry of which may be fine on its own. */
function isListOf({ kind: { read, range, choices } }: Option): boolean {
  return read !== undefined && range === undefined && choices === undefined
}
