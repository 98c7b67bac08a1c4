import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { defaultLimits } from '../../src/limits/limits.ts'
import {
  allOptions,
  type CountersignOptions,
  offersDemoWallet,
  optionsFromEnvironment,
  resolveSettings,
  unknownVariables,
} from '../../src/service/config.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { optionsWith, refusal, settingOf } from './config/support.ts'

/** What a test has to know about an option: a new one fails the first test below until it is here. */
interface Sample {
  /** A value other than the default. */
  readonly given: unknown
  /** The same as an environment variable's text. */
  readonly text?: string
  /** What the settings make of it, if it is not the same. */
  readonly resolved?: unknown
  /** Values that just do not fit. Those outside a range or a list of choices come from the table. */
  readonly refused: readonly unknown[]
}

const secret = 's'.repeat(32)
const webhookSecret = `whsec_${'A'.repeat(32)}`
const notAFlag = [1, 'maybe', 'true', []]
const notAPath = ['api', '/api/', '/', '/a//b', '/a b', '', 1]
const notAFile = ['', ' ', 'a\nb', ' a', 1]
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

const samples: Readonly<Record<string, Sample>> = {
  port: { given: 0, text: '0', refused: [80.5, '8080', true] },
  host: { given: '0.0.0.0', text: '0.0.0.0', refused: ['a b', '', 'x'.repeat(254), 1] },
  publicUrl: {
    given: 'https://Auth.example/',
    text: 'https://Auth.example/',
    resolved: 'https://auth.example',
    refused: ['auth.example', 'https://auth.example/path', 'app://auth.example', 1],
  },
  'tls.cert': { given: '/tls/cert.pem', text: '/tls/cert.pem', refused: notAFile },
  'tls.key': { given: '/tls/key.pem', text: '/tls/key.pem', refused: notAFile },
  keyPrefix: {
    given: `Staging-2.a_${'b'.repeat(52)}`,
    text: `Staging-2.a_${'b'.repeat(52)}`,
    refused: ['', 'a b', 'a:', '{a}', 'a*', 'é', 'x'.repeat(65), 'a\n', 1],
  },
  store: { given: 'redis://localhost', text: 'redis://localhost', refused: ['', ' sqlite:a', 1, functions] },
  'redis.tlsCa': { given: './ca.pem', text: './ca.pem', refused: notAFile },
  'redis.tlsCert': { given: '/tls/cert.pem', text: '/tls/cert.pem', refused: notAFile },
  'redis.tlsKey': { given: '/tls/key.pem', text: '/tls/key.pem', refused: notAFile },
  'redis.tlsServerName': { given: 'redis.example', text: 'redis.example', refused: ['', 'a b', '127.0.0.1', '::1', 1] },
  secret: {
    given: [secret, 't'.repeat(32)],
    text: `${secret}, ${'t'.repeat(32)}`,
    refused: [secret.slice(1), [secret, ''], [], 1, [secret, 1]],
  },
  appName: {
    given: 'é'.repeat(80),
    text: 'é'.repeat(80),
    refused: ['', 'x'.repeat(81), ' x', 'x ', 'a\nb', 'a\u202eb', 1],
  },
  trustedOrigins: {
    given: ['https://A.example', 'app://shell'],
    text: 'https://A.example, app://shell',
    resolved: ['https://a.example', 'app://shell'],
    refused: [['*'], ['https://a.example', ''], ['https://a.example/path'], [1], 'https://a.example'],
  },
  enforceOrigin: { given: false, text: 'off', refused: notAFlag },
  basePath: { given: '/auth', text: '/auth', refused: notAPath },
  endpointPrefix: { given: '/w', text: '/w', refused: notAPath },
  nonceTtlSeconds: { given: 60, text: '60', refused: [1.5, '60', Number.NaN, Number.POSITIVE_INFINITY] },
  orderTtlSeconds: { given: 60, text: '60', refused: [1.5, '60', Number.NaN] },
  sessionTtlSeconds: { given: 60, text: '60', refused: [1.5, '60', Number.NaN] },
  sessionAbsoluteTtlSeconds: { given: 700_000, text: '700000', refused: [604_799, '700000', Number.NaN] },
  addressTtlSeconds: { given: 0, text: '0', refused: [0.5, 'x', Number.NaN] },
  'accessTokens.audiences': {
    given: ['https://api.example', 'orders'],
    text: 'https://api.example, orders',
    refused: [[], [''], ['two words'], ['a,b'], ['a', 'a'], ['x', 1], 'orders', 1],
  },
  'accessTokens.ttlSeconds': { given: 60, text: '60', refused: [60.5, '60', Number.NaN] },
  'accessTokens.algorithm': { given: 'EdDSA', text: 'EdDSA', refused: ['RS256', 'none', 1] },
  adapters: { given: ['ed25519'], text: 'ed25519', refused: ['ed25519', 1] },
  verifier: { given: 'portable', text: 'portable', refused: [] },
  syncAddressToUser: { given: true, text: 'on', refused: notAFlag },
  syncPublicKeyToUser: { given: true, text: 'yes', refused: notAFlag },
  trustProxy: { given: true, text: 'true', resolved: 1, refused: [1.5, '1', Number.NaN] },
  confirmationCode: { given: 'return', text: 'return', refused: ['required'] },
  knownComputers: { given: false, text: 'off', refused: notAFlag },
  proximity: { given: 'enforce', text: 'enforce', refused: [] },
  evmRpc: {
    given: { 1: 'https://rpc.example/key', 8453: 'http://127.0.0.1:8545' },
    text: '1=https://rpc.example/key, 8453=http://127.0.0.1:8545',
    refused: [
      {},
      [],
      'https://rpc.example',
      { 0: 'https://a.example' },
      { 1: 'ftp://a.example' },
      { 1: 'https://a.example#x' },
      { 1: 1 },
    ],
  },
  'pages.demoWallet': { given: true, text: 'on', refused: ['yes', 1] },
  'pages.walletHelp': { given: false, text: 'off', refused: ['yes', 1] },
  'pages.logoHasName': { given: true, text: 'on', refused: ['yes', 1] },
  orderStartKeys: {
    given: [secret, 't'.repeat(32)],
    text: `${secret}, ${'t'.repeat(32)}`,
    refused: [[secret.slice(1)], [secret, ''], [], 1, [secret, 1]],
  },
  'pages.logoUrl': {
    given: 'https://cdn.example/logo.svg',
    text: 'https://cdn.example/logo.svg',
    refused: ['http://a.example/x.png', '//a.example/x', 'logo.png', 'data:image/png,x', "https://a.example/';x", 1],
  },
  'pages.accentColor': { given: '#1F6feb', text: '#1F6feb', refused: ['blue', '#12', '#12345g', '#fff;', 1] },
  'oidc.clients': { given: './clients.json', text: './clients.json', refused: notAFile },
  'oidc.clientDocuments': {
    given: ['https://client.example/', 'https://other.example/client.json'],
    text: 'https://client.example/, https://other.example/client.json',
    refused: [[], [''], ['https://client.example'], ['http://client.example/'], ['https://client.example/*'], '*', 1],
  },
  'oidc.email': {
    given: '{user_id}@users.example',
    text: '{user_id}@users.example',
    refused: ['', 'x@users.example', '{user_id}', '{user_id}@a b', '{name}{user_id}@a', 1],
  },
  'oidc.device': { given: true, text: 'on', refused: notAFlag },
  'oidc.claims': { given: async () => ({}), refused: [{}, 'x'] },
  people: { given: './people.json', text: './people.json', refused: notAFile },
  admit: { given: 'people', text: 'people', refused: ['everyone', true, 1] },
  'pages.textsFile': { given: './texts.json', text: './texts.json', refused: notAFile },
  rateLimit: { given: false, text: 'off', refused: notAFlag },
  'limits.rates': {
    given: { order: 7 },
    text: 'order=7',
    resolved: { ...defaultLimits, order: 7 },
    refused: [[], 'order=7', { ordre: 7 }, { order: 0 }, { order: 1.5 }, { order: '7' }],
  },
  'metrics.port': { given: 9464, text: '9464', refused: [80.5, '9464', true] },
  'metrics.host': { given: '0.0.0.0', text: '0.0.0.0', refused: ['a b', '', 'x'.repeat(254), 1] },
  'metrics.collect': { given: true, refused: ['on', 1] },
  tracing: { given: 'link', text: 'link', refused: [true, 1, functions] },
  drainSeconds: { given: 0, text: '0', refused: [0.5, '2', Number.NaN] },
  'limits.connections': { given: 9, text: '9', refused: [1.5, '9', true] },
  'limits.connectionsPerAddress': { given: 9, text: '9', refused: [1.5, '9', true] },
  'limits.requests': { given: 9, text: '9', refused: [1.5, '9', true] },
  'limits.pendingBodies': { given: 9, text: '9', refused: [1.5, '9', true] },
  'limits.streams': { given: 9, text: '9', refused: [1.5, '9', true] },
  'limits.nonces': { given: 9, text: '9', refused: [0, 1.5, '9', true] },
  'limits.orders': { given: 9, text: '9', refused: [0, 1.5, '9', true] },
  claimUrlTemplate: {
    given: 'https://phone.example/{orderId}#{claimToken}',
    text: 'https://phone.example/{orderId}#{claimToken}',
    refused: [
      '{origin}/claim?o={orderId}&t={claimToken}',
      '{origin}/claim#{claimToken}',
      '{origin}/{orderId}#',
      '{origin}/{other}/{orderId}#{claimToken}',
      '#{orderId}{claimToken}',
      1,
    ],
  },
  pages: { given: false, text: 'no', refused: notAFlag },
  logFormat: { given: 'json', text: 'json', refused: ['xml'] },
  nonceStore: { given: functions, refused: ['x', {}, { ...functions, delete: true }] },
  sessionHost: {
    given: wholeHost,
    refused: ['x', {}, ...hostMethods.map((name) => ({ ...wholeHost, [name]: undefined }))],
  },
  resolveLogin: { given: async () => null, refused: ['x', {}] },
  'webhook.url': {
    given: 'https://hooks.example/countersign?key=abc',
    text: 'https://hooks.example/countersign?key=abc',
    refused: [
      'x',
      'http://hooks.example',
      'ftp://hooks.example',
      'https://user:word@hooks.example',
      'https://a.example/#x',
    ],
  },
  'webhook.secret': {
    given: [webhookSecret, `whsec_${'B'.repeat(32)}`],
    text: `${webhookSecret},whsec_${'B'.repeat(32)}`,
    refused: ['x', 'A'.repeat(44), `whsec_${'A'.repeat(31)}`, `whsec_${'A'.repeat(88)}`, [webhookSecret, ''], []],
  },
  onAuditEvent: { given: () => {}, refused: ['x', {}] },
  logger: { given: silentLogger, refused: ['x', { ...silentLogger, warn: undefined }] },
}

