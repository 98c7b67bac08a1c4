import { describe, expect, test, vi } from 'vitest'
import {
  type CountersignClientOptions,
  createCountersignClient,
  type OrderEvent,
  type WatchOrderOptions,
} from '../../../src/browser/client/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { startService } from '../../support/service.ts'
import { redisUrl } from '../../support/stores.ts'
import { makeWallet } from '../../support/wallet.ts'
import { CuttableProxy } from './proxy.ts'
import { codeOf, connectClient, fetchFrom, MapStorage, pageWallet, stubPage } from './support.ts'

const wallet = pageWallet(makeWallet())

/** A client over Connect, unless `make` is another one. */
function device(baseUrl: string, options: CountersignClientOptions = {}, make = connectClient) {
  return make({ baseUrl, storage: new MapStorage(), wallet, ...options })
}

/** A desktop behind a proxy, its order, and a phone that reaches the service directly. */
async function setUp(options: CountersignClientOptions = {}, make = connectClient) {
  const { url } = await startService()
  const proxy = await CuttableProxy.start(url)
  const [desktop, phone] = [device(proxy.url, { fetch: fetchFrom(url), ...options }, make), device(url)]
  const order = await device(url).startOrder({ kind: 'login' })
  return { url, proxy, desktop, phone, order }
}

/** Watches in the background; `until` resolves when the order has got that far. */
function watching(
  desktop: ReturnType<typeof device>,
  order: Parameters<typeof desktop.watchOrder>[0],
  options: WatchOrderOptions = {},
) {
  const events: OrderEvent[] = []
  const connections: boolean[] = []
  const done = (async () => {
    const onConnection = (connected: boolean): void => void connections.push(connected)
    for await (const event of desktop.watchOrder(order, { onConnection, ...options })) events.push(event)
  })()
  done.catch(() => {})
  return {
    events,
    connections,
    done,
    until: (status: string) => vi.waitFor(() => expect(events.at(-1)?.status).toBe(status), 10_000),
  }
}

const clients = [
  ['REST', createCountersignClient, 'GET /api/auth/cross-device/events'],
  ['Connect', connectClient, 'POST /countersign.v1.OrderService/WatchOrder'],
] as const

