import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { type Countersign, createCountersign, openStore, type Store } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { signIn } from '../support/flows.ts'
import { keptLog } from '../support/log-lines.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const secret = 'a secret for tests and for nothing else'

async function open(url: string): Promise<Store> {
  const store = await openStore(url)
  onTestFinished(() => store.close())
  return store
}

/** A store of the caller's own making: the given one behind another object. */
function wrapped(store: Store, shared: boolean | undefined): Store {
  return {
    description: 'of our own',
    shared: shared as boolean,
    now: () => store.now(),
    get: (key) => store.get(key),
    create: (key, value, life) => store.create(key, value, life),
    take: (key) => store.take(key),
    compareAndSet: (key, version, value, life, options) => store.compareAndSet(key, version, value, life, options),
    watch: (key, onWake) => store.watch(key, onWake),
    addMember: (set, member, life, most) => store.addMember(set, member, life, most),
    removeMember: (set, member) => store.removeMember(set, member),
    members: (set) => store.members(set),
    ping: () => store.ping(),
    close: () => store.close(),
  }
}

function create(store: string | Store, given?: string): Promise<Countersign> {
  return createCountersign({ store, logger: silentLogger, ...(given === undefined ? {} : { secret: given }) })
}

describe('the option store', () => {
  test('takes an opened store, which stays open when the service closes', async () => {
    const store = await open('sqlite::memory:')
    const { url, service } = await startService({ store })
    const { token } = await signIn(url)
    expect(service.description.store).toBe(store.description)
    await service.close(0)
    await store.ping()

    const next = await create(store)
    expect(await next.introspect(token)).toMatchObject({ adapterId: 'nimiq' })
    await next.close(0)
  })

  test('takes a store of another make', async () => {
    const store = wrapped(await open('sqlite::memory:'), false)
    const { url, service } = await startService({ store })
    expect(await service.introspect((await signIn(url)).token)).toBeDefined()
    expect(service.description.store).toBe('of our own')
  })

  test('takes an opened store with a key prefix, and leaves it open all the same', async () => {
    const store = await open('sqlite::memory:')
    const { url, service } = await startService({ store, keyPrefix: 'staging' })
    const { token } = await signIn(url)
    expect(await store.get('secret')).toBeUndefined()
    expect(await store.get('staging:secret')).toBeDefined()
    await service.close(0)
    await store.ping()
    const other = await create(store)
    expect(await other.introspect(token)).toBeUndefined()
    await other.close(0)
  })

  test('takes an address, and the service then closes the store that it opened', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'a.db')
    const service = await create(`sqlite:${file}`)
    // SQLite removes its write-ahead log when the last connection closes.
    expect(existsSync(`${file}-wal`)).toBe(true)
    await service.close(0)
    expect(existsSync(`${file}-wal`)).toBe(false)
  })
})

test('with ed25519 and solana, the start warns that one key is two users', async () => {
  const warningsOf = async (adapters: string[]): Promise<string[]> => {
    const { logger, lines } = keptLog()
    const service = await createCountersign({ store: 'sqlite::memory:', logger, adapters })
    await service.close(0)
    return lines.filter(({ level }) => level === 'warn').map(({ text }) => text)
  }
  expect(await warningsOf(['solana', 'ed25519'])).toEqual([expect.stringMatching(/one key is two users/)])
  expect(await warningsOf(['solana', 'nimiq'])).toEqual([])
  expect(await warningsOf(['nimiq', 'ed25519'])).toEqual([])
})

describe('the origins that are trusted by default', () => {
  const loopback = (port: string) => ['localhost', '127.0.0.1', '[::1]'].map((name) => `http://${name}:${port}`)

  async function trustedOf(
    options: CountersignOptions,
  ): Promise<{ port: string; isTrusted: (origin: string) => Promise<boolean> }> {
    const { url } = await startService(options)
    const isTrusted = async (origin: string) => (await rest(url, '/wallet/nonce', {}, { origin })).status === 200
    return { port: new URL(url).port, isTrusted }
  }

  test.each([
    undefined,
    'http://localhost:1',
    'https://localhost',
    'http://127.0.0.1:1',
    'http://127.1.2.3',
    'http://[::1]:1',
  ])('are publicUrl and the loopback names if it is %s', async (publicUrl) => {
    const { port, isTrusted } = await trustedOf(publicUrl === undefined ? {} : { publicUrl })
    for (const origin of [...loopback(port), publicUrl ?? `http://localhost:${port}`]) {
      expect(await isTrusted(origin), origin).toBe(true)
    }
    for (const origin of [...loopback('1234'), `http://127.0.0.1.example:${port}`]) {
      expect(await isTrusted(origin), origin).toBe(false)
    }
  })

  test.each([
    'https://auth.example',
    'http://localhost.example',
    'http://127.0.0.1.example',
    'http://10.0.0.1',
    'http://[::2]',
  ])('are publicUrl alone if it is %s', async (publicUrl) => {
    const { port, isTrusted } = await trustedOf({ publicUrl })
    expect(await isTrusted(publicUrl)).toBe(true)
    for (const origin of loopback(port)) expect(await isTrusted(origin), origin).toBe(false)
  })
})

describe('the secret', () => {
  const required = /^secret \(COUNTERSIGN_SECRET\) must be set if the store is shared, as Redis and PostgreSQL are; .+$/

  test('is made once and kept by a store that is not shared', async () => {
    const store = await open('sqlite::memory:')
    await (await create(store)).close(0)
    const kept = await store.get('secret')
    expect(kept?.value).toMatch(/^[\w-]{43}$/)
    await (await create(store)).close(0)
    expect(await store.get('secret')).toEqual(kept)
  })

  test('is not kept if it is given', async () => {
    const store = await open('sqlite::memory:')
    await (await create(store, secret)).close(0)
    expect(await store.get('secret')).toBeUndefined()
  })

  test.each([true, undefined])('is required if shared is %s, under any name of the store', async (shared) => {
    const inner = await open('sqlite::memory:')
    const store = wrapped(inner, shared)
    await expect(create(store)).rejects.toThrow(required)
    await expect(create(store)).rejects.toBeInstanceOf(TypeError)
    // The store is still open, and nothing was written to it.
    expect(await inner.get('secret')).toBeUndefined()
    await (await create(store, secret)).close(0)
  })

  test.runIf(redisUrl)('is required with Redis, as an address or opened', async () => {
    const url = await redisUrl!()
    const store = await open(url)
    for (const given of [url, store]) {
      await expect(create(given)).rejects.toThrow(required)
      await (await create(given, secret)).close(0)
    }
    await store.ping()
  })
})
