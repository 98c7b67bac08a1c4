import { randomInt } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RequestContext } from '../../src/base/request.ts'
import { newId } from '../../src/base/token.ts'
import { OpenOrders } from '../../src/limits/concurrency.ts'
import { defaultLimits, type Limits } from '../../src/limits/limits.ts'
import { RateLimiter } from '../../src/limits/rate.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { sharedStores } from '../support/stores.ts'

/** What an instance of a service has of the limits. */
interface Instance {
  readonly limiter: RateLimiter
  readonly openOrders: OpenOrders
  readonly store: Store
}

/** Instances that share a store. Their keys are those of no other test. */
async function start(count: number, open: () => Promise<string>, given: Partial<Limits> = {}): Promise<Instance[]> {
  const address = await open()
  const keyPrefix = newId()
  const limits = { ...defaultLimits, ...given }
  const started: Instance[] = []
  for (let n = 0; n < count; n++) {
    const store = await openStore(address, { keyPrefix })
    onTestFinished(() => store.close())
    started.push({ limiter: new RateLimiter(limits, { store }), openOrders: new OpenOrders(limits, store), store })
  }
  return started
}

const from = (ip: string) => ({ ip }) as RequestContext

/** Whether a call is let through. */
async function passes(call: () => Promise<unknown> | undefined): Promise<boolean> {
  try {
    await call()
    return true
  } catch (error) {
    // Not `expect`, which takes its time, and there are very many of these.
    const { reason, retryAfterMs } = error as { reason?: unknown; retryAfterMs?: unknown }
    if (reason !== 'RATE_LIMITED' || typeof retryAfterMs !== 'number') throw error
    return false
  }
}