describe('a stream that is lost', () => {
  test.each(clients)('cut, over %s: goes on where it was, misses nothing, repeats nothing', async (_, make) => {
    const { proxy, desktop, phone, order } = await setUp({}, make)
    const watch = watching(desktop, order)
    await watch.until('created')
    await proxy.refuse()
    const claim = await phone.claimOrder(order.claimUrl)
    const challenge = await phone.getOrderChallenge(claim)
    proxy.forward()
    await watch.until('waiting_user')
    proxy.cut()
    await phone.approveOrder(claim, { challenge })
    await watch.until('approved')
    await desktop.cancelOrder(order)
    await watch.done
    expect(watch.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    expect(watch.events.at(-1)?.status).toBe('cancelled')
  })

  test.each(clients)('silent, over %s: is taken for dead when no sign of life comes', async (_, make, request) => {
    const { proxy, desktop, phone, order } = await setUp({ heartbeatTimeoutMs: 2000 }, make)
    const watch = watching(desktop, order)
    await watch.until('created')
    proxy.silence(request)
    await phone.claimOrder(order.claimUrl)
    await watch.until('claimed')
    await desktop.cancelOrder(order)
    await watch.done
    expect(watch.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  })

  test('a reader that takes its time does not make a stream silent', async () => {
    const { desktop, phone, order } = await setUp({ heartbeatTimeoutMs: 1000 })
    const connections: boolean[] = []
    const events = desktop.watchOrder(order, { onConnection: (connected) => void connections.push(connected) })
    await events.next()
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await phone.claimOrder(order.claimUrl)
    expect((await events.next()).value).toMatchObject({ status: 'claimed' })
    expect(connections).toEqual([true])
    await events.return()
  })

  test('signs of life are no events, and the end of a stream\u2019s life is not the end of the watch', async () => {
    const { desktop, phone, order } = await setUp()
    // The service is in this process: its heartbeats and its eleven minutes go by the same timers.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const watch = watching(desktop, order)
    try {
      await eventually(() => watch.events.length === 1)
      for (let beats = 0; watch.connections.length < 3; beats++) {
        expect(beats).toBeLessThan(60)
        await vi.advanceTimersByTimeAsync(15_000)
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
      }
    } finally {
      vi.useRealTimers()
    }
    expect(watch.connections).toEqual([true, false, true])
    await phone.claimOrder(order.claimUrl)
    await watch.until('claimed')
    await desktop.cancelOrder(order)
    await watch.done
    expect(watch.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  })

  test.runIf(redisUrl !== undefined)('its instance stopped: goes on at another one', async () => {
    const shared = {
      store: await redisUrl?.(),
      secret: 'a secret for tests, not for anything else',
    } as CountersignOptions
    const first = await startService(shared)
    const second = await startService({ ...shared, trustedOrigins: [first.url] })
    const proxy = await CuttableProxy.start(first.url)
    const order = await device(first.url).startOrder({ kind: 'login' })
    const desktop = device(proxy.url, { fetch: fetchFrom(first.url) })
    const watch = watching(desktop, order)
    await watch.until('created')
    proxy.retarget(second.url)
    await first.service.close(2000)
    const phone = device(second.url, { fetch: fetchFrom(first.url) })
    await phone.rejectOrder(await phone.claimOrder(order.claimUrl))
    await watch.done
    expect(watch.events.map(({ status }) => status)).toEqual(['created', 'claimed', 'rejected'])
  })
})

describe('a page that comes back to life', () => {
  test('opens the stream again at once when it is shown, not when it is hidden', async () => {
    const tab = stubPage('visible')
    try {
      const { proxy, desktop, phone, order } = await setUp()
      const watch = watching(desktop, order)
      await watch.until('created')
      proxy.silence('POST /countersign.v1.OrderService/WatchOrder')
      tab.show('hidden')
      await phone.claimOrder(order.claimUrl)
      expect(watch.connections).toEqual([true])
      tab.show('visible')
      await watch.until('claimed')
      expect(watch.connections).toEqual([true, false, true])
      await desktop.cancelOrder(order)
      await watch.done
      expect(watch.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
    } finally {
      vi.unstubAllGlobals()
    }
  })

  test('hidden for some seconds it keeps no stream, and goes on where it was when it is shown', async () => {
    const tab = stubPage('visible')
    try {
      const { proxy, desktop, phone, order } = await setUp()
      const watch = watching(desktop, order)
      await watch.until('created')
      const ended = proxy.closed
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      tab.show('hidden')
      await vi.advanceTimersByTimeAsync(10_000)
      vi.useRealTimers()
      await eventually(() => proxy.closed > ended)
      const claim = await phone.claimOrder(order.claimUrl)
      expect(watch.events.map(({ status }) => status)).toEqual(['created'])
      tab.show('visible')
      await watch.until('claimed')
      await phone.rejectOrder(claim)
      await watch.done
      expect(watch.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
    } finally {
      vi.useRealTimers()
      vi.unstubAllGlobals()
    }
  })

  test('does not wait out a back-off when the network returns', async () => {
    const tab = stubPage('visible')
    try {
      const { proxy, desktop, phone, order } = await setUp()
      const watch = watching(desktop, order)
      await watch.until('created')
      // From here on, no wait ever ends.
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      proxy.cut()
      await eventually(() => watch.connections.at(-1) === false)
      await phone.claimOrder(order.claimUrl)
      tab.online()
      await eventually(() => watch.events.at(-1)?.status === 'claimed')
      vi.useRealTimers()
      await desktop.cancelOrder(order)
      await watch.done
    } finally {
      vi.useRealTimers()
      vi.unstubAllGlobals()
    }
  })
})

/** Waits without a timer, until the test's own time is up. */
async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate)
}

describe('the end of a watch', () => {
  test('a definitive refusal ends it with its code', async () => {
    const { desktop, order } = await setUp()
    const first = (wrong: Partial<typeof order>) => codeOf(desktop.watchOrder({ ...order, ...wrong }).next())
    expect(await first({ desktopToken: order.claimToken })).toBe('ORDER_TOKEN_INVALID')
    expect(await first({ orderId: 'another' })).toBe('ORDER_NOT_FOUND')
  })

  test('aborting ends it with ABORTED, while it waits and before it begins', async () => {
    const { desktop, order } = await setUp()
    const controller = new AbortController()
    const watch = watching(desktop, order, { signal: controller.signal })
    await watch.until('created')
    controller.abort(new Error('the page was left'))
    await expect(watch.done).rejects.toMatchObject({ code: 'ABORTED', cause: new Error('the page was left') })
    expect(await codeOf(desktop.watchOrder(order, { signal: controller.signal }).next())).toBe('ABORTED')
  })

  test('aborting ends a back-off', async () => {
    const { proxy, desktop, order } = await setUp()
    const controller = new AbortController()
    const watch = watching(desktop, order, { signal: controller.signal })
    await watch.until('created')
    await proxy.refuse()
    controller.abort()
    expect(await codeOf(watch.done)).toBe('ABORTED')
  })

  test('leaving the loop closes the connection', async () => {
    const { proxy, desktop, order } = await setUp()
    for await (const _ of desktop.watchOrder(order)) break
    // Of other connections, which wait for a next call, some versions of Node close one as well.
    await vi.waitFor(() => expect(proxy.closed).toBeGreaterThan(0), 20_000)
  })

  test('an order that ended before is told in one event', async () => {
    const { desktop, order } = await setUp()
    await desktop.cancelOrder(order)
    const watch = watching(desktop, order)
    await watch.done
    expect(watch.events.map(({ status }) => status)).toEqual(['cancelled'])
  })

  test('goes on from a given sequence, and from the start when the service has not reached it', async () => {
    const { desktop, phone, order } = await setUp()
    await phone.claimOrder(order.claimUrl)
    await desktop.cancelOrder(order)
    const eventsAfter = async (afterSequence: number) => {
      const watch = watching(desktop, order, { afterSequence })
      await watch.done
      return watch.events.map(({ sequence }) => sequence)
    }
    expect(await eventsAfter(1)).toEqual([2, 3])
    expect(await eventsAfter(7)).toEqual([3])
  })
})
