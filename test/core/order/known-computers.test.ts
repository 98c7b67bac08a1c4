import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { noAudit } from '../../../src/base/audit.ts'
import type { RequestContext } from '../../../src/base/request.ts'
import { newId } from '../../../src/base/token.ts'
import { KnownComputers, OrderComputers } from '../../../src/core/order/known-computers.ts'
import type { OrderRecord } from '../../../src/core/order/order.ts'
import type { Session } from '../../../src/core/users/host.ts'
import { type ProvenIdentity, walletOf } from '../../../src/core/wallet/wallet.ts'
import type { Life, Store } from '../../../src/store/store.ts'
import { redisUrl } from '../../support/stores.ts'
import { folderOfFile } from '../../support/temporary-folder.ts'
import { openOnOurClock, passTime } from './support.ts'

const minutes = 60_000
const days = 24 * 60 * minutes
const browser = { ip: '192.0.2.1', userAgent: 'Browser/1.0' }

let keys = 0
/** A wallet that no other test has. */
function newWallet(parts: Partial<ProvenIdentity> = {}): ProvenIdentity {
  const publicKeyHex = (++keys).toString(16).padStart(64, '0')
  return { adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address: 'NQ07 0000', ...parts }
}

/** A store on which everybody has read before anybody writes. */
function afterReading(store: Store, parties: number): Store {
  let waiting = 0
  const all = Promise.withResolvers<void>()
  return withGet(store, async (read) => {
    const found = await read()
    if (++waiting === parties) all.resolve()
    await all.promise
    return found
  })
}

function withGet(store: Store, around: <T>(read: () => Promise<T>) => Promise<T>): Store {
  return withMethods(store, { get: (key) => around(() => store.get(key)) })
}

/** A store with other methods in place of some of its own, which the test's methods call. */
function withMethods(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name in methods) return methods[name as keyof Store]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** A store that reports what is written to it. */
function observing(store: Store, written: (value: string, life: Life) => void): Store {
  return withMethods(store, {
    create: (key, value, life) => {
      written(value, life)
      return store.create(key, value, life)
    },
    compareAndSet: (key, version, value, life) => {
      written(value, life)
      return store.compareAndSet(key, version, value, life)
    },
  })
}

interface Place {
  readonly name: string
  open(): Promise<string>
}

function inFile(): Place {
  let folder: string
  return {
    name: 'SQLite in a file',
    async open() {
      folder = folderOfFile()
      return `sqlite:${join(folder, 'computers.db')}`
    },
  }
}

const places: Place[] = [inFile(), ...(redisUrl === undefined ? [] : [{ name: 'Redis', open: redisUrl }])]