test('every option has a sample, and every sample its option', () => {
  expect(Object.keys(samples).sort()).toEqual(allOptions.map(({ name }) => name).sort())
})

const options = allOptions.flatMap(({ name, option }) => {
  const sample = samples[name]
  return sample === undefined ? [] : [{ name, option, sample }]
})
const withVariable = options.flatMap(({ option, ...rest }) =>
  option.variable === undefined ? [] : [{ ...rest, option, variable: option.variable }],
)

function resolve(name: string, value: unknown): unknown {
  return settingOf(resolveSettings(optionsWith(name, value)), name)
}

function fromEnvironment(environment: Record<string, string>) {
  return resolveSettings(optionsFromEnvironment(environment))
}

describe.each(options)('$name', ({ name, option, sample }) => {
  test('takes another value than its default', () => {
    const resolved = resolve(name, sample.given)
    expect(resolved).toEqual(sample.resolved ?? sample.given)
    expect(resolved).not.toEqual(settingOf(resolveSettings(), name))
  })

  test('refuses what just does not fit, in one line that names it', () => {
    for (const value of sample.refused) {
      const message = refusal(() => resolve(name, value))
      expect(message).toMatch(new RegExp(`^${name}( \\(${option.variable}\\))? must be .`))
      expect(message).not.toMatch(/[\n\r\u2028\u2029]/)
    }
  })
})

