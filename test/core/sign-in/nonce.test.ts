import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { OriginPolicy, type OriginRules } from '../../../src/core/origin-policy.ts'
import { type NonceStore, Nonces } from '../../../src/core/sign-in/nonce.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { from, outcomeOf } from '../order/support.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const origin = 'https://app.example'
const trusted = [origin, 'https://other.example']
const policy = (rules: Partial<OriginRules> = {}) => new OriginPolicy({ enforce: true, own: origin, trusted, ...rules })
/** Whoever asks may use it. */
const unenforced = policy({ enforce: false })

/**
 * The application's own store, as simple as the contract allows: a map, every step slow enough for others to come
 * between.
 */
function mapStore(): NonceStore & { readonly map: Map<string, string>; readonly ttls: number[] } {
  const map = new Map<string, string>()
  const ttls: number[] = []
  const later = () => new Promise((resolve) => setImmediate(resolve))
  return {
    map,
    ttls,
    get: async (key) => {
      await later()
      return map.get(key) ?? null
    },
    set: async (key, value, { ttlSeconds }) => {
      ttls.push(ttlSeconds)
      map.set(key, value)
    },
    delete: async (key) => {
      await later()
      map.delete(key)
    },
  }
}

describe.each([
  ['the store', () => undefined],
  ['a nonce store without take', mapStore],
  [
    'a nonce store with take',
    () => {
      const plain = mapStore()
      return {
        ...plain,
        take: async (key: string) => {
          const value = plain.map.get(key)
          plain.map.delete(key)
          return value
        },
      }
    },
  ],
])('on %s', (_name, custom) => {
  const make = async () => new Nonces({ appName: 'App', ttlSeconds: 60, store: await memoryStore(), custom: custom() })

  test('a nonce is used once, however many try at once, whether their origin is known or not', async () => {
    const nonces = await make()
    const issued = await nonces.issue(origin)
    const tries = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) =>
        nonces.consume(issued.nonceId, {
          request: from([origin, undefined, 'https://other.example'][i % 3]),
          origins: unenforced,
        }),
      ),
    )
    const won = tries.filter((one) => one.status === 'fulfilled')
    expect(won.map(({ value }) => value)).toEqual([issued])
    for (const lost of tries.filter((one) => one.status === 'rejected')) {
      expect(lost.reason).toMatchObject({ reason: 'NONCE_NOT_FOUND' })
    }
  })

  test('a nonce that was never issued is not found', async () => {
    const nonces = await make()
    await expect(nonces.consume('nobody', { request: from(origin), origins: policy() })).rejects.toMatchObject({
      reason: 'NONCE_NOT_FOUND',
    })
  })

  test('a nonce for adding a wallet is good for its user only, and for nothing else', async () => {
    const nonces = await make()
    const link = await nonces.issue(origin, { link: { userId: 'mine' } })
    const login = await nonces.issue(origin)
    const notFound = { reason: 'NONCE_NOT_FOUND' }
    for (const caller of [from(origin), from(undefined)]) {
      await expect(
        nonces.consume(link.nonceId, { request: caller, origins: policy(), userId: 'theirs' }),
      ).rejects.toMatchObject(notFound)
      await expect(nonces.consume(link.nonceId, { request: caller, origins: policy() })).rejects.toMatchObject(notFound)
      await expect(
        nonces.consume(login.nonceId, { request: caller, origins: policy(), userId: 'mine' }),
      ).rejects.toMatchObject(notFound)
    }
    // Also when both have expired, so that nobody learns of another user's.
    vi.setSystemTime(link.expiresAt)
    await expect(
      nonces.consume(link.nonceId, { request: from(origin), origins: policy(), userId: 'theirs' }),
    ).rejects.toMatchObject(notFound)
    vi.setSystemTime(link.issuedAt)
    // None of these calls used them.
    expect(await nonces.consume(link.nonceId, { request: from(origin), origins: policy(), userId: 'mine' })).toEqual(
      link,
    )
    expect(await nonces.consume(login.nonceId, { request: from(origin), origins: policy() })).toEqual(login)
    await expect(
      nonces.consume(link.nonceId, { request: from(origin), origins: policy(), userId: 'mine' }),
    ).rejects.toMatchObject(notFound)
  })

  test('an expired nonce is expired from that millisecond on', async () => {
    const nonces = await make()
    const { nonceId, expiresAt } = await nonces.issue(origin)
    vi.setSystemTime(expiresAt)
    await expect(nonces.consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject({
      reason: 'NONCE_EXPIRED',
    })
    vi.setSystemTime(expiresAt - 1)
    expect(await nonces.consume(nonceId, { request: from(origin), origins: policy() })).toMatchObject({ nonceId })
  })

  test.each([undefined, 'https://other.example', 'https://evil.example', `${origin}","x":"`])(
    'a caller from %s is refused, and the nonce left to its owner',
    async (other) => {
      const nonces = await make()
      const { nonceId } = await nonces.issue(origin)
      const refused = nonces.consume(nonceId, { request: from(other), origins: policy() })
      await expect(refused).rejects.toMatchObject({ reason: 'ORIGIN_MISMATCH' })
      expect(await nonces.consume(nonceId, { request: from(origin), origins: policy() })).toMatchObject({ nonceId })
    },
  )

  test('a nonce of an origin that is no longer trusted is not found, expired or not, and stays unused', async () => {
    const nonces = await make()
    const { nonceId, expiresAt } = await nonces.issue(origin)
    const later = policy({ trusted: ['https://other.example'] })
    const unknown = await outcomeOf(nonces.consume('nobody', { request: from(origin), origins: later }))
    for (const caller of [origin, 'https://other.example']) {
      expect(await outcomeOf(nonces.consume(nonceId, { request: from(caller), origins: later }))).toEqual(unknown)
    }
    vi.setSystemTime(expiresAt)
    expect(await outcomeOf(nonces.consume(nonceId, { request: from(origin), origins: later }))).toEqual(unknown)
    vi.setSystemTime(expiresAt - 1)
    expect(await nonces.consume(nonceId, { request: from(origin), origins: policy() })).toMatchObject({ nonceId })
  })
})