describe.each(places)('known computers on $name', ({ open }) => {
  let here: Store
  let there: Store
  let computers: KnownComputers
  let elsewhere: KnownComputers
  let wallet: ProvenIdentity

  beforeAll(async () => {
    const url = await open()
    here = await openOnOurClock(url)
    there = await openOnOurClock(url)
    computers = new KnownComputers(here)
    elsewhere = new KnownComputers(there)
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  beforeEach(() => {
    wallet = newWallet()
  })
  afterEach(() => void vi.useRealTimers())

  /** Makes a computer known by an order whose code is typed now. */
  const remember = async (id: string, by = computers, order = { orderId: newId(), at: here.now() }) => {
    await by.remember(wallet, id, order, browser)
    return order
  }
  const idsOf = async (of = wallet) => (await elsewhere.list(of)).map(({ id }) => id)

  test('are known to every instance, for the wallet and the adapter that they are remembered for', async () => {
    expect(await computers.list(wallet)).toEqual([])
    expect(await computers.isKnown(wallet, 'a')).toBe(false)
    const { at } = await remember('a')
    expect(await elsewhere.isKnown(wallet, 'a')).toBe(true)
    expect(await elsewhere.list(wallet)).toEqual([{ id: 'a', createdAt: at, lastUsedAt: at, ...browser }])
    expect(await elsewhere.isKnown(wallet, 'b')).toBe(false)
    expect(await elsewhere.isKnown(newWallet(), 'a')).toBe(false)
    expect(await elsewhere.isKnown({ ...wallet, adapterId: 'ed25519' }, 'a')).toBe(false)
  })

  test('are known for 90 days from the return code, however much they are used', async () => {
    const { at } = await remember('a')
    passTime(60 * days)
    await elsewhere.noteUse(wallet, 'a', { ip: '2001:db8::1', userAgent: 'Browser/2.0' })
    const used = { lastUsedAt: here.now(), ip: '2001:db8::1', userAgent: 'Browser/2.0' }
    expect(await computers.list(wallet)).toEqual([{ id: 'a', createdAt: at, ...used }])
    vi.setSystemTime(at + 90 * days - 1)
    expect(await computers.isKnown(wallet, 'a')).toBe(true)
    vi.setSystemTime(at + 90 * days)
    expect(await computers.isKnown(wallet, 'a')).toBe(false)
    expect(await computers.list(wallet)).toEqual([])
    expect(await computers.forget(wallet, 'a')).toBe(false)
  })

  test('are known for 90 days more after another return code', async () => {
    await remember('a')
    await remember('b')
    passTime(50 * days)
    const { at } = await remember('a')
    expect(await idsOf()).toEqual(['a', 'b'])
    vi.setSystemTime(at + 90 * days - 1)
    expect(await idsOf()).toEqual(['a'])
  })

  test('do not become older when an order of before makes them known again', async () => {
    const early = { orderId: newId(), at: here.now() }
    passTime(minutes)
    const late = await remember('a')
    await remember('a', elsewhere, early)
    expect(await computers.list(wallet)).toMatchObject([{ createdAt: late.at, lastUsedAt: late.at }])
  })

  test('are remembered only for wallets that the session leads to, so that its user can forget them', async () => {
    const byAddress = newWallet({ adapterId: 'ethereum', publicKeyHex: '', address: '0xAbC', subject: '0xabc' })
    const withCase = newWallet({ adapterId: 'tron', publicKeyHex: '', address: 'TAbD', subject: 'TAbD' })
    const ofTenant = newWallet({ subject: 'tenant-7' })
    const settings = { appName: 'App', knownComputers: true }
    const orders = new OrderComputers(computers, settings, noAudit)
    for (const [identity, keptSubject, known] of [
      [byAddress, false, true],
      [withCase, false, false],
      [withCase, true, true],
      [ofTenant, false, false],
      [ofTenant, true, true],
    ] as const) {
      const { subject, ...wallet } = identity
      const order = {
        orderId: newId(),
        origin: 'https://app.example',
        computerKey: 'k',
        approval: { knownComputer: false, rememberComputer: true },
        proof: { ...identity, signatureHex: '' },
        history: [{ at: here.now() }],
      } as unknown as OrderRecord
      const session = { ...wallet, ...(keptSubject ? { subject } : {}) } as Session
      await orders.note(order, { ...browser } as unknown as RequestContext, session)
      const id = orders.idOf(order) as string
      expect(await elsewhere.isKnown(identity, id), subject).toBe(known)
      expect(await elsewhere.isKnown(walletOf(session), id), subject).toBe(known)
    }
  })

  test('are not brought back by their use', async () => {
    await remember('a')
    await computers.forget(wallet, 'a')
    await elsewhere.noteUse(wallet, 'a', browser)
    expect(await idsOf()).toEqual([])
    const stranger = newWallet()
    await elsewhere.noteUse(stranger, 'a', browser)
    expect(await idsOf(stranger)).toEqual([])
  })

  test('are at most twenty, of which a further one takes the place of the oldest, also within one millisecond', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const ids = Array.from({ length: 25 }, (_, i) => `c${i}`)
    for (const [i, id] of ids.entries()) {
      await remember(id, i % 2 === 0 ? computers : elsewhere)
      expect(await computers.isKnown(wallet, id), id).toBe(true)
    }
    expect(await idsOf()).toEqual(ids.slice(-20).reverse())
    // What makes room is age, not use.
    await computers.noteUse(wallet, 'c5', browser)
    passTime(1)
    await remember('c25')
    expect(await idsOf()).not.toContain('c5')
    // One that is known takes nobody's place.
    await remember('c10')
    expect(await idsOf()).toHaveLength(20)
  })

  test('can be forgotten, once', async () => {
    await remember('a')
    await remember('b')
    expect(await elsewhere.forget(wallet, 'a')).toBe(true)
    expect(await computers.forget(wallet, 'a')).toBe(false)
    expect(await computers.forget(newWallet(), 'b')).toBe(false)
    expect(await idsOf()).toEqual(['b'])
  })

  test('are made known by an order once: its retries do not undo that the computer is forgotten', async () => {
    const order = await remember('a')
    await remember('a', elsewhere, order)
    expect(await idsOf()).toEqual(['a'])
    await computers.forget(wallet, 'a')
    await remember('a', elsewhere, order)
    expect(await idsOf()).toEqual([])
    await remember('a')
    expect(await idsOf()).toEqual(['a'])
  })

  test('are forgotten with their order, whether it is taken back before it makes them known or after', async () => {
    const order = { orderId: newId(), at: here.now() }
    await computers.forgetOfOrder(wallet, 'a', order.orderId)
    await remember('a', elsewhere, order)
    expect(await idsOf()).toEqual([])
    await remember('b')
    const other = await remember('a')
    await elsewhere.forgetOfOrder(wallet, 'a', other.orderId)
    await elsewhere.forgetOfOrder(wallet, 'a', other.orderId)
    await remember('a', computers, other)
    expect(await idsOf()).toEqual(['b'])
    // What was taken back is the order; the next one can make the computer known.
    await remember('a')
    expect(await idsOf()).toEqual(['a', 'b'])
  })

  test('are not made known by an order whose return code is eleven minutes old', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const [order, taken] = [
      { orderId: newId(), at: here.now() },
      { orderId: newId(), at: here.now() },
    ]
    await computers.forgetOfOrder(wallet, 'b', taken.orderId)
    passTime(11 * minutes - 1)
    await remember('a', computers, order)
    await remember('b', computers, taken)
    expect(await idsOf()).toEqual(['a'])
    passTime(1)
    await remember('b', computers, taken)
    await remember('c', computers, { ...order, orderId: newId() })
    expect(await idsOf()).toEqual(['a'])
  })

  test('are all forgotten but one, and not made known by a code that was typed before', async () => {
    for (const id of ['a', 'b', 'c']) await remember(id)
    const inFlight = { orderId: newId(), at: here.now() }
    await elsewhere.forgetOthers(wallet, 'b')
    await remember('d', computers, inFlight)
    expect(await idsOf()).toEqual(['b'])
    passTime(1)
    await remember('d')
    expect(await idsOf()).toEqual(['d', 'b'])
    await elsewhere.forgetOthers(wallet, undefined)
    expect(await idsOf()).toEqual([])
    const stranger = newWallet()
    await elsewhere.forgetOthers(stranger, 'a')
    await computers.remember(stranger, 'a', inFlight, browser)
    expect(await idsOf(stranger)).toEqual([])
  })

  test('stay forgotten although a hundred further orders were taken back', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const taken = Array.from({ length: 120 }, (_, i) => ({ orderId: newId(), at: here.now() + i }))
    for (const { orderId, at } of taken) {
      vi.setSystemTime(at)
      await computers.forgetOfOrder(wallet, 'a', orderId)
    }
    for (const order of taken) await remember('a', elsewhere, order)
    expect(await idsOf()).toEqual([])
    passTime(1)
    await remember('a')
    expect(await idsOf()).toEqual(['a'])
  })

  test('fit into what a store takes, with the longest texts and full lists', async () => {
    const values: string[] = []
    const measured = observing(here, (value) => values.push(value))
    const longest = new KnownComputers(measured)
    // A lone surrogate is six bytes of JSON. A zone makes an IPv6 address as long as its writer likes.
    const client = { ip: `fe80::1%${'a'.repeat(10_000)}`, userAgent: '\ud800'.repeat(256) }
    for (let i = 0; i < 130; i++) {
      await longest.remember(wallet, `c${i}`.padEnd(22, 'c'), { orderId: newId(), at: here.now() }, client)
      await longest.forgetOfOrder(wallet, 'none', newId())
    }
    passTime(1)
    await remember('z'.repeat(22), longest)
    expect(Math.max(...values.map((value) => Buffer.byteLength(value)))).toBeLessThan(64 * 1024)
    await longest.noteUse(wallet, 'z'.repeat(22), client)
    expect(Buffer.byteLength(values.at(-1)!)).toBeLessThan(64 * 1024)
    expect(await idsOf()).toHaveLength(20)
  })

  test('are stored until the last of them is over, and what only says that they are forgotten for eleven minutes', async () => {
    const lives: Life[] = []
    const observed = new KnownComputers(observing(here, (_, life) => lives.push(life)))
    vi.useFakeTimers({ toFake: ['Date'] })
    await remember('a', observed)
    passTime(10 * days)
    await observed.noteUse(wallet, 'a', browser)
    await remember('b', observed)
    await observed.forget(wallet, 'b')
    await observed.forget(wallet, 'a')
    passTime(11 * minutes)
    await observed.forgetOthers(wallet, undefined)
    await observed.forgetOfOrder(newWallet(), 'a', newId())
    expect(lives.map((life) => life !== 'forever' && life.ttlMs)).toEqual([
      90 * days,
      80 * days,
      90 * days,
      80 * days,
      11 * minutes,
      11 * minutes,
      11 * minutes,
    ])
  })

  test('of a record that a newer release stored are neither used nor overwritten', async () => {
    const stored: string[] = []
    const newer = withMethods(here, {
      async get(key) {
        const found = await here.get(key)
        return found === undefined
          ? undefined
          : { ...found, value: JSON.stringify({ ...JSON.parse(found.value), v: 2 }) }
      },
      compareAndSet: async (_key, _version, value) => stored.push(value) > 0,
    })
    await remember('a')
    const reader = new KnownComputers(newer)
    await expect(reader.isKnown(wallet, 'a')).rejects.toThrow(/version 2, and this release reads version 1/)
    await expect(remember('b', reader)).rejects.toThrow(/version 2, and this release reads version 1/)
    expect(stored).toEqual([])
  })

  describe('of concurrent calls on two instances', () => {
    const both = (parties: number) =>
      [new KnownComputers(afterReading(here, parties)), new KnownComputers(afterReading(there, parties))] as const

    test('fifteen that become known are all kept', async () => {
      const instances = both(7)
      const ids = Array.from({ length: 15 }, (_, i) => `c${i}`)
      await Promise.all(ids.map((id, i) => remember(id, instances[i % 2]!)))
      expect(new Set(await idsOf())).toEqual(new Set(ids))
    })

    test('of forty that become known twenty are', async () => {
      const instances = both(20)
      const ids = Array.from({ length: 40 }, (_, i) => `c${i}`)
      await Promise.all(ids.map((id, i) => remember(id, instances[i % 2]!)))
      const known = await idsOf()
      expect(known).toHaveLength(20)
      expect(new Set(known).size).toBe(20)
    })

    test('a use undoes neither that others become known nor that the computer is forgotten', async () => {
      for (let round = 0; round < 10; round++) {
        wallet = newWallet()
        await remember('a')
        const [one, two] = both(2)
        await Promise.all([
          one.noteUse(wallet, 'a', browser),
          remember('b', one),
          two.forget(wallet, 'a'),
          two.noteUse(wallet, 'a', browser),
        ])
        expect(await idsOf()).toEqual(['b'])
      }
    })

    test('none that a code of before makes known is left when all others are forgotten', async () => {
      for (let round = 0; round < 10; round++) {
        wallet = newWallet()
        await remember('kept')
        const orders = Array.from({ length: 4 }, () => ({ orderId: newId(), at: here.now() }))
        const instances = both(3)
        await Promise.all([
          ...orders.map((order, i) => remember(`c${i}`, instances[i % 2]!, order)),
          ...instances.map((instance) => instance.forgetOthers(wallet, 'kept')),
        ])
        expect(await idsOf()).toEqual(['kept'])
      }
    })

    /** Everything that happens to one computer: becoming known by an order of its own, and its end. */
    const fates = ['remembered', 'taken back', 'forgotten'] as const

    test('no order of their steps loses a computer, or keeps one that is taken back', async () => {
      const plan = fc.array(fc.constantFrom(...fates), { minLength: 1, maxLength: 6 })
      await fc.assert(
        fc.asyncProperty(plan, fc.scheduler(), async (plan, scheduler) => {
          wallet = newWallet()
          const scheduled = (store: Store): Store =>
            withMethods(store, {
              get: scheduler.scheduleFunction((key: string) => store.get(key)),
              create: scheduler.scheduleFunction((...args: Parameters<Store['create']>) => store.create(...args)),
              compareAndSet: scheduler.scheduleFunction((...args: Parameters<Store['compareAndSet']>) =>
                store.compareAndSet(...args),
              ),
            })
          const instances = [new KnownComputers(scheduled(here)), new KnownComputers(scheduled(there))] as const
          const done = Promise.all(
            plan.map(async (fate, i) => {
              const [one, other] = i % 2 === 0 ? instances : [instances[1], instances[0]]
              const order = { orderId: newId(), at: here.now() }
              const id = `c${i}`
              const [forgotten] = await Promise.all([
                fate === 'forgotten' ? other.forget(wallet, id) : false,
                fate === 'taken back' ? other.forgetOfOrder(wallet, id, order.orderId) : undefined,
                one.remember(wallet, id, order, browser),
                // A retry of the same call, on the other instance.
                other.remember(wallet, id, order, browser),
              ])
              return fate === 'taken back' || forgotten ? [] : [id]
            }),
          )
          await scheduler.waitFor(done)
          expect(new Set(await idsOf())).toEqual(new Set((await done).flat()))
        }),
        { numRuns: 150 },
      )
    })
  })
})

