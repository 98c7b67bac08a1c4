import { getEventListeners } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type OrderRecords, storedOrders } from '../../../src/core/order/records.ts'
import type { WatchEvent } from '../../../src/core/order/watch.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import type { StartedOrder } from '../../../src/shared/orders.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { stores } from '../../support/stores.ts'
import {
  desktop,
  type Instance,
  makeInstance,
  phone,
  reasonOf,
  Signer,
  untilApproved,
  untilWaiting,
} from './support.ts'

/** Reads a watch to its end and keeps what came. */
class Reader {
  readonly events: WatchEvent[] = []
  readonly leave = new AbortController()
  readonly ended: Promise<string | undefined>
  /** Resolves with the next event, or the end. */
  #next = Promise.withResolvers<void>()
  #isOver = false

  constructor(
    { orders }: Instance,
    order: { orderId: string; desktopToken: string },
    options: { afterSequence?: number } = {},
  ) {
    this.ended = reasonOf(this.#read(orders.watch({ ...order, ...options }, desktop, this.leave.signal)))
  }

  get statuses(): string[] {
    return this.events.map(({ status }) => status)
  }

  /** The statuses of all events but heartbeats. */
  get steps(): string[] {
    return this.events.filter(({ heartbeat }) => !heartbeat).map(({ status }) => status)
  }

  get sequences(): number[] {
    return this.events.map(({ sequence }) => sequence)
  }

  /** Resolves once so many events have come. */
  async has(count: number): Promise<void> {
    await this.#until(() => this.events.length >= count)
  }

  /** Resolves once so many steps have come; on a busy machine, heartbeats come between them. */
  async hasSteps(count: number): Promise<void> {
    await this.#until(() => this.steps.length >= count)
  }

  /** Looks after each event. To look every few milliseconds for a thousand readers would keep them from reading. */
  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.#isOver) throw new Error(`the watch ended with ${await this.ended}, ${JSON.stringify(this.events)}`)
      await this.#next.promise
    }
  }

  async #read(events: AsyncIterable<WatchEvent>): Promise<void> {
    try {
      for await (const event of events) {
        this.events.push(event)
        this.#tell()
      }
    } finally {
      this.#isOver = true
      this.#tell()
    }
  }

  #tell(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }
}

/** Counts what a watch uses. */
function counting(records: OrderRecords): OrderRecords & { loads: number; watches: number } {
  return {
    ...records,
    loads: 0,
    watches: 0,
    async load(orderId) {
      this.loads++
      return await records.load(orderId)
    },
    async watch(orderId, onWake) {
      const unwatch = await records.watch(orderId, onWake)
      this.watches++
      return () => {
        this.watches--
        unwatch()
      }
    },
  }
}

