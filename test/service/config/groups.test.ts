import { expect, test } from 'vitest'
import { createCountersign, optionsFromEnvironment } from '../../../src/index.ts'
import {
  type FlatOptions,
  grouped,
  nameInCode,
  type Option,
  optionRows,
  ungrouped,
} from '../../../src/service/config/options.ts'

const inGroups = optionRows.map(([option]) => option).filter((option) => nameInCode(option) !== option)

test('the groups and their names', () => {
  expect(Object.fromEntries(inGroups.map((option) => [option, nameInCode(option)]))).toEqual({
    tlsCert: 'tls.cert',
    tlsKey: 'tls.key',
    redisTlsCa: 'redis.tlsCa',
    redisTlsCert: 'redis.tlsCert',
    redisTlsKey: 'redis.tlsKey',
    redisTlsServerName: 'redis.tlsServerName',
    accessTokenAudiences: 'accessTokens.audiences',
    accessTokenTtlSeconds: 'accessTokens.ttlSeconds',
    accessTokenAlgorithm: 'accessTokens.algorithm',
    demoWallet: 'pages.demoWallet',
    logoUrl: 'pages.logoUrl',
    accentColor: 'pages.accentColor',
    textsFile: 'pages.textsFile',
    rateLimits: 'limits.rates',
    maxConnections: 'limits.connections',
    maxConnectionsPerAddress: 'limits.connectionsPerAddress',
    maxRequests: 'limits.requests',
    maxPendingBodies: 'limits.pendingBodies',
    maxStreams: 'limits.streams',
    maxNonces: 'limits.nonces',
    maxOrders: 'limits.orders',
    metricsPort: 'metrics.port',
    metricsHost: 'metrics.host',
    oidcClients: 'oidc.clients',
    oidcEmail: 'oidc.email',
    oidcClaims: 'oidc.claims',
    oidcPeople: 'oidc.people',
    webhookUrl: 'webhook.url',
    webhookSecret: 'webhook.secret',
  })
})

test.each(inGroups)('the name %s of before is refused, with the new one', async (option) => {
  await expect(createCountersign({ [option]: 'x' })).rejects.toThrow(
    new TypeError(`${option} is now ${nameInCode(option)}`),
  )
})

test.each([
  [{ tls: 'cert.pem' }, 'tls must be an object with cert, key'],
  [{ tls: true }, 'tls must be an object with cert, key'],
  [{ limits: [] }, /^limits must be an object with rates, /],
  [{ webhook: null }, 'webhook must be an object with url, secret'],
  [{ metrics: 9464 }, 'metrics must be an object with port, host, collect, or true or false'],
  [{ pages: 'off' }, /^pages must be an object with demoWallet, .*, or true or false$/],
  [{ tls: { certificate: 'x' } }, 'tls.certificate is not an option of Countersign'],
  [{ limits: { maxOrders: 1 } }, 'limits.maxOrders is not an option of Countersign'],
  [{ redis: { toString: 'x' } }, 'redis.toString is not an option of Countersign'],
  [{ maxStoreCalls: 1 }, 'maxStoreCalls is not an option of Countersign'],
  [{ limits: { orders: 0 } }, /^limits\.orders \(COUNTERSIGN_MAX_ORDERS\) must be /],
  [{ webhook: { url: 'https://hooks.example' } }, /^webhook\.url \(COUNTERSIGN_WEBHOOK_URL\) and webhook\.secret /],
])('%j stops the start', async (options, message) => {
  await expect(createCountersign(options as never)).rejects.toSatisfy(
    (error: TypeError) =>
      error instanceof TypeError &&
      (typeof message === 'string' ? error.message === message : message.test(error.message)),
  )
})

test('metrics and pages are booleans or groups, and an object turns pages on', () => {
  expect(ungrouped({ metrics: true, pages: false })).toEqual({ metrics: true, pages: false })
  expect(ungrouped({ metrics: { port: 0, collect: true }, pages: { logoUrl: '/logo.svg' } })).toEqual({
    metricsPort: 0,
    metrics: true,
    logoUrl: '/logo.svg',
  })
  expect(ungrouped({ tls: undefined } as never)).toEqual({})
})

test('options of variables come in their groups, and lose nothing there', () => {
  const variables = { COUNTERSIGN_TLS_CERT: 'a', COUNTERSIGN_MAX_ORDERS: '5', PORT: '1', COUNTERSIGN_METRICS_PORT: '2' }
  const options = optionsFromEnvironment(variables)
  expect(options).toEqual({ tls: { cert: 'a' }, limits: { orders: 5 }, port: 1, metrics: { port: 2 } })
  const all = Object.fromEntries(
    optionRows.map(([option]: readonly [Option, unknown]) => [option, option]),
  ) as FlatOptions
  const { pages: _, ...others } = all
  expect(ungrouped(grouped(others))).toEqual(others)
  expect(grouped({ pages: true, logoUrl: '/a' })).toEqual({ pages: { logoUrl: '/a' } })
  expect(grouped({ pages: false, logoUrl: '/a' })).toEqual({ pages: false })
})