describe('the id of a computer', () => {
  const computers = new KnownComputers(undefined as never)
  const key = 'k'.repeat(122)
  const site = { appName: 'App', origin: 'https://app.example' }

  test('is the same for one wallet, key and site, and fits the API', () => {
    const wallet = newWallet()
    expect(computers.idOf(wallet, key, site)).toMatch(/^[A-Za-z0-9_-]{22}$/)
    expect(computers.idOf({ ...wallet }, key, site)).toBe(computers.idOf(wallet, key, site))
  })

  test('is another for another wallet, adapter, key or site, so that it links none of them', () => {
    const wallet = newWallet()
    const others = [
      computers.idOf(newWallet(), key, site),
      computers.idOf({ ...wallet, adapterId: 'ed25519' }, key, site),
      computers.idOf(wallet, 'l'.repeat(122), site),
      computers.idOf(wallet, key, { ...site, appName: 'Bank' }),
      computers.idOf(wallet, key, { ...site, origin: 'https://bank.example' }),
    ]
    expect(new Set([computers.idOf(wallet, key, site), ...others]).size).toBe(6)
  })
})

describe('the wallet of a session', () => {
  test('is its public key, or without one its address in lower case', () => {
    const publicKeyHex = 'ab'.repeat(32)
    expect(walletOf({ adapterId: 'nimiq', publicKeyHex, address: 'NQ07 0000' })).toEqual({
      adapterId: 'nimiq',
      subject: publicKeyHex,
    })
    expect(walletOf({ adapterId: 'ethereum', publicKeyHex: '', address: '0xAbCd' })).toEqual({
      adapterId: 'ethereum',
      subject: '0xabcd',
    })
  })
})
