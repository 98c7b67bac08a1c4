import { describe, expect, test } from 'vitest'
import { optionsFromEnvironment, resolveSettings, unknownVariables } from '../src/config.ts'

const settings = (environment: Record<string, string>) => resolveSettings(optionsFromEnvironment(environment))

test('the defaults are those of the documentation', () => {
  expect(resolveSettings()).toMatchObject({
    port: 8080,
    host: 'localhost',
    store: 'sqlite:./countersign.db',
    appName: 'Countersign',
    enforceOrigin: true,
    basePath: '/api/auth',
    endpointPrefix: '/wallet',
    nonceTtlSeconds: 300,
    orderTtlSeconds: 120,
    sessionTtlSeconds: 604_800,
    adapters: ['nimiq', 'ed25519'],
    verifier: 'auto',
    syncAddressToUser: false,
    syncPublicKeyToUser: false,
    trustedProxies: 0,
    confirmationCode: 'compare',
    rateLimit: true,
    claimUrlTemplate: '{origin}/cross-device/claim/{orderId}#token={claimToken}',
    orderModelName: 'crossDeviceOrder',
    pages: true,
  })
})

test('every variable sets its option', () => {
  expect(
    settings({
      PORT: '0',
      HOST: '0.0.0.0',
      COUNTERSIGN_PUBLIC_URL: 'https://auth.example/',
      COUNTERSIGN_STORE: 'redis://localhost',
      COUNTERSIGN_SECRET: `${'a'.repeat(32)},${'b'.repeat(32)}`,
      COUNTERSIGN_APP_NAME: 'Café',
      COUNTERSIGN_TRUSTED_ORIGINS: 'https://a.example, http://localhost:3000',
      COUNTERSIGN_ENFORCE_ORIGIN: 'false',
      COUNTERSIGN_BASE_PATH: '/auth',
      COUNTERSIGN_ENDPOINT_PREFIX: '/w',
      COUNTERSIGN_NONCE_TTL_SECONDS: '60',
      COUNTERSIGN_ORDER_TTL_SECONDS: '61',
      COUNTERSIGN_SESSION_TTL_SECONDS: '62',
      COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS: '63',
      COUNTERSIGN_ADAPTERS: 'ed25519',
      COUNTERSIGN_VERIFIER: 'portable',
      COUNTERSIGN_SYNC_ADDRESS_TO_USER: 'true',
      COUNTERSIGN_SYNC_PUBLIC_KEY_TO_USER: '1',
      COUNTERSIGN_TRUST_PROXY: 'true',
      COUNTERSIGN_CONFIRMATION_CODE: 'required',
      COUNTERSIGN_RATE_LIMIT: 'off',
      COUNTERSIGN_CLAIM_URL_TEMPLATE: 'https://phone.example/{orderId}#{claimToken}',
      COUNTERSIGN_ORDER_MODEL_NAME: 'orders',
      COUNTERSIGN_PAGES: 'off',
    }),
  ).toEqual({
    port: 0,
    host: '0.0.0.0',
    publicUrl: 'https://auth.example',
    store: 'redis://localhost',
    secrets: ['a'.repeat(32), 'b'.repeat(32)],
    appName: 'Café',
    trustedOrigins: ['https://a.example', 'http://localhost:3000'],
    enforceOrigin: false,
    basePath: '/auth',
    endpointPrefix: '/w',
    nonceTtlSeconds: 60,
    orderTtlSeconds: 61,
    sessionTtlSeconds: 62,
    sessionAbsoluteTtlSeconds: 63,
    nonceStore: undefined,
    adapters: ['ed25519'],
    verifier: 'portable',
    syncAddressToUser: true,
    syncPublicKeyToUser: true,
    resolveLogin: undefined,
    trustedProxies: 1,
    confirmationCode: 'required',
    rateLimit: false,
    claimUrlTemplate: 'https://phone.example/{orderId}#{claimToken}',
    orderModelName: 'orders',
    pages: false,
    logger: undefined,
  })
})

describe('a value that does not fit stops the start with one line that names the variable', () => {
  test.each([
    ['PORT', '80x'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['HOST', 'a b'],
    ['COUNTERSIGN_PUBLIC_URL', 'auth.example'],
    ['COUNTERSIGN_PUBLIC_URL', 'https://auth.example/path'],
    ['COUNTERSIGN_SECRET', 'short'],
    ['COUNTERSIGN_SECRET', `${'a'.repeat(32)},`],
    ['COUNTERSIGN_APP_NAME', 'a\nb'],
    ['COUNTERSIGN_APP_NAME', 'x'.repeat(81)],
    ['COUNTERSIGN_TRUSTED_ORIGINS', '*'],
    ['COUNTERSIGN_TRUSTED_ORIGINS', 'https://a.example,,'],
    ['COUNTERSIGN_ENFORCE_ORIGIN', 'maybe'],
    ['COUNTERSIGN_BASE_PATH', 'api'],
    ['COUNTERSIGN_BASE_PATH', '/api/'],
    ['COUNTERSIGN_NONCE_TTL_SECONDS', '0'],
    ['COUNTERSIGN_NONCE_TTL_SECONDS', '1.5'],
    ['COUNTERSIGN_NONCE_TTL_SECONDS', '1e9'],
    ['COUNTERSIGN_ORDER_TTL_SECONDS', 'NaN'],
    ['COUNTERSIGN_SESSION_TTL_SECONDS', 'Infinity'],
    ['COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS', '60'],
    ['COUNTERSIGN_VERIFIER', 'fast'],
    ['COUNTERSIGN_TRUST_PROXY', '11'],
    ['COUNTERSIGN_CONFIRMATION_CODE', 'off'],
    ['COUNTERSIGN_RATE_LIMIT', '5'],
    ['COUNTERSIGN_CLAIM_URL_TEMPLATE', '{origin}/claim?o={orderId}&t={claimToken}'],
    ['COUNTERSIGN_CLAIM_URL_TEMPLATE', '{origin}/claim#{claimToken}'],
    ['COUNTERSIGN_ORDER_MODEL_NAME', 'a-b'],
  ])('%s=%s', (name, value) => {
    let message = ''
    expect(() => {
      try {
        settings({ [name]: value })
      } catch (error) {
        message = (error as Error).message
        throw error
      }
    }).toThrow(TypeError)
    expect(message).toContain(name)
    expect(message).not.toContain('\n')
    if (name === 'COUNTERSIGN_SECRET') expect(message).not.toContain(value)
  })
})

test('an option that does not exist is refused, so that a misspelt one is not forgotten', () => {
  expect(() => resolveSettings({ enforceOrigins: true } as never)).toThrow(/enforceOrigins/)
  expect(() => resolveSettings({ resolveLogin: 'x' as never })).toThrow(/resolveLogin must be a function/)
  expect(() => resolveSettings({ nonceStore: { get() {} } as never })).toThrow(/nonceStore/)
})

test('misspelt variables are found, those of Kubernetes are not', () => {
  expect(
    unknownVariables({
      COUNTERSIGN_STOER: 'x',
      COUNTERSIGN_STORE: 'x',
      COUNTERSIGN_PORT_80_TCP: 'x',
      COUNTERSIGN_SERVICE_HOST: 'x',
    }),
  ).toEqual(['COUNTERSIGN_STOER'])
})

test('an empty variable is as good as none', () => {
  expect(settings({ PORT: '', COUNTERSIGN_APP_NAME: ' ' })).toMatchObject({ port: 8080, appName: 'Countersign' })
})
