import { expect, test } from 'vitest'
import { createCountersign, optionsFromEnvironment } from '../../../src/index.ts'
import { resolveSettings } from '../../../src/service/config.ts'

test.each([
  [{ tls: 'cert.pem' }, 'tls must be an object with cert, key'],
  [{ tls: true }, 'tls must be an object with cert, key'],
  [{ limits: [] }, /^limits must be an object with rates, /],
  [{ webhook: 'https://hooks.example' }, 'webhook must be an object with url, secret'],
  [{ metrics: 9464 }, 'metrics must be an object with port, host, collect, or true or false (on or off)'],
  [
    { pages: 'off' },
    /^pages \(COUNTERSIGN_PAGES\) must be an object with demoWallet, .*, or true or false \(on or off\)$/,
  ],
  [{ pages: { served: false } }, 'pages.served is not an option of Countersign'],
  [{ tls: { certificate: 'x' } }, 'tls.certificate is not an option of Countersign'],
  [{ tlsCert: 'x' }, 'tlsCert is not an option of Countersign'],
  [{ limits: { maxOrders: 1 } }, 'limits.maxOrders is not an option of Countersign'],
  [{ redis: { toString: 'x' } }, 'redis.toString is not an option of Countersign'],
  [{ maxStoreCalls: 1 }, 'maxStoreCalls is not an option of Countersign'],
  [{ reusePort: true }, 'reusePort is not an option of Countersign'],
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
  expect(resolveSettings({ metrics: true, pages: false })).toMatchObject({
    metrics: { collect: true, port: undefined },
    pages: { served: false },
  })
  expect(resolveSettings({ metrics: { port: 0, collect: true }, pages: { logoUrl: '/logo.svg' } })).toMatchObject({
    metrics: { collect: true, port: 0 },
    pages: { served: true, logoUrl: '/logo.svg' },
  })
  expect(resolveSettings({ tls: undefined } as never)).toEqual(resolveSettings())
})

test('options of variables come in their groups, and pages that are off stay off', () => {
  const variables = { COUNTERSIGN_TLS_CERT: 'a', COUNTERSIGN_MAX_ORDERS: '5', PORT: '1', COUNTERSIGN_METRICS_PORT: '2' }
  expect(optionsFromEnvironment(variables)).toEqual({
    tls: { cert: 'a' },
    limits: { orders: 5 },
    port: 1,
    metrics: { port: 2 },
  })
  const logo = { COUNTERSIGN_LOGO_URL: '/a' }
  expect(optionsFromEnvironment({ COUNTERSIGN_PAGES: 'on', ...logo })).toEqual({ pages: { logoUrl: '/a' } })
  expect(optionsFromEnvironment({ COUNTERSIGN_PAGES: 'off', ...logo })).toEqual({ pages: false })
  expect(() => resolveSettings(optionsFromEnvironment({ COUNTERSIGN_PAGES: 'maybe', ...logo }))).toThrow(
    /^pages \(COUNTERSIGN_PAGES\) must be /,
  )
})