/** Lets what is due happen: a wake-up through a store takes a few turns of the event loop. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe.each(stores)('watching orders on $name', ({ open }) => {
  let here: Store
  let there: Store

  beforeAll(async () => {
    const url = String((await open()).store)
    here = await openStore(url)
    there = here.shared ? await openStore(url) : here
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })

  test('tells every step once and in order, and ends with the last, on another instance', async () => {
    const watching = makeInstance(here)
    const acting = makeInstance(there)
    const { orders } = acting
    const started = await orders.start({ kind: 'login', returnTo: '/in' }, desktop)
    const reader = new Reader(watching, started)
    await reader.has(1)
    const { orderId } = started
    const { challengeToken } = await orders.claim(started, phone)
    await reader.has(2)
    const { message } = await orders.readChallenge({ orderId, challengeToken }, phone)
    await reader.has(3)
    await orders.approve({ orderId, challengeToken, proof: new Signer().prove(message) }, phone)
    await reader.has(4)
    await orders.finalize(started, desktop)
    expect(await reader.ended).toBeUndefined()
    expect(reader.statuses).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized'])
    expect(reader.sequences).toEqual([1, 2, 3, 4, 5])
    const stored = await storedOrders(here).load(orderId)
    expect(reader.events.map(({ at }) => at)).toEqual(stored?.order.history.map(({ at }) => at))
    expect(reader.events.map(({ redirectTo }) => redirectTo)).toEqual([undefined, undefined, undefined, '/in', '/in'])
    for (const { heartbeat, reconnect, kind } of reader.events) {
      expect([heartbeat, reconnect, kind]).toEqual([false, false, 'login'])
    }
  })

  test('begins with the newest step, or after the one named', async () => {
    const instance = makeInstance(here)
    const order = await untilApproved(instance)
    const readers = [undefined, 0, 1, 3, 4].map(
      (afterSequence) => new Reader(instance, order, afterSequence === undefined ? {} : { afterSequence }),
    )
    for (const reader of readers) await reader.has(1)
    await instance.orders.cancel(order, desktop)
    for (const reader of readers) expect(await reader.ended).toBeUndefined()
    const transitions = readers.map(({ events }) => events.filter(({ heartbeat }) => !heartbeat))
    expect(transitions.map((events) => events.map(({ sequence }) => sequence))).toEqual([
      [4, 5],
      [1, 2, 3, 4, 5],
      [2, 3, 4, 5],
      [4, 5],
      [5],
    ])
  })

  test('who has missed nothing gets a sign of life at once, and so knows that the watch stands', async () => {
    const instance = makeInstance(here)
    const order = await untilApproved(instance)
    const reader = new Reader(instance, order, { afterSequence: 4 })
    await reader.has(1)
    expect(reader.events).toEqual([expect.objectContaining({ heartbeat: true, sequence: 4, status: 'approved' })])
    await instance.orders.cancel(order, desktop)
    expect(await reader.ended).toBeUndefined()
    expect(reader.sequences).toEqual([4, 5])
  })

  test('of an order that is over tells its end, unless that is known', async () => {
    const instance = makeInstance(here)
    const order = await untilApproved(instance)
    await instance.orders.finalize(order, desktop)
    const reader = new Reader(instance, order)
    expect(await reader.ended).toBeUndefined()
    expect(reader.statuses).toEqual(['finalized'])
    const knowing = new Reader(instance, order, { afterSequence: 5 })
    expect(await knowing.ended).toBeUndefined()
    expect(knowing.events).toEqual([])
  })

  test('after a step that never was is refused', async () => {
    const instance = makeInstance(here)
    const order = await untilWaiting(instance)
    expect(await new Reader(instance, order, { afterSequence: 4 }).ended).toBe('INVALID_REQUEST')
  })

  test('needs the desktop’s token before anything is told or subscribed to', async () => {
    const records = counting(storedOrders(here))
    const instance = makeInstance(here, { records })
    const order = await untilWaiting(instance)
    const watch = vi.spyOn(records, 'watch')
    for (const desktopToken of [order.claimToken, order.challengeToken, '']) {
      const reader = new Reader(instance, { ...order, desktopToken })
      expect(await reader.ended).toBe('ORDER_TOKEN_INVALID')
      expect(reader.events).toEqual([])
    }
    expect(watch).not.toHaveBeenCalled()
  })

  test('a step between reading and subscribing is not missed', async () => {
    const records = storedOrders(here)
    const acting = makeInstance(there)
    const order = await untilWaiting(acting)
    const watching = makeInstance(here, {
      records: {
        ...records,
        async watch(orderId, onWake) {
          await acting.orders.cancel(order, desktop)
          return await records.watch(orderId, onWake)
        },
      },
    })
    const reader = new Reader(watching, order, { afterSequence: 3 })
    expect(await reader.ended).toBeUndefined()
    expect(reader.statuses).toEqual(['cancelled'])
  })

  test('a step while the watcher is busy with the one before is told next', async () => {
    const instance = makeInstance(here)
    const order = await untilWaiting(instance)
    const events = instance.orders.watch(order, desktop, new AbortController().signal)
    expect((await events.next()).value).toMatchObject({ status: 'waiting_user' })
    await instance.orders.approve(order, phone)
    await instance.orders.finalize(order, desktop)
    expect((await events.next()).value).toMatchObject({ status: 'approved', sequence: 4 })
    expect((await events.next()).value).toMatchObject({ status: 'finalized', sequence: 5 })
    expect((await events.next()).done).toBe(true)
  })

  test('an order expires by itself, at the moment, for all who watch it and once', async () => {
    const settings = { orderTtlSeconds: 2 }
    const instances = [makeInstance(here, { settings }), makeInstance(there, { settings })] as const
    const order = await instances[0].orders.start({ kind: 'login' }, desktop)
    const readers = Array.from({ length: 10 }, (_, index) => new Reader(instances[index % 2 === 0 ? 0 : 1], order))
    for (const reader of readers) {
      expect(await reader.ended).toBeUndefined()
      expect(reader.statuses).toEqual(['created', 'expired'])
      expect(reader.events[1]).toMatchObject({ sequence: 2, at: order.expiresAt })
    }
    expect(here.now()).toBeGreaterThanOrEqual(order.expiresAt)
    // Not with the first heartbeat, which comes after 7.5 s at the earliest.
    expect(here.now()).toBeLessThan(order.expiresAt + 7000)
    const stored = await storedOrders(here).load(order.orderId)
    expect(stored?.order.history.map(({ status }) => status)).toEqual(['created', 'expired'])
    expect(stored?.version).toBe(2)
  })

  test('one without a watcher has expired for a later one', async () => {
    const instance = makeInstance(here, { settings: { orderTtlSeconds: 0.05 } })
    const order = await instance.orders.start({ kind: 'login' }, desktop)
    await new Promise((resolve) => setTimeout(resolve, 60))
    const reader = new Reader(instance, order, { afterSequence: 1 })
    expect(await reader.ended).toBeUndefined()
    expect(reader.events).toEqual([
      expect.objectContaining({ status: 'expired', sequence: 2, at: order.expiresAt, heartbeat: false }),
    ])
  })

  test('a server that stops sends its watchers elsewhere, also one that comes just then', async () => {
    const instance = makeInstance(here)
    const order = await untilWaiting(instance)
    const readers = [new Reader(instance, order), new Reader(instance, order, { afterSequence: 3 })] as const
    await readers[0].has(1)
    await settle()
    instance.stop.abort()
    for (const reader of readers) expect(await reader.ended).toBeUndefined()
    const last = { status: 'waiting_user', sequence: 3, reconnect: true, heartbeat: false, at: expect.any(Number) }
    expect(readers[0].events).toEqual([expect.objectContaining({ reconnect: false }), expect.objectContaining(last)])
    expect(readers[1].events).toEqual([expect.objectContaining({ heartbeat: true }), expect.objectContaining(last)])
    const late = new Reader(instance, order)
    expect(await late.ended).toBeUndefined()
    expect(late.events.map(({ reconnect }) => reconnect)).toEqual([false, true])
  })

  test('a thousand watchers get their own order’s events, and no other', { timeout: 120_000 }, async () => {
    const instance = makeInstance(here)
    const acting = makeInstance(there)
    const orders: StartedOrder[] = []
    const readers: Reader[] = []
    // Not all calls at once: the store has 2.5 s for each, and the machine may be busy. The watches are all open in the
    // end.
    const hundreds = Array.from({ length: 10 }, (_, hundred) => hundred * 100)
    for (const _ of hundreds) {
      const started = await Promise.all(
        Array.from({ length: 100 }, () => acting.orders.start({ kind: 'sign' }, desktop)),
      )
      const added = started.map((order) => new Reader(instance, order))
      await Promise.all(added.map((reader) => reader.hasSteps(1)))
      orders.push(...started)
      readers.push(...added)
    }
    for (const first of hundreds) {
      await Promise.all(
        orders
          .slice(first, first + 100)
          .map((order, i) => (i % 2 === 0 ? acting.orders.cancel(order, desktop) : acting.orders.claim(order, phone))),
      )
    }
    await Promise.all(readers.map((reader) => reader.hasSteps(2)))
    instance.stop.abort()
    for (const [i, reader] of readers.entries()) {
      expect(await reader.ended).toBeUndefined()
      expect(reader.steps).toEqual(i % 2 === 0 ? ['created', 'cancelled'] : ['created', 'claimed', 'claimed'])
    }
  })
})

describe('a watch', () => {
  let store: Store

  beforeAll(async () => {
    // The store's own timers are none that a test counts or moves.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    store = await openStore('sqlite::memory:')
    vi.useRealTimers()
  })
  afterAll(() => store.close())
  afterEach(() => void vi.useRealTimers())

  /** An order that waits for its user, watched, on a clock that only {@link tick} moves. */
  async function watched(settings: { orderTtlSeconds?: number } = {}, records = counting(storedOrders(store))) {
    vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: Date.now() })
    const instance = makeInstance(store, { settings, records })
    const order = await untilWaiting(instance)
    const reader = new Reader(instance, order)
    await settle()
    expect(reader.statuses).toEqual(['waiting_user'])
    records.loads = 0
    return { instance, order, reader, records }
  }

  const tickMs = 100

  async function tick(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms)
    await settle()
  }

  test('has a heartbeat at least every 15 seconds, with what is stored by then', async () => {
    const { reader, records, order } = await watched()
    await tick(7_499)
    expect(reader.events).toHaveLength(1)
    await tick(7_500 + tickMs)
    expect(reader.events).toHaveLength(2)
    expect(reader.events[1]).toEqual({
      sequence: 3,
      status: 'waiting_user',
      kind: 'login',
      at: expect.any(Number),
      returnCodeRequired: false,
      heartbeat: true,
      reconnect: false,
    })
    // One after the other, because a heartbeat waits for the store, whose answers come in turns of the event loop.
    for (let beat = 0; beat < 6; beat++) await tick(15_000 + tickMs)
    const beats = reader.events.filter(({ heartbeat }) => heartbeat).map(({ at }) => at)
    expect(beats.length).toBeGreaterThanOrEqual(7)
    for (const [i, at] of beats.slice(1).entries()) {
      expect(at - (beats[i] as number)).toBeGreaterThanOrEqual(15_000)
      expect(at - (beats[i] as number)).toBeLessThanOrEqual(15_000 + tickMs)
    }
    expect(records.loads).toBe(beats.length)
    expect(Date.now()).toBeLessThan(order.expiresAt)
    await tick(order.expiresAt - Date.now() + tickMs)
    expect(reader.statuses.at(-1)).toBe('expired')
    expect(await reader.ended).toBeUndefined()
  })

  test('sees its order expire by the clock of the records, not that of the process', async () => {
    const ahead: OrderRecords = { ...storedOrders(store), now: () => Date.now() + 3_600_000 }
    const { reader } = await watched({ orderTtlSeconds: 5 }, counting(ahead))
    await tick(5_000 + tickMs)
    expect(reader.statuses.at(-1)).toBe('expired')
  })

  test('of a thousand that began together, each has its heartbeat at a time of its own', async () => {
    const { instance, order } = await watched()
    const readers = Array.from({ length: 1000 }, () => new Reader(instance, order))
    await settle()
    let beats = 0
    let most = 0
    for (let ms = 0; ms <= 15_000; ms += tickMs) {
      await tick(tickMs)
      const now = readers.filter(({ events }) => events.length > 1).length
      most = Math.max(most, now - beats)
      beats = now
    }
    expect(beats).toBe(1000)
    // 1000 in 75 ticks are about 13 a tick.
    expect(most).toBeLessThan(50)
  })

  test('whose wake-up was lost is late by one heartbeat at most, and no heartbeat says what is no longer so', async () => {
    const records = counting(storedOrders(store))
    const { reader, order } = await watched({}, { ...records, watch: async () => () => {} } as typeof records)
    await makeInstance(store).orders.cancel(order, desktop)
    await settle()
    expect(reader.statuses).toEqual(['waiting_user'])
    await tick(15_000 + tickMs)
    expect(reader.events.slice(1)).toEqual([
      expect.objectContaining({ status: 'cancelled', sequence: 4, heartbeat: false }),
    ])
    expect(await reader.ended).toBeUndefined()
  })

  test('has its heartbeats while the store is away, and hears afterwards what it missed', async () => {
    const records = counting(storedOrders(store))
    const { reader, order } = await watched({}, records)
    const { load } = records
    records.load = () => Promise.reject(new CountersignError('STORE_UNAVAILABLE', 'away'))
    await tick(30_000 + 2 * tickMs)
    expect(reader.events.filter(({ heartbeat }) => heartbeat).length).toBeGreaterThanOrEqual(2)
    records.load = load
    await makeInstance(store).orders.cancel(order, desktop)
    await settle()
    expect(reader.events.at(-1)).toMatchObject({ status: 'cancelled', sequence: 4 })
    expect(await reader.ended).toBeUndefined()
  })

  test('tells the expiry within a tick, and never before', async () => {
    const { reader, order } = await watched({ orderTtlSeconds: 7 })
    await tick(order.expiresAt - Date.now() - 1)
    expect(reader.statuses).toEqual(['waiting_user'])
    await tick(1 + tickMs)
    expect(reader.statuses).toEqual(['waiting_user', 'expired'])
    expect(await reader.ended).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('waits for the later deadline of an approved order', async () => {
    const { instance, reader, order } = await watched({ orderTtlSeconds: 20 })
    await tick(19_000)
    await instance.orders.approve(order, phone)
    await settle()
    await tick(59_999)
    expect(reader.statuses.at(-1)).toBe('approved')
    await tick(1 + tickMs)
    expect(reader.statuses.at(-1)).toBe('expired')
    expect(await reader.ended).toBeUndefined()
  })

  test('looks at the clock again when a timer fires early', async () => {
    const { reader, order } = await watched({ orderTtlSeconds: 10 })
    // A clock that is set back makes every timer early.
    vi.setSystemTime(Date.now() - 5000)
    await tick(10_000 + tickMs)
    expect(reader.statuses).not.toContain('expired')
    await tick(5000)
    expect(reader.statuses.filter((status) => status === 'expired')).toHaveLength(1)
    expect(Date.now()).toBeGreaterThanOrEqual(order.expiresAt)
    expect(await reader.ended).toBeUndefined()
  })

  test('of a long order ends after about ten minutes with reconnect, and nothing is missed over that', async () => {
    const { instance, reader, order } = await watched({ orderTtlSeconds: 3600 })
    await tick(9 * 60_000 - 1)
    expect(reader.events.some(({ reconnect }) => reconnect)).toBe(false)
    await tick(2 * 60_000 + tickMs)
    expect(await reader.ended).toBeUndefined()
    const last = reader.events.at(-1)
    expect(last).toMatchObject({ reconnect: true, heartbeat: false, sequence: 3, status: 'waiting_user' })
    expect(vi.getTimerCount()).toBe(0)
    await instance.orders.approve(order, phone)
    const next = new Reader(instance, order, { afterSequence: last!.sequence })
    await settle()
    expect(next.sequences).toEqual([4])
    next.leave.abort()
    await next.ended
  })

  test('of a thousand that are told of a stop: the event loop has many turns in between', async () => {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance)
    const readers = Array.from({ length: 1000 }, () => new Reader(instance, order))
    await Promise.all(readers.map((reader) => reader.has(1)))
    instance.stop.abort()
    const told = (): number => readers.filter(({ events }) => events.length > 1).length
    const steps = [told()]
    while (steps.at(-1) !== 1000) {
      await new Promise((resolve) => setImmediate(resolve))
      steps.push(told())
    }
    expect(steps[0]).toBe(0)
    for (const [i, count] of steps.slice(1).entries()) expect(count - (steps[i] as number)).toBeLessThanOrEqual(100)
    for (const reader of readers) {
      expect(await reader.ended).toBeUndefined()
      expect(reader.events.at(-1)).toMatchObject({ reconnect: true })
    }
  })

  test('ends in the moment in which the server means to stop', async () => {
    const { reader, instance, records } = await watched()
    instance.stop.abort()
    await settle()
    expect(reader.events.at(-1)).toMatchObject({ reconnect: true })
    expect(await reader.ended).toBeUndefined()
    expect([records.loads, records.watches, vi.getTimerCount()]).toEqual([0, 0, 0])
  })

  test('a watch that is left costs nothing more', async () => {
    const { reader, records, instance, order } = await watched()
    expect([records.watches, vi.getTimerCount()]).toEqual([1, 1])
    reader.leave.abort()
    expect(await reader.ended).toBeUndefined()
    expect([records.watches, vi.getTimerCount()]).toEqual([0, 0])
    expect(reader.events).toHaveLength(1)
    records.loads = 0
    instance.stop.abort()
    await makeInstance(store).orders.cancel(order, desktop)
    await tick(300_000)
    expect(records.loads).toBe(0)
    expect(reader.events).toHaveLength(1)
  })

  test('a watch that is left between two events costs nothing more either', async () => {
    const records = counting(storedOrders(store))
    const instance = makeInstance(store, { records })
    const order = await untilWaiting(instance)
    const { signal } = new AbortController()
    const events = instance.orders.watch(order, desktop, signal)
    await events.next()
    expect([records.watches, getEventListeners(signal, 'abort').length]).toEqual([1, 1])
    await events.return()
    expect([records.watches, getEventListeners(signal, 'abort').length]).toEqual([0, 0])
  })

  test('a watch that is aborted before it begins yields nothing', async () => {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance)
    const reader = new Reader(instance, order)
    reader.leave.abort()
    expect(await reader.ended).toBeUndefined()
    expect(reader.events).toEqual([])
  })

  test('ends with STORE_UNAVAILABLE when the store is away, and leaves nothing behind', async () => {
    const records = counting(storedOrders(store))
    const { reader, order } = await watched({}, records)
    records.load = () => Promise.reject(new CountersignError('STORE_UNAVAILABLE', 'away'))
    await makeInstance(store).orders.cancel(order, desktop)
    expect(await reader.ended).toBe('STORE_UNAVAILABLE')
    expect([records.watches, vi.getTimerCount()]).toEqual([0, 0])
  })

  test('a watch that cannot subscribe leaves nothing behind', async () => {
    const records = counting(storedOrders(store))
    records.watch = () => Promise.reject(new CountersignError('STORE_UNAVAILABLE', 'away'))
    const instance = makeInstance(store, { records })
    const order = await untilWaiting(instance)
    const reader = new Reader(instance, order)
    expect(await reader.ended).toBe('STORE_UNAVAILABLE')
    expect(getEventListeners(reader.leave.signal, 'abort')).toEqual([])
  })
})
