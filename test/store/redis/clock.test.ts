import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openRedisStore } from '../../../src/store/redis/store.ts'
import type { Store } from '../../../src/store/store.ts'
import { hasPart } from '../../support/optional.ts'
import { clockAhead, clockLate, tellsTime } from '../../support/redis-clock.ts'
import { killServers, RedisServer } from '../../support/redis-server.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { healed } from '../healed.ts'

const nineMinutesMs = 9 * 60_000
const patience = { timeout: 15_000 }

afterAll(killServers)

describe.skipIf(!hasPart('redis-server'))('the clock of a Redis store', () => {
  let server: RedisServer
  let proxy: TcpProxy
  let store: Store

  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server[Symbol.asyncDispose]())
  beforeEach(async () => {
    proxy = await startTcpProxy(server.port)
  })
  afterEach(async () => {
    await store.close()
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  const open = async (): Promise<void> => {
    store = await openRedisStore(`redis://127.0.0.1:${proxy.port}`)
  }
  /** Does to the clocks what nine minutes of suspend do: the monotonic one stands still, the wall clock does not. */
  const suspend = (): void => {
    const monotonic = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => monotonic() - nineMinutesMs)
  }
  /** How far the store is ahead of this machine, whose clock its server really has. */
  const lead = (): number => store.now() - Date.now()

  test('is that of the server, also while the clock of this machine is set', async () => {
    await open()
    expect(Math.abs(lead())).toBeLessThan(1000)
    const before = store.now()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + nineMinutesMs })
    expect(store.now() - before).toBeLessThan(60_000)
    await store.get('k')
    expect(store.now() - before).toBeLessThan(60_000)
  })

  test('is that of the server from the start', async () => {
    proxy.answer = clockAhead(540)
    await open()
    expect(Math.abs(lead() - nineMinutesMs)).toBeLessThan(1000)
  })

  test('is right again with the first call after the machine was suspended', async () => {
    await open()
    suspend()
    expect(lead()).toBeLessThan(-nineMinutesMs / 2)
    await store.get('k')
    expect(Math.abs(lead())).toBeLessThan(1000)
    await store.ping()
  })

  test('is right also if the machine was suspended while the server told the time', async () => {
    await open()
    let suspended = false
    proxy.answer = (chunk) => {
      if (suspended || !tellsTime(chunk)) return chunk
      suspended = true
      suspend()
      return chunk
    }
    proxy.cut()
    // No call is made that would have the time measured.
    await expect.poll(() => suspended, patience).toBe(true)
    await expect.poll(() => Math.abs(lead()), patience).toBeLessThan(1000)
  })

  test('is right after a call that waited while the machine was suspended', async () => {
    await open()
    proxy.answer = (chunk) => {
      proxy.answer = clockLate(100)
      suspend()
      return chunk
    }
    await store.get('k')
    expect(Math.abs(lead())).toBeLessThan(1000)
  })

  test('is that of another server with the first call that reaches it', async () => {
    await open()
    proxy.answer = clockAhead(540)
    proxy.cut()
    await healed(store, () => store.get('k'))
    expect(Math.abs(lead() - nineMinutesMs)).toBeLessThan(1000)
  })

  test('is followed every 30 s if it is set', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    await open()
    proxy.answer = clockAhead(-540)
    await store.get('k')
    await vi.advanceTimersByTimeAsync(29_000)
    await store.get('k')
    expect(Math.abs(lead())).toBeLessThan(1000)
    await vi.advanceTimersByTimeAsync(1000)
    await expect.poll(() => Math.abs(lead() + nineMinutesMs), patience).toBeLessThan(1000)
  })
})