describe('the application name of a nonce', () => {
  const make = async () => {
    const store = await memoryStore()
    const named = (appName: string) => new Nonces({ appName, ttlSeconds: 60, store })
    return { store, named }
  }
  const foreign = { reason: 'NONCE_NOT_FOUND' }

  test('must be that of the service, which otherwise does not even take it', async () => {
    const { store, named } = await make()
    const { nonceId, expiresAt } = await named('App').issue(origin)
    const before = await store.get(`nonce:${nonceId}`)
    const take = vi.spyOn(store, 'take')
    for (const appName of ['Bank', 'App"', 'Ap', 'App requests authentication']) {
      await expect(named(appName).consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject(
        foreign,
      )
    }
    vi.setSystemTime(expiresAt)
    await expect(named('Bank').consume(nonceId, { request: from(origin), origins: unenforced })).rejects.toMatchObject(
      foreign,
    )
    expect(take).not.toHaveBeenCalled()
    vi.setSystemTime(expiresAt - 1)
    expect(await store.get(`nonce:${nonceId}`)).toEqual(before)
    expect(await named('App').consume(nonceId, { request: from(origin), origins: policy() })).toMatchObject({ nonceId })
  })
})

test('a nonce that an earlier release issued is good for its caller, once, and for no other', async () => {
  const store = await memoryStore()
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
  const { nonceId } = await nonces.issue(origin)
  const earlierId = nonceId.slice(0, 22)
  const record = (await store.take(`nonce:${nonceId}`)) as string
  await store.create(`nonce:${earlierId}`, record.replace(nonceId, earlierId), { ttlMs: 60_000 })
  const consume = (caller: string) => nonces.consume(earlierId, { request: from(caller), origins: policy() })
  await expect(consume('https://other.example')).rejects.toMatchObject({ reason: 'ORIGIN_MISMATCH' })
  expect(await consume(origin)).toMatchObject({ nonceId: earlierId, origin })
  await expect(consume(origin)).rejects.toMatchObject({ reason: 'NONCE_NOT_FOUND' })
})

test('a nonce is taken without a look at it by the caller that its id is for, and by no other', async () => {
  const store = await memoryStore()
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
  const link = await nonces.issue(origin, { link: { userId: 'mine' } })
  const login = await nonces.issue(origin)
  const [get, take] = [vi.spyOn(store, 'get'), vi.spyOn(store, 'take')]
  const other = { request: from('https://other.example'), origins: policy() }
  await expect(nonces.consume(login.nonceId, other)).rejects.toMatchObject({ reason: 'ORIGIN_MISMATCH' })
  const byAnother = { request: from(origin), origins: policy(), userId: 'theirs' }
  await expect(nonces.consume(link.nonceId, byAnother)).rejects.toMatchObject({ reason: 'NONCE_NOT_FOUND' })
  expect([get, take].map(({ mock }) => mock.calls.length)).toEqual([2, 0])
  expect(await nonces.consume(login.nonceId, { request: from(origin), origins: policy() })).toEqual(login)
  expect(await nonces.consume(link.nonceId, { ...byAnother, userId: 'mine' })).toEqual(link)
  expect([get, take].map(({ mock }) => mock.calls.length)).toEqual([2, 2])
})

test('a nonce of an origin that is no longer trusted is not even taken', async () => {
  const store = await memoryStore()
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
  const { nonceId } = await nonces.issue(origin)
  const take = vi.spyOn(store, 'take')
  const refused = nonces.consume(nonceId, { request: from(origin), origins: policy({ trusted: [] }) })
  await expect(refused).rejects.toMatchObject({ reason: 'NONCE_NOT_FOUND' })
  expect(take).not.toHaveBeenCalled()
})

test('a nonce that expires while it is taken has expired, and is used', async () => {
  const store = await memoryStore()
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
  const { nonceId, expiresAt } = await nonces.issue(origin)
  const take = store.take.bind(store)
  vi.spyOn(store, 'take').mockImplementationOnce(async (key) => {
    vi.setSystemTime(expiresAt)
    return await take(key)
  })
  await expect(nonces.consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject({
    reason: 'NONCE_EXPIRED',
  })
  vi.setSystemTime(expiresAt - 1)
  await expect(nonces.consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject({
    reason: 'NONCE_NOT_FOUND',
  })
})

test("the application's store gets the nonce's life in whole seconds", async () => {
  const custom = mapStore()
  await new Nonces({ appName: 'App', ttlSeconds: 300, store: await memoryStore(), custom }).issue(origin)
  expect(custom.ttls).toEqual([300])
})

test('a used nonce that the application does not delete stays used, also with a wrong clock of the process', async () => {
  const store = Object.assign(await memoryStore(), { now: () => Date.now() - 3_600_000 })
  const nonces = new Nonces({
    appName: 'App',
    ttlSeconds: 300,
    store,
    custom: { ...mapStore(), delete: async () => {} },
  })
  const { nonceId } = await nonces.issue(origin)
  await nonces.consume(nonceId, { request: from(origin), origins: policy() })
  vi.setSystemTime(Date.now() + 299_000)
  await expect(nonces.consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject({
    reason: 'NONCE_NOT_FOUND',
  })
})

test("the application's store in trouble is an outage, not a wrong nonce", async () => {
  const down = () => Promise.reject(new Error('down'))
  const nonces = new Nonces({
    appName: 'App',
    ttlSeconds: 60,
    store: await memoryStore(),
    custom: { get: down, set: down, delete: down },
  })
  await expect(nonces.issue(origin)).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE', retryAfterMs: 1000 })
  await expect(nonces.consume('x', { request: from(origin), origins: policy() })).rejects.toMatchObject({
    reason: 'STORE_UNAVAILABLE',
  })
})

test("a store that answers with another nonce's record is not believed", async () => {
  const custom = mapStore()
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store: await memoryStore(), custom })
  const { nonceId } = await nonces.issue(origin)
  const [record] = custom.map.values()
  custom.map.set('nonce:another', record as string)
  await expect(nonces.consume('another', { request: from(origin), origins: policy() })).rejects.toMatchObject({
    reason: 'NONCE_NOT_FOUND',
  })
  expect(await nonces.consume(nonceId, { request: from(origin), origins: policy() })).toBeDefined()
})

test('an expired nonce is forgotten after a minute, however often it is tried', async () => {
  const nonces = new Nonces({ appName: 'Shop', ttlSeconds: 300, store: await memoryStore() })
  const { nonceId, expiresAt } = await nonces.issue(origin)
  for (const overdueMs of [0, 30_000, 59_000]) {
    vi.setSystemTime(expiresAt + overdueMs)
    await expect(nonces.consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject({
      reason: 'NONCE_EXPIRED',
    })
  }
  vi.setSystemTime(expiresAt + 61_000)
  await expect(nonces.consume(nonceId, { request: from(origin), origins: policy() })).rejects.toMatchObject({
    reason: 'NONCE_NOT_FOUND',
  })
})