describe('variables', () => {
  test.each(withVariable)('$variable sets $name', ({ name, variable, sample }) => {
    expect(sample.text).toBeDefined()
    expect(fromEnvironment({ [variable]: ` ${sample.text} ` })).toEqual(
      resolveSettings(optionsWith(name, sample.given)),
    )
  })

  test('each sets one option only', () => {
    const variables = withVariable.map(({ variable }) => variable)
    expect(new Set(variables).size).toBe(variables.length)
    for (const { name, variable } of withVariable) {
      expect(optionsFromEnvironment({ [variable]: 'x' })).toEqual(optionsWith(name, expect.anything()))
    }
  })

  test.each(withVariable)('an empty $variable counts as unset', ({ variable }) => {
    expect(optionsFromEnvironment({ [variable]: '' })).toEqual({})
    expect(optionsFromEnvironment({ [variable]: ' \t' })).toEqual({})
  })

  const flags = withVariable.filter(({ option }) => typeof option.default === 'boolean')

  test.each(flags)('$variable has several spellings of on and off', ({ name, variable }) => {
    for (const text of ['on', 'true', 'yes', '1', 'ON'])
      expect(settingOf(fromEnvironment({ [variable]: text }), name)).toBe(true)
    for (const text of ['off', 'false', 'no', '0', 'Off']) {
      expect(settingOf(fromEnvironment({ [variable]: text }), name)).toBe(false)
    }
  })

  test('COUNTERSIGN_TRUST_PROXY has a number of proxies, or on and off', () => {
    const resolved = (text: string) => fromEnvironment({ COUNTERSIGN_TRUST_PROXY: text }).trustProxy
    expect(['0', '1', '10', 'on', 'off', 'true', 'false'].map(resolved)).toEqual([0, 1, 10, 1, 0, 1, 0])
  })

  test.each([
    ['PORT', '80x', 'port (PORT) must be a whole number from 0 to 65535, not "80x"'],
    ['PORT', '65536', 'port (PORT) must be a whole number from 0 to 65535, not 65536'],
    ['COUNTERSIGN_NONCE_TTL_SECONDS', '1e3', /must be a whole number from 1 to 3600, not "1e3"$/],
    ['COUNTERSIGN_NONCE_TTL_SECONDS', '1.5', /not 1.5$/],
    ['COUNTERSIGN_RATE_LIMIT', '5', /must be true or false \(on or off\), not "5"$/],
    ['COUNTERSIGN_TRUST_PROXY', '11', /must be a whole number from 0 to 10, true or false \(on or off\), not 11$/],
    ['COUNTERSIGN_TRUST_PROXY', 'maybe', /not "maybe"$/],
    ['COUNTERSIGN_TRUSTED_ORIGINS', 'https://a.example,*', /must be a list of origins such as \S+, not "\*"$/],
    ['COUNTERSIGN_TRUSTED_ORIGINS', 'https://a.example,', /not ""$/],
    ['COUNTERSIGN_CONFIRMATION_CODE', 'required', /must be compare or return, not "required"$/],
  ])('%s=%s is refused with what to change', (name, text, message) => {
    expect(refusal(() => fromEnvironment({ [name]: text }))).toMatch(message)
  })

  test('misspelt ones are found, with the setting that was meant; those of Kubernetes are not', () => {
    expect(
      unknownVariables({
        COUNTERSIGN_STOER: 'x',
        COUNTERSIGN_PORT_80_TCP: 'x',
        COUNTERSIGN_SERVICE_HOST: 'x',
        COUNTERSIGN_SECRET_FILE: 'x',
        COUNTERSIGN_APP_NAME_FILE: 'x',
        ...Object.fromEntries(withVariable.map(({ variable }) => [variable, 'x'])),
      }),
    ).toEqual([
      { name: 'COUNTERSIGN_STOER', similar: 'COUNTERSIGN_STORE' },
      { name: 'COUNTERSIGN_APP_NAME_FILE', similar: undefined },
    ])
  })
})

