import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { Signer } from '../core/order/support.ts'
import { approveOrder, signIn } from '../support/flows.ts'
import { hasPart } from '../support/optional.ts'
import { killServers, RedisServer } from '../support/redis-server.ts'
import { bearer, okay, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet } from '../support/wallet.ts'

afterAll(killServers)

/** What a store holds under a key: how long it will be there, in milliseconds; infinite if nothing ends it. */
type Lives = ReadonlyMap<string, number>

/** A store, and a look into it past the service. */
interface OpenedStore {
  readonly options: CountersignOptions
  lives(): Promise<Lives>
}

const forever = Number.POSITIVE_INFINITY

async function openFile(): Promise<OpenedStore> {
  const folder = temporaryFolder()
  const file = join(folder, 'a.db')
  return {
    options: { store: `sqlite:${file}` },
    async lives() {
      const database = new DatabaseSync(file, { readOnly: true })
      try {
        const rows = database
          .prepare('SELECT key, expires_at FROM entries UNION SELECT set_key, expires_at FROM members')
          .all() as { key: string; expires_at: number }[]
        return new Map(
          rows.map((row) => [
            row.key,
            row.expires_at === Number.MAX_SAFE_INTEGER ? forever : row.expires_at - Date.now(),
          ]),
        )
      } finally {
        database.close()
      }
    },
  }
}

async function openRedis(): Promise<OpenedStore> {
  const server = await RedisServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  return {
    options: { store: server.url, secret: 'a secret for tests and for nothing else' },
    async lives() {
      const keys = (await server.cli('--scan')).split('\n').filter((key) => key !== '')
      const lives = new Map<string, number>()
      for (const key of keys) {
        const ms = Number(await server.cli('PTTL', key))
        // -2 means that it has ended since.
        if (ms !== -2) lives.set(key.replace(/^countersign:/, ''), ms === -1 ? forever : ms)
      }
      return lives
    },
  }
}

const kinds: [string, () => Promise<OpenedStore>][] = [
  ['a SQLite file', openFile],
  ...(hasPart('redis-server') ? ([['Redis', openRedis]] as [string, () => Promise<OpenedStore>][]) : []),
]

const ttls = { nonceTtlSeconds: 100, orderTtlSeconds: 30, sessionTtlSeconds: 1000, sessionAbsoluteTtlSeconds: 5000 }

/** Time that the service keeps a record beyond its use, in milliseconds. */
const nonceAfterlifeMs = 60_000
const rememberedMs = 600_000

describe.each(kinds)('in %s', (_name, open) => {
  test('everything but users, their wallets and the secret has a life, and it is the one of its kind', async () => {
    const { options, lives } = await open()
    const startedAt = performance.now()
    const { url } = await startService({ ...options, ...ttls })
    const call = async (...given: Parameters<typeof rest> extends [string, ...infer Rest] ? Rest : never) =>
      okay(await rest(url, ...given))
    const wallet = makeWallet()
    const start = () => call('/cross-device/start', { kind: 'login' })
    const approved = async () => {
      const order = await start()
      await approveOrder(url, order, { wallet })
      return order
    }
    const desktop = ({ orderId, desktopToken }: { orderId: string; desktopToken: string }) => ({
      orderId,
      desktopToken,
    })

    const { nonceId } = await call('/wallet/nonce', {})
    const created = await start()
    const waiting = await approved()
    const finalized = await approved()
    const fromOrder = await call('/cross-device/finalize', desktop(finalized))
    const cancelled = await start()
    await call('/cross-device/cancel', desktop(cancelled))
    const [kept, ended] = [await signIn(url, wallet), await signIn(url, wallet)]
    await call('/sign-out', {}, bearer(ended.token))

    const found = await lives()
    const elapsedMs = performance.now() - startedAt
    const expected: Record<string, number> = {
      [`nonce:${nonceId}`]: ttls.nonceTtlSeconds * 1000 + nonceAfterlifeMs,
      [`order:{${created.orderId}}`]: ttls.orderTtlSeconds * 1000 + rememberedMs,
      // An approved order has at least a minute.
      [`order:{${waiting.orderId}}`]: 60_000 + rememberedMs,
      [`order:{${finalized.orderId}}`]: rememberedMs,
      [`order:{${cancelled.orderId}}`]: rememberedMs,
      [`session:${fromOrder.session.id}`]: ttls.sessionTtlSeconds * 1000,
      [`session:${kept.session.id}`]: ttls.sessionTtlSeconds * 1000,
      // The mark that the session has ended.
      [`session:${ended.session.id}`]: 600_000,
      [`user:${kept.session.userId}`]: forever,
    }
    for (const [key, ms] of Object.entries(expected)) {
      expect(found.get(key), key).toBeLessThanOrEqual(ms + 1000)
      expect(found.get(key), key).toBeGreaterThanOrEqual(ms - elapsedMs - 1000)
    }
    const others = [...found].filter(([key]) => !(key in expected))
    for (const [key, ms] of others) {
      if (key === 'secret' || key.startsWith('sessions:')) continue
      if (key.startsWith('wallet:') && ms === forever) continue
      expect.fail(`${key} is not known to this test, and lives for ${ms} ms`)
    }
    // The user's list of sessions ends with the last of them.
    const [list, ...more] = others.filter(([key]) => key.startsWith('sessions:'))
    expect(more).toEqual([])
    expect(list?.[1]).toBeLessThanOrEqual(ttls.sessionTtlSeconds * 1000 + 1000)
    expect(list?.[1]).toBeGreaterThanOrEqual(ttls.sessionTtlSeconds * 1000 - elapsedMs - 1000)
  })

  test('the mark of a used nonce lives as long as the nonce, if the nonce store of the application cannot take', async () => {
    const { options, lives } = await open()
    const map = new Map<string, string>()
    const nonceStore = {
      get: async (key: string) => map.get(key),
      set: async (key: string, value: string) => map.set(key, value),
      delete: async (key: string) => map.delete(key),
    }
    const startedAt = performance.now()
    const { url } = await startService({ ...options, ...ttls, nonceStore })
    const { json } = await rest(url, '/wallet/nonce', {})
    const proof = { nonceId: json.nonceId, ...new Signer().prove(json.message) }
    expect((await rest(url, '/wallet/verify', proof)).status).toBe(200)
    const ms = (await lives()).get(`used-nonce:${json.nonceId}`)
    const elapsedMs = performance.now() - startedAt
    expect(ms).toBeLessThanOrEqual(ttls.nonceTtlSeconds * 1000 + nonceAfterlifeMs + 1000)
    expect(ms).toBeGreaterThanOrEqual(ttls.nonceTtlSeconds * 1000 - elapsedMs)
  })
})
