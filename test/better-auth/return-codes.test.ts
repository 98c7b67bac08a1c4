import type { BetterAuthOptions } from 'better-auth'
import { expect, test } from 'vitest'
import { type CrossDeviceOptions, crossDevice } from '../../src/better-auth/index.ts'
import { pageHeaders } from '../../src/http/page-headers.ts'
import { Signer } from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { answered, bearerOf, call, challengeOf, cookieOf, ownOrigin, type ReadOrder, readOrder } from './calls.ts'
import { type Auth, type AuthServerOptions, makeAuth } from './support.ts'

const returns = { orders: { confirmationCode: 'return' } } satisfies AuthServerOptions

async function approve(auth: Auth, { phone, challenge }: ReadOrder, signer = new Signer()) {
  return await answered(call(auth, '/cross-device/approve', { ...phone, proof: signer.prove(challenge.message) }))
}

test.each([
  ["Better Auth's database", async () => ({})],
  [
    'a store',
    async () => {
      const store = await memoryStore()
      return { store }
    },
  ],
])('with return codes, orders in %s are finalized with the code that the phone shows', async (_name, kept) => {
  const auth = await makeAuth({ orders: { ...returns.orders, ...(await kept()) } })
  const order = await readOrder(auth)
  expect(order.challenge.confirmationCode).toBeUndefined()
  expect(order.challenge.returnCode).toBeUndefined()
  const { returnCode } = await approve(auth, order)
  expect(returnCode).toMatch(/^\d{6}$/)
  expect((await challengeOf(auth, order.phone)).json).toMatchObject({ status: 'approved', returnCode })

  const finalize = (code?: string) => call(auth, '/cross-device/finalize', { ...order.desktop, returnCode: code })
  const wrong = returnCode === '000000' ? '000001' : '000000'
  const without = await finalize()
  expect([without.status, without.json.code]).toEqual([400, 'RETURN_CODE_REQUIRED'])
  const mistyped = await finalize(wrong)
  expect([mistyped.status, mistyped.json.code]).toEqual([401, 'RETURN_CODE_WRONG'])
  expect(JSON.stringify(mistyped.json)).not.toContain(returnCode)
  const signedIn = await finalize(returnCode)
  expect(signedIn.status).toBe(200)
  expect(await auth.api.getSession({ headers: new Headers({ cookie: cookieOf(signedIn) }) })).not.toBeNull()
  expect((await finalize(returnCode)).json.token).toBe(signedIn.json.token)
  expect((await finalize()).json.code).toBe('RETURN_CODE_REQUIRED')
  expect((await challengeOf(auth, order.phone)).json.code).toBe('ORDER_FINALIZED')
})

test('the return code is in no row of the database', async () => {
  const auth = await makeAuth(returns)
  const order = await readOrder(auth)
  const { returnCode } = await approve(auth, order)
  const { adapter } = await auth.$context
  const rows = await adapter.findMany({ model: 'crossDeviceOrder' })
  // Digits of a key or a time can be the same by chance, so it is looked for as a value.
  expect(rows).toHaveLength(1)
  expect(JSON.stringify(rows)).not.toMatch(new RegExp(`\\\\?"${returnCode}\\\\?"`))
})