describe('variables that name a file', () => {
  const inFiles = withVariable.filter(({ option }) => option.fromFile)

  /** The path of a file with this content. */
  async function fileWith(content: string): Promise<string> {
    const folder = temporaryFolder()
    await writeFile(join(folder, 'value'), content)
    return join(folder, 'value')
  }

  test('are those of secrets and of addresses that can have one in them', () => {
    expect(inFiles.map(({ variable }) => variable)).toEqual([
      'COUNTERSIGN_SECRET',
      'COUNTERSIGN_STORE',
      'COUNTERSIGN_ORDER_START_KEYS',
      'COUNTERSIGN_EVM_RPC',
      'COUNTERSIGN_WEBHOOK_SECRET',
    ])
  })

  test.each(inFiles)('in a file, $variable sets $name', async ({ name, variable, sample }) => {
    // Some editors put a byte order mark first.
    for (const written of ['', '\n', '\r\n'].flatMap((end) => [sample.text + end, `\uFEFF${sample.text}${end}`])) {
      const file = await fileWith(written)
      expect(fromEnvironment({ [`${variable}_FILE`]: file })).toEqual(resolveSettings(optionsWith(name, sample.given)))
    }
  })

  test('a list can have a line for each entry', async () => {
    const other = 't'.repeat(32)
    for (const content of [`${secret}\n${other}\n`, `${secret},\r\n\r\n ${other}\r\n`, `${secret},${other}`]) {
      expect(fromEnvironment({ COUNTERSIGN_SECRET_FILE: await fileWith(content) }).secret).toEqual([secret, other])
    }
  })

  test('only the last line break of a single value goes', async () => {
    const withBreaks = await fileWith('redis://a\n\n')
    expect(() => fromEnvironment({ COUNTERSIGN_STORE_FILE: withBreaks })).toThrow(
      /^store \(COUNTERSIGN_STORE\) must be/,
    )
  })

  test.each(inFiles)('$variable and the variable of its file exclude each other', async ({ variable, sample }) => {
    const file = await fileWith(`${sample.text}`)
    expect(refusal(() => optionsFromEnvironment({ [variable]: sample.text, [`${variable}_FILE`]: file }))).toBe(
      `${variable} and ${variable}_FILE must not both be set`,
    )
    expect(optionsFromEnvironment({ [variable]: sample.text, [`${variable}_FILE`]: ' ' })).not.toEqual({})
  })

  test('what cannot be used is refused in one line with the variable and the path, never the content', async () => {
    const attempt = (file: string) => refusal(() => fromEnvironment({ COUNTERSIGN_SECRET_FILE: file }))
    const empty = await fileWith(' \n')
    const large = await fileWith('secret '.repeat(10_000))
    const short = await fileWith('tooshort')
    expect([attempt('/nowhere/secret'), attempt('/'), attempt(empty), attempt(large), attempt(short)]).toEqual([
      'COUNTERSIGN_SECRET_FILE must name a file that can be read; /nowhere/secret cannot be: ENOENT',
      'COUNTERSIGN_SECRET_FILE must name a file that can be read; / cannot be: EISDIR',
      `COUNTERSIGN_SECRET_FILE must name a file with a value in it; ${empty} is empty`,
      `COUNTERSIGN_SECRET_FILE must name a file of at most 65536 bytes; ${large} has more`,
      expect.stringMatching(/^secret \(COUNTERSIGN_SECRET\) must be text of 32 characters or more(?!.*tooshort)/),
    ])
  })

  test('a secret in place of a path is not repeated', () => {
    expect(refusal(() => fromEnvironment({ COUNTERSIGN_SECRET_FILE: secret }))).not.toContain(secret)
    expect(refusal(() => fromEnvironment({ COUNTERSIGN_STORE_FILE: 'redis://:pa55@h' }))).not.toContain('pa55')
  })
})

