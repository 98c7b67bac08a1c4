import { expect, test } from 'vitest'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'
import { call, ownOrigin } from './calls.ts'
import { makeAuth } from './support.ts'

/** Calls per minute and address of every endpoint. A new one needs a row here; without one it fails these tests. */
const perMinute: Readonly<Record<string, number>> = {
  '/wallet/nonce': 240,
  '/wallet/verify': 240,
  '/wallet/link': 240,
  '/cross-device/start': 120,
  '/cross-device/preview': 1200,
  '/cross-device/claim': 1200,
  '/cross-device/challenge': 1200,
  '/cross-device/approve': 1200,
  '/cross-device/reject': 1200,
  '/cross-device/cancel': 1200,
  '/cross-device/finalize': 1200,
  '/cross-device/hand-over': 1200,
  '/cross-device/redeem': 1200,
  '/cross-device/events': 1200,
  '/cross-device/claim/:orderId': 1200,
  '/cross-device/pages/:file': 1200,
  '/computers': 2400,
  '/computers/forget': 2400,
  '/options': 2400,
}

/** A path without a limit, because Better Auth's limiter would keep the tickets in it. */
const unlimitedPaths = ['/cross-device/continue/:ticket']

/** A path that Better Auth serves for this process only. */
const internal = ['/wallet/host']

const plugins = [walletSignIn(), crossDevice()]

test('every endpoint has its row in this table, and a rule of its plugin with that allowance', () => {
  const paths = plugins.flatMap(({ endpoints }) => Object.values(endpoints).map(({ path }) => String(path)))
  const limited = paths.filter((path) => !internal.includes(path) && !unlimitedPaths.includes(path))
  expect(limited.toSorted()).toEqual(Object.keys(perMinute).toSorted())
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
      const isGet = /challenge|events|computers$|options/.test(other)
      expect((await call(auth, other, isGet ? undefined : {}, client)).status, other).not.toBe(429)
    }
    expect((await call(auth, path, {}, { 'x-client': '203.0.113.200' })).status).not.toBe(429)
  },
)

test('a backend with a start key starts as many orders as its users need', async () => {
  const key = 'a_start_key_of_32_characters_or_more'
  const advanced = { ipAddress: { ipAddressHeaders: ['x-client'] } }
  const auth = await makeAuth({
    auth: { rateLimit: { enabled: true, storage: 'memory' }, advanced },
    orders: { orderStartKeys: [key] },
  })
  const headers = { 'x-client': '203.0.113.201', authorization: `Bearer ${key}` }
  const order = { kind: 'login', requester: { origin: ownOrigin } }
  for (let i = 0; i <= (perMinute['/cross-device/start'] as number); i++) {
    expect((await call(auth, '/cross-device/start', order, headers)).status).toBe(200)
  }
})

test('Better Auth’s limiter keeps no ticket under any rules of the application', async () => {
  const customRules = { '/cross-device/**': { window: 60, max: 1000 } }
  const auth = await makeAuth({ auth: { rateLimit: { enabled: true, storage: 'database', customRules } } })
  const ticket = `csh_${'x'.repeat(43)}order`
  for (const path of [
    `/cross-device/continue/${ticket}`,
    `/cross-device/continue/${ticket}/`,
    '/cross-device/claim/x',
  ]) {
    await auth.handler(new Request(`${ownOrigin}/api/auth${path}`))
  }
  const { adapter } = await auth.$context
  const kept = JSON.stringify(await adapter.findMany({ model: 'rateLimit' }))
  expect(kept).toContain('/cross-device/claim/x')
  expect(kept).not.toContain('csh_')
})
