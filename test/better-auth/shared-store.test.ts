import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { NonceStore } from '../../src/core/sign-in/nonce.ts'
import { setMark } from '../../src/service/copy-mark.ts'
import { CountersignError } from '../../src/shared/errors.ts'
import { withKeyPrefix } from '../../src/store/map-store.ts'
import { Signer } from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { type Answer, approvedOrder, call, countRows, ownOrigin } from './calls.ts'
import { type Auth, type AuthServerOptions, makeAuth } from './support.ts'

const bank = 'https://bank.example'

/** The store of nonces that two applications share. */
function mapStore(): NonceStore & { readonly map: Map<string, string> } {
  const map = new Map<string, string>()
  return {
    map,
    get: async (key) => map.get(key),
    set: async (key, value) => map.set(key, value),
    delete: async (key) => map.delete(key),
  }
}

/** Another application on the same stores: with another origin, or another name. */
const others: [name: string, options: AuthServerOptions][] = [
  ['another origin', { auth: { baseURL: bank } }],
  ['another origin and no secret in common', { auth: { baseURL: bank, secret: 'another secret, for tests as well' } }],
  ['another name', { auth: { trustedOrigins: [bank] }, wallet: { appName: 'Bank' }, orders: { appName: 'Bank' } }],
]

describe.each(others)('two Better Auth servers on one store, of which one has %s', (_name, options) => {
  test('do not find orders of each other', async () => {
    const store = await memoryStore()
    const one = await makeAuth({ orders: { store } })
    const other = await makeAuth({ ...options, orders: { ...options.orders, store } })
    const { orderId, desktopToken } = await approvedOrder(one)
    for (const origin of [ownOrigin, bank]) {
      const finalize = (id: string): Promise<Answer> =>
        call(other, '/cross-device/finalize', { orderId: id, desktopToken }, { origin })
      const { status, json } = await finalize(orderId)
      expect([status, json]).toEqual([404, (await finalize('none')).json])
      const watched = await watch(other, orderId, desktopToken, origin)
      expect([watched.status, watched.json.code]).toEqual([404, 'ORDER_NOT_FOUND'])
    }
    expect(await countRows(other, ['session'])).toEqual([0])
    expect((await call(one, '/cross-device/finalize', { orderId, desktopToken })).status).toBe(200)
  })

  test('do not accept signatures for each other', async () => {
    const nonceStore = mapStore()
    const one = await makeAuth({ wallet: { nonceStore } })
    const other = await makeAuth({ ...options, wallet: { ...options.wallet, nonceStore } })
    const { json } = await call(one, '/wallet/nonce', {})
    const proof = { nonceId: json.nonceId, ...new Signer().prove(json.message) }
    for (const origin of [ownOrigin, bank]) {
      const verified = await call(other, '/wallet/verify', proof, { origin })
      expect([verified.status, verified.json.code]).toEqual([401, 'NONCE_NOT_FOUND'])
    }
    expect(await countRows(other, ['user', 'session'])).toEqual([0, 0])
    expect((await call(one, '/wallet/verify', proof)).status).toBe(200)
  })
})

test('a service on the store of the plugin does not find its orders', async () => {
  const store = await memoryStore()
  const auth = await makeAuth({ orders: { store } })
  const { url } = await startService({ store, appName: 'App', trustedOrigins: [bank] })
  const order = await approvedOrder(auth)
  for (const origin of [ownOrigin, bank]) {
    expect((await rest(url, '/cross-device/finalize', order, { origin })).json.code).toBe('ORDER_NOT_FOUND')
  }
  expect((await call(auth, '/cross-device/finalize', order)).status).toBe(200)
})

test('a key prefix begins the keys of the plugins in stores that they are given', async () => {
  const store = await memoryStore()
  const nonceStore = mapStore()
  const auth = await makeAuth({ orders: { store, keyPrefix: 'app' }, wallet: { nonceStore, keyPrefix: 'app' } })
  const { orderId } = await approvedOrder(auth)
  expect(await store.get(`app:order:{${orderId}}`)).toBeDefined()
  expect(await store.get(`order:{${orderId}}`)).toBeUndefined()
  const { json } = await call(auth, '/wallet/nonce', {})
  expect([...nonceStore.map.keys()]).toEqual([`app:nonce:${json.nonceId}`])
})

test('a store that was copied takes no calls of the plugin half a minute later, and no new server starts on it', async () => {
  const options = { orders: { store: await memoryStore(), keyPrefix: 'app' } }
  const auth = await makeAuth(options)
  const start = async (): Promise<Answer> => await call(auth, '/cross-device/start', { kind: 'login' })
  expect((await start()).status).toBe(200)
  await setMark(withKeyPrefix(options.orders.store, 'app'), { side: 'from', other: 'redis', run: '1' })
  await expect((await makeAuth(options)).$context).rejects.toThrow(/was copied to another store \(redis\)/)
  const at = performance.now()
  const now = vi.spyOn(performance, 'now').mockReturnValue(at + 31_000)
  onTestFinished(() => now.mockRestore())
  expect(await start()).toMatchObject({ status: 503, json: { code: 'STORE_UNAVAILABLE' } })
})

test('a store that does not answer while Better Auth starts is used once it does', async () => {
  const store = await memoryStore()
  vi.spyOn(store, 'get').mockRejectedValueOnce(new CountersignError('STORE_UNAVAILABLE', 'no answer'))
  const auth = await makeAuth({ orders: { store } })
  await auth.$context
  expect((await call(auth, '/cross-device/start', { kind: 'login' })).status).toBe(200)
})

test('an order of an origin that a pattern trusts is approved from the server’s own origin', async () => {
  const auth = await makeAuth({ auth: { trustedOrigins: ['https://*.example.com'] } })
  const tenant = { origin: 'https://one.example.com' }
  const signer = new Signer()
  const { json: started } = await call(auth, '/cross-device/start', { kind: 'login' }, tenant)
  const { orderId, claimToken, desktopToken } = started
  const { challengeToken } = (await call(auth, '/cross-device/claim', { orderId, claimToken })).json
  const authorization = { authorization: `Bearer ${challengeToken}` }
  const { json: challenge } = await call(auth, `/cross-device/challenge?orderId=${orderId}`, undefined, authorization)
  const approval = { orderId, challengeToken, proof: signer.prove(challenge.message) }
  expect((await call(auth, '/cross-device/approve', approval)).json.status).toBe('approved')
  expect((await call(auth, '/cross-device/finalize', { orderId, desktopToken }, tenant)).status).toBe(200)
})

test('an order of an origin that a function no longer returns is not found', async () => {
  let tenants = ['https://one.example']
  const auth = await makeAuth({ auth: { trustedOrigins: async () => tenants } })
  const { json: order } = await call(auth, '/cross-device/start', { kind: 'login' }, { origin: 'https://one.example' })
  const { orderId, claimToken } = order
  tenants = []
  expect((await call(auth, '/cross-device/claim', { orderId, claimToken })).json.code).toBe('ORDER_NOT_FOUND')
  tenants = ['https://one.example']
  expect((await call(auth, '/cross-device/claim', { orderId, claimToken })).status).toBe(200)
})

/** Watches an order; the answer of a refusal. */
async function watch(auth: Pick<Auth, 'handler'>, orderId: string, token: string, origin: string): Promise<Answer> {
  return await call(auth, `/cross-device/events?orderId=${orderId}`, undefined, {
    origin,
    authorization: `Bearer ${token}`,
  })
}
