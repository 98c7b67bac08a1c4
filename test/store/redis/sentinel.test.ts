import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { dialMaster } from '../../../src/store/redis/connection.ts'
import {
  agreedConfiguration,
  type Configuration,
  Lease,
  SentinelMaster,
  Sentinels,
} from '../../../src/store/redis/sentinel-master.ts'
import { openRedisStore } from '../../../src/store/redis/store.ts'
import { parseRedisUrl } from '../../../src/store/redis/url.ts'
import type { Store } from '../../../src/store/store.ts'
import { hasPart } from '../../support/optional.ts'
import { onServer, SentinelSetup } from '../../support/redis-sentinels.ts'
import { freePort, killServers } from '../../support/redis-server.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { healed } from '../healed.ts'

const hasServer = hasPart('redis-server') && hasPart('redis-cli')

afterAll(killServers)

// In this order: each test leaves another server as the master, and the one that it deposed needs ten seconds to follow
// it.
describe.skipIf(!hasServer)('a Redis store whose master is replaced by sentinels', { timeout: 60_000 }, () => {
  let setup: SentinelSetup

  beforeAll(async () => {
    setup = await SentinelSetup.start()
  }, 60_000)
  afterAll(() => setup[Symbol.asyncDispose]())

  it('uses no nonce twice and loses no session when a frozen master comes back, not even with a fresh process', async () => {
    const deposed = await setup.master()
    await using old = await opened(setup.url)
    await using idle = await opened(setup.url)
    const nonces = await prepare(old, 200)
    await setup.replicated()
    const taken: string[] = []
    const sessions: string[] = []
    const working = new AbortController()

    deposed.freeze()
    await stopped()
    // These are on their way to the master while it is frozen. The others are sent when it goes on, by a process that
    // called nothing meanwhile.
    const taking = takeAll(old, nonces.slice(0, 100), taken)
    await setup.replaced(deposed)
    const writing = write(old, sessions, working.signal)
    deposed.thaw()
    const takingMore = takeAll(idle, nonces.slice(100), taken)
    // Otherwise this shows nothing.
    expect(await onServer(deposed, 'ROLE')).toMatch(/^master/)
    await using fresh = await opened(setup.url)
    const writingFresh = write(fresh, sessions, working.signal)
    await Promise.all([taking, takingMore, takeAll(fresh, nonces, taken)])
    await expect.poll(() => sessions.length, { timeout: 20_000 }).toBeGreaterThan(50)
    working.abort()
    await Promise.all([writing, writingFresh])

    expect(taken).toHaveLength(new Set(taken).size)
    expect(taken.length).toBeGreaterThan(nonces.length / 2)
    expect(await missing(fresh, sessions)).toEqual([])
  })

  it('loses nothing that was acknowledged when an operator replaces a master that works', async () => {
    await setup.settled()
    const deposed = await setup.master()
    await using store = await opened(setup.url)
    const sessions: string[] = []
    const working = new AbortController()
    const writing = write(store, sessions, working.signal)
    await expect.poll(() => sessions.length, { timeout: 20_000 }).toBeGreaterThan(50)
    await setup.sentinels[0]!.cli('SENTINEL', 'FAILOVER', 'main')
    await setup.replaced(deposed)
    const before = sessions.length
    await expect.poll(() => sessions.length, { timeout: 20_000 }).toBeGreaterThan(before + 50)
    working.abort()
    await writing
    // A replica that has no processor may be behind when it is promoted. A store that is told too late loses a second's
    // work.
    expect((await missing(store, sessions)).length).toBeLessThan(5)
  })

  it('believes the sentinels that know of the last failover, not one that is cut off', async () => {
    const [first, second] = setup.sentinels
    const stale = await setup.cutOff.masterPort()
    expect(await first!.masterPort()).not.toBe(stale)
    await using witness = await opened(setup.url)
    for (const others of [[first!], [first!, second!]]) {
      for (let i = 0; i < 5; i++) {
        await using store = await opened(setup.urlOf([setup.cutOff, ...others]))
        const key = randomUUID()
        await store.create(key, 'a', { ttlMs: 60_000 })
        expect(await witness.get(key)).toBeDefined()
      }
    }
  })

  it('does not trust a deposed master whose answer, or greeting, was on its way when it froze', async () => {
    await setup.settled()
    const deposed = await setup.master()
    await using old = await opened(setup.url)
    await using bystander = await opened(setup.url)
    const events = { onUp: () => undefined, onLost: () => undefined, onMoved: () => undefined }
    const servers = new SentinelMaster(parseRedisUrl(setup.url), events)
    onTestFinished(() => servers.close())
    await servers.opened
    const [nonce] = await prepare(old, 1)
    const woken = Promise.withResolvers<void>()
    await bystander.create('watched', 'a', { ttlMs: 60_000 })
    await bystander.watch('watched', woken.resolve)
    await setup.replicated()

    deposed.freeze()
    await stopped()
    const answer = old.take(nonce!).catch((error: unknown) => error)
    const opening = openRedisStore(setup.url).catch((error: unknown) => error)
    // As for the subscriptions of a store.
    const dialling = servers.dial().catch((error: unknown) => error)
    // The greeting is on its way by then.
    await sleep(500)
    // The store hears nothing of the failover, as a process that was suspended: nothing else runs until the end of this
    // block.
    for (const { port } of setup.sentinels) cliNow(port, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
    const { port } = setup.sentinels[0]!
    cliNow(port, 'SENTINEL', 'FAILOVER', 'main')
    const beganAt = performance.now()
    const named = () => cliNow(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main').trim().split('\n')[1]
    // Long enough that the last answer before no longer vouches for the master.
    while (performance.now() < beganAt + 1000 || named() === String(deposed.port)) {
      if (performance.now() > beganAt + 20_000) throw new Error('the master was not replaced')
    }
    deposed.thaw()
    expect(cliNow(deposed.port, '-a', 'pass', '--no-auth-warning', 'ROLE')).toMatch(/^master/)

    expect(await answer).toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    expect(await opening).toBeInstanceOf(Error)
    expect(await dialling).toBeInstanceOf(Error)
    await setup.replaced(deposed)
    await using fresh = await opened(setup.url)
    expect(await fresh.take(nonce!)).toBe('a')
    expect(await fresh.compareAndSet('watched', 1, 'b', { ttlMs: 60_000 }, { wake: true })).toBe(true)
    await woken.promise
  })

  it('leaves a deposed master as soon as it reaches sentinels again, if it could not hear of the failover', async () => {
    await setup.settled()
    const deposed = await setup.master()
    const proxies = await Promise.all(setup.sentinels.map(({ port }) => startTcpProxy(port)))
    await using store = await opened(setup.urlOf(proxies))
    for (const proxy of proxies) {
      proxy.targetPort = await freePort()
      proxy.cut()
    }
    await setup.sentinels[0]!.cli('SENTINEL', 'FAILOVER', 'main')
    await setup.replaced(deposed)
    // There is nobody to ask, and the master answers.
    await store.ping()
    for (const [i, proxy] of proxies.entries()) proxy.targetPort = setup.sentinels[i]!.port
    await using witness = await opened(setup.url)
    await expect
      .poll(
        async () => {
          const key = randomUUID()
          await healed(store, () => store.create(key, 'a', { ttlMs: 60_000 }))
          return witness.get(key)
        },
        { timeout: 20_000 },
      )
      .toBeDefined()
    // It was not driven away by a server that had become a replica.
    expect(await onServer(deposed, 'ROLE')).toMatch(/^master/)
  })

  it('asks the sentinels again after calls were too many for a moment, even if several had to ask', async () => {
    const target = parseRedisUrl(setup.url)
    const sentinels = new Sentinels(target, () => undefined)
    onTestFinished(() => sentinels.close())
    const configuration = agreedConfiguration(await sentinels.ask())
    const connection = await dialMaster(configuration.master, target)
    onTestFinished(() => connection.client.destroy())
    const lease = new Lease(connection, sentinels, configuration)
    const calls = Array.from({ length: 20_000 }, () => connection.client.ping())
    const first = lease.confirm()
    // Otherwise both are one.
    await undefined
    const outcomes = await Promise.allSettled([first, lease.confirm()])
    expect(outcomes).toMatchObject([
      { reason: { message: 'The queue is full' } },
      { reason: { message: 'The queue is full' } },
    ])
    await Promise.all(calls)
    await lease.confirm()
  })

  // The last one, because a sentinel that was frozen does nothing for half a minute.
  it('goes on without any sentinel, but makes no new connection, and says why', async () => {
    await using store = await opened(setup.url)
    for (const sentinel of setup.sentinels) sentinel.freeze()
    try {
      await expect(openRedisStore(setup.url)).rejects.toThrow(/0 of 3 sentinels answered, and 2 must: the sentinel at /)
      // Longer than the connections to the sentinels last without an answer.
      const until = performance.now() + 4000
      while (performance.now() < until) {
        await store.create(randomUUID(), 'a', { ttlMs: 60_000 })
        await sleep(20)
      }
      setup.sentinels[0]!.thaw()
      await expect(openRedisStore(setup.url)).rejects.toThrow(/1 of 3 sentinels answered, and 2 must/)
    } finally {
      for (const sentinel of setup.sentinels) sentinel.thaw()
    }
    await using again = await opened(setup.url)
    await again.ping()
  })
})

describe('the configuration that sentinels agree on', () => {
  const old = configuration({})
  const newer = configuration({ port: 2, epoch: 5 })

  it('is the newest one, even if a single one of them knows it', () => {
    expect(agreed([old, newer, old])).toMatchObject({ master: { port: 2 }, epoch: 5 })
  })

  it('takes the answers of half of them', () => {
    expect(agreed([old], 1)).toMatchObject({ master: { port: 1 } })
    expect(agreed([old], 2)).toMatchObject({ master: { port: 1 } })
    expect(agreed([old, old], 3)).toMatchObject({ master: { port: 1 } })
    expect(() => agreed([], 1)).toThrow('0 of 1 sentinels answered, and 1 must: refused')
    expect(() => agreed([newer], 3)).toThrow('1 of 3 sentinels answered, and 2 must: refused')
    expect(() => agreed([old, old], 5)).toThrow('2 of 5 sentinels answered, and 3 must: refused')
  })

  it('is that of most of them if two are as new, and none if that decides nothing', () => {
    const other = configuration({ port: 3 })
    expect(agreed([other, old, old])).toMatchObject({ master: { port: 1 } })
    expect(() => agreed([other, old])).toThrow('the sentinels name several masters')
  })

  it('is none while one of them promotes another server, until it names that', () => {
    expect(() => agreed([old, { ...old, promoting: true }, old])).toThrow('the sentinels are replacing the master')
    expect(agreed([old, { ...old, promoting: true }, newer])).toMatchObject({ master: { port: 2 } })
  })

  function configuration({ port = 1, epoch = 4 }: { port?: number; epoch?: number }): Configuration {
    return { master: { host: '127.0.0.1', port }, epoch, promoting: false, downAfterMs: 1000 }
  }

  function agreed(configurations: readonly Configuration[], asked = configurations.length): Configuration {
    const failures = Array.from({ length: asked - configurations.length }, () => new Error('refused'))
    return agreedConfiguration({ configurations, failures, asked })
  }
})

/** Opens a store as a process does that is started again until it runs. */
async function opened(url: string): Promise<Store & AsyncDisposable> {
  const giveUpAt = performance.now() + 20_000
  while (true) {
    try {
      const store = await openRedisStore(url)
      return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
    } catch (error) {
      if (performance.now() > giveUpAt) throw error
      await sleep(20)
    }
  }
}

/** Gives a process that was told to stop the time to do so. */
async function stopped(): Promise<void> {
  await sleep(100)
}

async function prepare(store: Store, count: number): Promise<string[]> {
  const nonces = Array.from({ length: count }, () => `nonce:${randomUUID()}`)
  for (const nonce of nonces) await store.create(nonce, 'a', { ttlMs: 120_000 })
  return nonces
}

/** Takes each nonce, again and again while the store is unavailable, and notes each that it got. */
async function takeAll(store: Store, nonces: readonly string[], taken: string[]): Promise<void> {
  await Promise.all(
    nonces.map(async (nonce) => {
      if ((await healed(store, () => store.take(nonce))) !== undefined) taken.push(nonce)
    }),
  )
}

/** Writes until it is told to stop, and notes what was acknowledged. */
async function write(store: Store, acknowledged: string[], stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const key = `session:${randomUUID()}`
    if (await healed(store, () => store.create(key, 'a', { ttlMs: 120_000 }))) acknowledged.push(key)
    await sleep(5)
  }
}

async function missing(store: Store, keys: readonly string[]): Promise<string[]> {
  const values = await Promise.all(keys.map((key) => healed(store, () => store.get(key))))
  return keys.filter((_, i) => values[i] === undefined)
}

/** Runs redis-cli while nothing else in this process runs. */
function cliNow(port: number, ...args: string[]): string {
  return execFileSync('redis-cli', ['-p', String(port), ...args], { encoding: 'utf8' })
}