/** An address of a client that no other test has. */
const newAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`

/** How many calls were let through, and how many had come back meanwhile. */
interface Let {
  readonly through: number
  readonly back: number
}

/** Counts what `calls` lets through of a group with `perMinute` calls. */
async function count(perMinute: number, calls: () => Promise<readonly boolean[]>): Promise<Let> {
  const startedAt = Date.now()
  const through = (await calls()).filter(Boolean).length
  // A call can come back between two looks at the clock.
  return { through, back: 2 + ((Date.now() - startedAt) * perMinute) / 60_000 }
}

/** Calls one after the other, each at the next of these instances. */
async function inTurns(instances: readonly Instance[], calls: number, ip: string): Promise<boolean[]> {
  const passed: boolean[] = []
  for (let n = 0; n < calls; n++) {
    const { limiter } = instances[n % instances.length] as Instance
    passed.push(await passes(() => limiter.spend('sign-in', from(ip))))
  }
  return passed
}

/** Calls as fast as possible, at all of these instances at once. */
async function atOnce(instances: readonly Instance[], calls: number, ip: string): Promise<boolean[]> {
  return (
    await Promise.all(
      Array.from({ length: 8 }, () =>
        Promise.all(instances.map((instance) => inTurns([instance], calls / instances.length / 8, ip))),
      ),
    )
  ).flat(2)
}

const limit = defaultLimits['sign-in']

/** Each instance can have a sixteenth of the limit that the others do not know of. */
function expectHeld({ through, back }: Let, instances: number, most = limit): void {
  expect(through).toBeGreaterThanOrEqual(most)
  expect(through).toBeLessThanOrEqual(most * (1 + instances / 16) + back)
}

describe.each(sharedStores)('on %s', (_name, open) => {
  describe.each([2, 5, 16])(
    '%i instances let at most a sixteenth each more than the limit through, for a client that',
    (number) => {
      test('alternates between them', async () => {
        const instances = await start(number, open)
        expectHeld(await count(limit, () => inTurns(instances, 4 * limit, newAddress())), number)
      })

      test('bursts at all of them at once', async () => {
        const instances = await start(number, open)
        expectHeld(await count(limit, () => atOnce(instances, 4 * limit, newAddress())), number)
      })

      test('uses up one and goes on at the next', async () => {
        const instances = await start(number, open)
        const ip = newAddress()
        const one = async () => {
          const passed: boolean[] = []
          for (const instance of instances) passed.push(...(await inTurns([instance], 2 * limit, ip)))
          return passed
        }
        expectHeld(await count(limit, one), number)
      })
    },
  )

  test('a client that stays with one of two instances has its full limit there, and no more', async () => {
    const [first] = (await start(2, open)) as [Instance]
    const { through, back } = await count(limit, () => inTurns([first], 2 * limit, newAddress()))
    expect(through).toBeGreaterThanOrEqual(limit)
    expect(through).toBeLessThanOrEqual(limit + back)
  })

  test('a limit that is smaller than the number of instances is held exactly', async () => {
    const instances = await start(5, open, { 'sign-in': 4 })
    const { through, back } = await count(4, () => atOnce(instances, 200, newAddress()))
    expect(through).toBeGreaterThanOrEqual(4)
    expect(through).toBeLessThanOrEqual(4 + back)
  })

  test('neighbours in IPv6 networks share them over two instances', async () => {
    const [one, two] = (await start(2, open)) as [Instance, Instance]
    const site = `2001:db8:${randomInt(65_536).toString(16)}`
    const startedAt = Date.now()
    let through = 0
    // Each /64 of a /56 stays below its own limit.
    for (let n = 0; n < 256; n++) {
      const ip = `${site}:${n.toString(16)}::1`
      through += (await inTurns([one, two], 12, ip)).filter(Boolean).length
    }
    expectHeld({ through, back: 2 + ((Date.now() - startedAt) * 4 * limit) / 60_000 }, 2, 4 * limit)
    // The next /56 of the same /48 has its own.
    expect((await inTurns([one, two], 50, `${site}:ff00::1`)).every(Boolean)).toBe(true)
  })

  test('open orders are counted over two instances, and those that are over make room', async () => {
    const instances = (await start(2, open, { 'open-orders': 20 })) as [Instance, Instance]
    const [one, two] = instances
    const ip = newAddress()
    const orderAt = (endsIn: number) => ({ orderId: newId(), expiresAt: one.store.now() + endsIn, requester: { ip } })
    const added: ReturnType<typeof orderAt>[] = []
    for (let n = 0; n < 30; n++) {
      const order = orderAt(60_000 + n * 1000)
      if (await passes(() => (n % 2 === 0 ? one : two).openOrders.add(order))) added.push(order)
    }
    expect(added).toHaveLength(20)
    await expect(one.openOrders.add(orderAt(90_000))).rejects.toMatchObject({ metadata: { limit: 'open-orders' } })
    const wait = await two.openOrders.add(orderAt(90_000)).catch((error) => error.retryAfterMs)
    // Until the first of them ends.
    expect(wait).toBeGreaterThan(20_000)
    expect(wait).toBeLessThanOrEqual(60_000)
    two.openOrders.remove(added[5] as (typeof added)[number])
    await vi.waitFor(async () => expect(await passes(() => one.openOrders.add(orderAt(60_000)))).toBe(true))
    expect(await passes(() => two.openOrders.add(orderAt(60_000)))).toBe(false)
  })

  test('a flood of orders that are refused pushes out none that is open', async () => {
    const instances = await start(2, open, { 'open-orders': 20 })
    const ip = newAddress()
    let through = 0
    for (let wave = 0; wave < 3; wave++) {
      const calls = instances.flatMap(({ openOrders, store }) =>
        Array.from({ length: 60 }, (_, n) => {
          const order = { orderId: newId(), expiresAt: store.now() + 60_000 + n, requester: { ip } }
          return passes(() => openOrders.add(order))
        }),
      )
      through += (await Promise.all(calls)).filter(Boolean).length
    }
    expect(through).toBeLessThanOrEqual(20)
  })
})

describe('the store', () => {
  /** A store that counts the calls of an instance, and can be away. */
  async function startWatched(given: Partial<Limits> = {}) {
    const [{ store }] = (await start(1, async () => 'sqlite::memory:')) as [Instance]
    const asked: string[] = []
    const state = { away: false }
    const watched = new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name === 'now') return value.bind(target)
        return async (...given: unknown[]) => {
          asked.push(String(name))
          if (state.away) throw new Error('away')
          return await value.apply(target, given)
        }
      },
    })
    return { limiter: new RateLimiter({ ...defaultLimits, ...given }, { store: watched }), asked, state }
  }

  test('is not asked about ordinary clients', async () => {
    const { limiter, asked } = await startWatched()
    for (let client = 0; client < 1000; client++) {
      const ip = `10.0.${client >> 8}.${client & 255}`
      for (let n = 0; n < 15; n++) expect(limiter.spend('sign-in', from(ip))).toBeUndefined()
    }
    expect(asked).toEqual([])
  })

  test('is asked seldom about a client that makes many calls, and not at all about those that are refused', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { limiter, asked } = await startWatched()
    for (let n = 0; n < limit; n++) await limiter.spend('sign-in', from('192.0.2.1'))
    expect(asked.length).toBeLessThanOrEqual(2 * 16)
    expect(await passes(() => limiter.spend('sign-in', from('192.0.2.1')))).toBe(false)
    asked.length = 0
    for (let n = 0; n < 1000; n++) expect(await passes(() => limiter.spend('sign-in', from('192.0.2.1')))).toBe(false)
    expect(asked).toEqual([])
  })

  test('may be away: the instance counts for itself then, does not wait for it, and tells it later', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { limiter, asked, state } = await startWatched()
    state.away = true
    let through = 0
    for (let n = 0; n < 2 * limit; n++) if (await passes(() => limiter.spend('sign-in', from('192.0.2.1')))) through++
    expect(through).toBe(limit)
    // One try, and then a second without.
    expect(asked.length).toBeLessThanOrEqual(2)
    state.away = false
    expect(await passes(() => limiter.spend('sign-in', from('192.0.2.1')))).toBe(false)
  })
})

describe('with a clock that the test sets', () => {
  const [, openFile] = sharedStores[0] as (typeof sharedStores)[number]

  async function startOnFile(): Promise<[Instance, Instance]> {
    const instances = (await start(2, openFile)) as [Instance, Instance]
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    return instances
  }

  test('a client that stays below the limit on each of two instances is held to it on both together', async () => {
    const instances = await startOnFile()
    const minutes = 10
    let through = 0
    for (let second = 0; second < minutes * 60; second++) {
      vi.setSystemTime(Date.now() + 1000)
      for (const instance of instances) {
        through += (await inTurns([instance], (limit * 0.75) / 60, '192.0.2.1')).filter(Boolean).length
      }
    }
    expect(through).toBeGreaterThanOrEqual(minutes * limit)
    expect(through).toBeLessThanOrEqual((minutes + 1) * limit + limit / 8)
  })

  test('a client that is idle for a minute has its full limit again, on either instance', async () => {
    const [one, two] = await startOnFile()
    for (const instance of [one, two, one]) {
      await atOnce([one, two], 160, '192.0.2.1')
      vi.setSystemTime(Date.now() + 75_000)
      expect((await inTurns([instance], limit, '192.0.2.1')).every(Boolean)).toBe(true)
      vi.setSystemTime(Date.now() + 75_000)
    }
  })

  test('the time that a refusal names is enough for a client that stays at one instance', async () => {
    const instances = await startOnFile()
    const ip = '192.0.2.1'
    for (const instance of instances) {
      await atOnce(instances, 4 * limit, ip)
      vi.setSystemTime(Date.now() + 75_000)
      // Of calls at both at once, an instance may not have heard of the last ones of the other, and then names too
      // short a time.
      expect((await inTurns([instance], 2 * limit, ip)).filter(Boolean)).toHaveLength(limit)
      const refusal = await Promise.resolve()
        .then(() => instance.limiter.spend('sign-in', from(ip)))
        .catch((error: unknown) => error as { readonly retryAfterMs: number })
      expect(refusal).toMatchObject({ reason: 'RATE_LIMITED', metadata: { limit: 'sign-in' } })
      vi.setSystemTime(Date.now() + (refusal?.retryAfterMs ?? 0) - 1)
      expect(await passes(() => instance.limiter.spend('sign-in', from(ip)))).toBe(false)
      vi.setSystemTime(Date.now() + 1)
      expect(await passes(() => instance.limiter.spend('sign-in', from(ip)))).toBe(true)
      vi.setSystemTime(Date.now() + 75_000)
    }
  })
})