test('sessionAbsoluteTtlSeconds is not below sessionTtlSeconds, and defaults to it if it is longer', () => {
  const resolved = (options: CountersignOptions) => resolveSettings(options).sessionAbsoluteTtlSeconds
  expect(resolved({ sessionTtlSeconds: 3_000_000 })).toBe(3_000_000)
  expect(resolved({ sessionTtlSeconds: 60, sessionAbsoluteTtlSeconds: 60 })).toBe(60)
  expect(refusal(() => resolved({ sessionTtlSeconds: 60, sessionAbsoluteTtlSeconds: 59 }))).toBe(
    'sessionAbsoluteTtlSeconds (COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS) must be sessionTtlSeconds (60) or more, not 59',
  )
})

test('metrics have a port that is not that of the service, and are not off if they have one', () => {
  const refused = (options: CountersignOptions) => refusal(() => resolveSettings(options))
  expect(refused({ port: 9464, metrics: { port: 9464 } })).toBe(
    'metrics.port (COUNTERSIGN_METRICS_PORT) must be another port than port (PORT), not 9464 too: metrics are not for the public',
  )
  expect(refused({ metrics: { port: 8080 } })).toMatch(/must be another port/)
  expect(refused({ metrics: { collect: false, port: 9464 } })).toMatch(
    /^metrics\.collect must not be false if metrics\.port/,
  )
  expect(resolveSettings({ port: 0, metrics: { port: 0 } })).toMatchObject({ port: 0, metrics: { port: 0 } })
})