test('an order is handed over to another browser, whose ticket works once', async () => {
  const auth = await makeAuth(returns)
  const order = await readOrder(auth)
  const { ticket, handoverUrl, expiresAt } = await answered(call(auth, '/cross-device/hand-over', order.phone))
  expect(ticket).toMatch(/^csh_[\w-]{43}/)
  expect(handoverUrl).toBe(`${ownOrigin}/api/auth/cross-device/continue/${ticket}`)
  expect(expiresAt).toBeGreaterThan(Date.now())

  // Opening the page, as a link preview does, redeems nothing.
  const page = await auth.handler(new Request(handoverUrl))
  expect(page.status).toBe(200)
  // The page's policy also has the hash of the style sheet in it.
  const { 'content-security-policy': policy = '', ...headers } = Object.fromEntries(page.headers)
  const { 'content-security-policy': ownPolicy, ...own } = pageHeaders
  expect(headers).toMatchObject({ ...own, 'cache-control': 'no-store' })
  expect(policy.replace(/ 'sha256-[^']+'/, '')).toBe(ownPolicy)
  const { challengeToken, status } = await answered(call(auth, '/cross-device/redeem', { ticket }))
  expect(status).toBe('waiting_user')
  const again = await call(auth, '/cross-device/redeem', { ticket })
  expect([again.status, again.json.code]).toEqual([401, 'HANDOVER_INVALID'])

  expect((await challengeOf(auth, order.phone)).json.code).toBe('ORDER_TOKEN_INVALID')
  const phone = { ...order.phone, challengeToken }
  const { returnCode } = await approve(auth, { ...order, phone })
  const signedIn = await call(auth, '/cross-device/finalize', { ...order.desktop, returnCode })
  expect(signedIn.status).toBe(200)
  // The browser that handed the order over can still take it back.
  expect((await call(auth, '/cross-device/reject', order.phone)).json).toMatchObject({ sessionEnded: true })
  expect(await auth.api.getSession({ headers: new Headers(bearerOf(signedIn)) })).toBeNull()
})

test('without the plugin’s pages, a hand-over leads to the application’s own', async () => {
  const auth = await makeAuth({ orders: { pages: false } })
  const { phone } = await readOrder(auth)
  const { ticket, handoverUrl } = await answered(call(auth, '/cross-device/hand-over', phone))
  expect(handoverUrl).toBe(`${ownOrigin}/cross-device/continue/${ticket}`)
  expect((await call(auth, `/cross-device/continue/${ticket}`)).json.code).toBe('ROUTE_NOT_FOUND')
})

test('with start keys, only the application’s backend starts orders', async () => {
  const key = 'a_start_key_of_32_characters_or_more'
  const auth = await makeAuth({ orders: { orderStartKeys: [key] } })
  const requester = { origin: ownOrigin, ip: '198.51.100.7', userAgent: 'Browser/1.0' }
  const start = (headers?: Record<string, string>, body: object = { requester }) =>
    call(auth, '/cross-device/start', { kind: 'login', ...body }, headers)
  for (const headers of [undefined, { authorization: `Bearer ${key}x` }]) {
    const refused = await start(headers)
    expect([refused.status, refused.json.code]).toEqual([401, 'START_KEY_REQUIRED'])
  }
  const right = { authorization: `Bearer ${key}` }
  expect((await start(right, {})).json.code).toBe('INVALID_REQUEST')
  expect((await start(right, { requester: { origin: 'https://evil.example' } })).json.code).toBe('ORIGIN_NOT_TRUSTED')
  // In the same process, the backend calls Better Auth's own function.
  const headers = new Headers(right)
  const { orderId, claimToken } = await auth.api.startOrder({ body: { kind: 'login', requester }, headers })
  const { challengeToken } = await answered(call(auth, '/cross-device/claim', { orderId, claimToken }))
  const challenge = await answered(challengeOf(auth, { orderId, challengeToken }))
  expect(challenge.requester).toMatchObject({ ...requester, startedWithKey: true })
})

test('a sign order shows its payload, and only the wallet that it names approves it', async () => {
  const auth = await makeAuth()
  const owner = new Signer()
  const wallet = { adapterId: 'ed25519', expectedPublicKeyHex: owner.publicKeyHex }
  const order = await readOrder(auth, { kind: 'sign', payload: '{"b":1, "a":"x"}', ...wallet })
  expect(order.challenge).toMatchObject({ payload: '{"a":"x","b":1}', expectedPublicKeyHex: owner.publicKeyHex })
  const foreign = { ...order.phone, proof: new Signer().prove(order.challenge.message) }
  const refused = await call(auth, '/cross-device/approve', foreign)
  expect([refused.status, refused.json.code]).toEqual([403, 'WRONG_WALLET'])
  await approve(auth, order, owner)
  const { proofArtifact } = await answered(call(auth, '/cross-device/finalize', order.desktop))
  expect(proofArtifact).toMatchObject({ payload: '{"a":"x","b":1}', payloadHash: order.challenge.payloadHash })
})

const addresses = { ipAddress: { ipAddressHeaders: ['x-client'] } }

/** What a phone is told of the network, with the headers of the desktop's proxy and of its own. */
async function sameNetworkIn(auth: Auth, ofDesktop: Record<string, string>, ofPhone: Record<string, string>) {
  const { orderId, claimToken } = (await call(auth, '/cross-device/start', { kind: 'login' }, ofDesktop)).json
  const { challengeToken } = await answered(call(auth, '/cross-device/claim', { orderId, claimToken }))
  const headers = { ...ofPhone, authorization: `Bearer ${challengeToken}` }
  const challenge = await answered(call(auth, `/cross-device/challenge?orderId=${orderId}`, undefined, headers))
  return challenge.requester.sameNetwork
}

test.each([
  ['the same network', '198.51.100.9', true],
  ['another network', '203.0.113.9', false],
  ['an unknown network', '10.0.0.1', undefined],
])('a phone on %s is told so', async (_name, ip, sameNetwork) => {
  const auth = await makeAuth({ auth: { advanced: addresses } })
  expect(await sameNetworkIn(auth, { 'x-client': '198.51.100.7' }, { 'x-client': ip })).toBe(sameNetwork)
})

test.each([
  ['nothing says which header the proxy writes', undefined],
  ['IPv6 addresses are cut to less than a network', { ipAddress: { ...addresses.ipAddress, ipv6Subnet: 48 } }],
])('networks are not compared if %s', async (_name, advanced) => {
  const auth = await makeAuth({ auth: { ...(advanced === undefined ? {} : { advanced }) } })
  const client = { 'x-forwarded-for': '198.51.100.7', 'x-client': '2001:db8:1:2::1' }
  expect(await sameNetworkIn(auth, client, client)).toBeUndefined()
})

test('with proximity enforced, a phone on another network is refused; and Better Auth has to know the addresses', async () => {
  const orders = { proximity: 'enforce' } as const
  const auth = await makeAuth({ orders, auth: { advanced: addresses } })
  const { json } = await call(auth, '/cross-device/start', { kind: 'login' }, { 'x-client': '198.51.100.7' })
  const claim = { orderId: json.orderId, claimToken: json.claimToken }
  const far = await call(auth, '/cross-device/claim', claim, { 'x-client': '203.0.113.9' })
  expect([far.status, far.json.code]).toEqual([403, 'NETWORK_MISMATCH'])
  expect((await call(auth, '/cross-device/claim', claim, { 'x-client': '198.51.100.9' })).status).toBe(200)
  await expect((await makeAuth({ orders })).$context).rejects.toThrow(/advanced\.ipAddress/)
})

test.each([
  [{ orderStartKeys: ['short'] }, /orderStartKeys/],
  [{ proximity: 'far' }, /proximity/],
  [{ confirmationCode: 'none' }, /confirmationCode/],
])('an option that does not fit stops the start: %o', (options, message) => {
  expect(() => crossDevice(options as never)).toThrow(message)
})

/** Better Auth at a base URL, asked at another address; with what its start logs of the setting. */
async function authAt(baseURL: BetterAuthOptions['baseURL'], orders: CrossDeviceOptions = {}) {
  const said: string[] = []
  const log = (_level: string, text: string): void => void (text.includes('confirmationCode') && said.push(text))
  const auth = await makeAuth({ orders, auth: { baseURL, logger: { level: 'warn', log } } })
  const start = async (url: string) => {
    const headers = { 'content-type': 'application/json', origin: url }
    const init = { method: 'POST', headers, body: JSON.stringify({ kind: 'login' }) }
    const { confirmationCode } = await (
      await auth.handler(new Request(`${url}/api/auth/cross-device/start`, init))
    ).json()
    return confirmationCode === '' ? 'return' : 'compare'
  }
  return { start, said }
}

test.each([
  ['a public one', 'https://app.example', 'https://app.example', /is return, the default at https:\/\/app\.example/],
  [
    'not set, and asked at a loopback name',
    undefined,
    ownOrigin,
    /is return, the default at an address that is not known/,
  ],
  ['one of several hosts', { allowedHosts: ['localhost:3000'] }, ownOrigin, /an address that is not known/],
] as const)(
  'with a base URL that is %s, return codes are the default, and the start says so',
  async (_, base, url, line) => {
    const { start, said } = await authAt(typeof base === 'object' ? { allowedHosts: [...base.allowedHosts] } : base)
    expect(await start(url)).toBe('return')
    expect(said).toEqual([expect.stringMatching(line)])
  },
)

test('with a base URL that is a loopback name, the code is compared by default, and nothing is said', async () => {
  const { start, said } = await authAt(ownOrigin)
  expect(await start(ownOrigin)).toBe('compare')
  expect(said).toEqual([])
})

test('compare that is set for a public base URL stays, and the start warns of it', async () => {
  const { start, said } = await authAt('https://app.example', { confirmationCode: 'compare' })
  expect(await start('https://app.example')).toBe('compare')
  expect(said).toEqual([expect.stringMatching(/is compare, which stops no relayed order/)])
})
