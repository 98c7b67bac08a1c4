import { expect, test } from 'vitest'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'
import { call } from './calls.ts'
import { makeAuth } from './support.ts'

/** Calls per minute and address of every endpoint. A new one needs a row here; without one it fails these tests. */
const perMinute: Readonly<Record<string, number>> = {
  '/wallet/nonce': 240,
  '/wallet/verify': 240,
  '/wallet/link': 240,
  '/cross-device/start': 120,
  '/cross-device/claim': 1200,
  '/cross-device/challenge': 1200,
  '/cross-device/approve': 1200,
  '/cross-device/reject': 1200,
  '/cross-device/cancel': 1200,
  '/cross-device/finalize': 1200,
  '/cross-device/events': 1200,
  '/cross-device/claim/:orderId': 1200,
  '/cross-device/pages/:file': 1200,
}

/** A path that Better Auth serves for this process only. */
const internal = ['/wallet/host']

const plugins = [walletSignIn(), crossDevice()]

test('every endpoint has its row in this table, and a rule of its plugin with that allowance', () => {
  const paths = plugins.flatMap(({ endpoints }) => Object.values(endpoints).map(({ path }) => String(path)))
  expect(paths.filter((path) => !internal.includes(path)).toSorted()).toEqual(Object.keys(perMinute).toSorted())
  // Better Auth goes by the first rule that matches.
  const rules = plugins.flatMap(({ rateLimit }) => rateLimit)
  const found = Object.keys(perMinute).map((path) => {
    const rule = rules.find(({ pathMatcher }) => pathMatcher(path))
    return [path, rule?.max, rule?.window]
  })
  expect(found).toEqual(Object.entries(perMinute).map(([path, max]) => [path, max, 60]))
})

test.each(['/wallet/verify', '/cross-device/start', '/cross-device/claim'])(
  'Better Auth refuses what is beyond the allowance of %s, with the time to wait, and nothing else',
  async (path) => {
    const advanced = { ipAddress: { ipAddressHeaders: ['x-client'] } }
    const auth = await makeAuth({ auth: { rateLimit: { enabled: true, storage: 'memory' }, advanced } })
    const most = perMinute[path] as number
    // The memory of Better Auth's limiter is that of the process, so each test has an address of its own.
    const client = { 'x-client': `203.0.113.${Object.keys(perMinute).indexOf(path)}` }
    let refused = 0
    for (let i = 0; i < most; i++) if ((await call(auth, path, {}, client)).status === 429) refused++
    expect(refused).toBe(0)
    const beyond = await call(auth, path, {}, client)
    expect(beyond.status).toBe(429)
    expect(Number(beyond.headers.get('x-retry-after'))).toBeGreaterThan(0)
    for (const other of Object.keys(perMinute)) {
      // Pages are not JSON.
      if (other === path || other.includes(':')) continue
      const isGet = /challenge|events/.test(other)
      expect((await call(auth, other, isGet ? undefined : {}, client)).status, other).not.toBe(429)
    }
    expect((await call(auth, path, {}, { 'x-client': '203.0.113.200' })).status).not.toBe(429)
  },
)