test('a refusal repeats neither a secret nor a store address, which can hold a password', () => {
  const short = 'tooshort'
  for (const value of [short, [secret, short]]) {
    expect(refusal(() => resolveSettings({ secret: value }))).not.toMatch(/tooshort|sss/)
  }
  expect(refusal(() => resolveSettings({ store: ' redis://:pa55@h' }))).not.toContain('pa55')
  expect(refusal(() => resolveSettings({ store: { url: 'redis://:pa55@h' } as never }))).not.toContain('pa55')
})

test('refused values of any type are shown in one line', () => {
  const shown = (value: unknown) => refusal(() => resolve('appName', value)).replace(/^.*, not /, '')
  const values = ['a\nb', 1n, [1], { a: 1 }, () => 'a\nb', Symbol('a'), true, Number.NaN]
  expect(values.map(shown)).toEqual([
    '"a\\nb"',
    '1',
    'an object',
    'an object',
    'a function',
    'Symbol(a)',
    'true',
    'NaN',
  ])
})

test('an option that does not exist is refused, so that a misspelt one is not lost', () => {
  expect(refusal(() => resolveSettings({ enforceOrigins: true } as never))).toBe(
    'enforceOrigins is not an option of Countersign',
  )
  expect(refusal(() => resolveSettings({ toString: true } as never))).toMatch(/^toString/)
})

test('an opened store is an option as it is', async () => {
  await using opened = await openedStore()
  expect(resolveSettings({ store: opened.store }).store).toBe(opened.store)
})

async function openedStore() {
  const store = await openStore('sqlite::memory:')
  return { store, [Symbol.asyncDispose]: () => store.close() }
}

test.each([
  [undefined, undefined, true],
  [undefined, 'http://localhost:8080', true],
  [undefined, 'http://127.0.0.1', true],
  [undefined, 'http://[::1]:8080', true],
  [undefined, 'https://localhost:8443', false],
  [undefined, 'http://192.168.1.23:8080', false],
  [undefined, 'https://wallet.example', false],
  [undefined, 'http://localhost.example', false],
  [true, 'http://192.168.1.23:8080', true],
  [false, undefined, false],
])('with demoWallet %s and publicUrl %s, the pages offer the demo wallet: %s', (demoWallet, publicUrl, offered) => {
  const pages = demoWallet === undefined ? {} : { demoWallet }
  expect(offersDemoWallet(resolveSettings({ pages, ...(publicUrl === undefined ? {} : { publicUrl }) }))).toBe(offered)
})

test('with TLS on the port, the pages offer no demo wallet, and to ask for it is refused', () => {
  const tls = { tls: { cert: 'cert.pem', key: 'key.pem' } }
  expect(offersDemoWallet(resolveSettings(tls))).toBe(false)
  expect(refusal(() => resolveSettings({ ...tls, pages: { demoWallet: true } }))).toMatch(
    /^pages\.demoWallet \(COUNTERSIGN_DEMO_WALLET\) must be off if publicUrl is https, as that of a port with TLS is: .*$/,
  )
})

test('publicUrl is https with TLS on the port', () => {
  expect(refusal(() => resolveSettings({ tls: { cert: 'x', key: 'x' }, publicUrl: 'http://auth.example' }))).toBe(
    'publicUrl (COUNTERSIGN_PUBLIC_URL) must be https if tls.cert (COUNTERSIGN_TLS_CERT) is set, not http://auth.example: the port then takes TLS only',
  )
  const { publicUrl } = resolveSettings({ tls: { cert: 'x', key: 'x' }, publicUrl: 'https://auth.example' })
  expect(publicUrl).toBe('https://auth.example')
})

test('demoWallet stops the start on https, in one line', () => {
  for (const publicUrl of ['https://wallet.example', 'https://localhost:8443']) {
    const message = refusal(() => resolveSettings({ pages: { demoWallet: true }, publicUrl }))
    expect(message).toMatch(/^pages\.demoWallet \(COUNTERSIGN_DEMO_WALLET\) must be off if publicUrl is https[^\n]*$/)
  }
})
