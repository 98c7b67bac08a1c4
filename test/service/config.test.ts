import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
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

const secret = 's'.repeat(32)
const webhookSecret = `whsec_${'A'.repeat(32)}`
const withVariable = allOptions.flatMap(({ name, option }) =>
  option.variable === undefined ? [] : [{ name, option, variable: option.variable }],
)

function fromEnvironment(environment: Record<string, string>) {
  return resolveSettings(optionsFromEnvironment(environment))
}

describe('variables', () => {
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
  const other = 't'.repeat(32)
  const inFiles = [
    { name: 'secret', variable: 'COUNTERSIGN_SECRET', given: [secret, other], text: `${secret}, ${other}` },
    { name: 'store', variable: 'COUNTERSIGN_STORE', given: 'redis://localhost', text: 'redis://localhost' },
    { name: 'orderStartKeys', variable: 'COUNTERSIGN_ORDER_START_KEYS', given: [secret], text: secret },
    {
      name: 'evmRpc',
      variable: 'COUNTERSIGN_EVM_RPC',
      given: { 1: 'https://rpc.example' },
      text: '1=https://rpc.example',
    },
    { name: 'webhook.secret', variable: 'COUNTERSIGN_WEBHOOK_SECRET', given: [webhookSecret], text: webhookSecret },
  ]

  /** The path of a file with this content. */
  async function fileWith(content: string): Promise<string> {
    const folder = temporaryFolder()
    await writeFile(join(folder, 'value'), content)
    return join(folder, 'value')
  }

  test('are those of secrets and of addresses that can have one in them', () => {
    const fromFile = withVariable.filter(({ option }) => option.fromFile).map(({ variable }) => variable)
    expect(fromFile).toEqual(inFiles.map(({ variable }) => variable))
  })

  test.each(inFiles)('in a file, $variable sets $name', async ({ name, variable, given, text }) => {
    // Some editors put a byte order mark first.
    for (const written of ['', '\n', '\r\n'].flatMap((end) => [text + end, `\uFEFF${text}${end}`])) {
      const file = await fileWith(written)
      expect(fromEnvironment({ [`${variable}_FILE`]: file })).toEqual(resolveSettings(optionsWith(name, given)))
    }
  })

  test('a list can have a line for each entry', async () => {
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

  test.each(inFiles)('$variable and the variable of its file exclude each other', async ({ variable, text }) => {
    const file = await fileWith(text)
    expect(refusal(() => optionsFromEnvironment({ [variable]: text, [`${variable}_FILE`]: file }))).toBe(
      `${variable} and ${variable}_FILE must not both be set`,
    )
    expect(optionsFromEnvironment({ [variable]: text, [`${variable}_FILE`]: ' ' })).not.toEqual({})
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
  const shown = (value: unknown) =>
    refusal(() => resolveSettings(optionsWith('appName', value))).replace(/^.*, not /, '')
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
