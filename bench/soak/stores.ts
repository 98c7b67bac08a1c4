import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from 'redis'
import { RedisServer } from '../../test/support/redis-server.ts'
import type { Finding } from './findings.ts'

/** What a store holds, by the kind of its keys. */
export interface KeyCount {
  readonly kind: string
  readonly count: number
  /** How many of them live forever. */
  readonly forever: number
  /** Longest time left of the others, s. */
  readonly longestSeconds: number
}

/** What is found out about a store after the load. */
export interface StoreState {
  readonly keys: readonly KeyCount[]
  readonly findings: readonly Finding[]
}

/** A store of the soak's own. */
export interface SoakStore extends AsyncDisposable {
  readonly url: string
  /** Takes it away and brings it back, with what was in it. Absent for a store that is part of the server. */
  readonly restart?: () => Promise<void>
  /** Number of connections and subscriptions of the servers. */
  holds(): Promise<Readonly<Record<string, number>>>
  state(): Promise<StoreState>
}

/** Time for which Redis is away, ms. */
const awayMs = 2000
/** Longest life of a key that is not kept forever, s: orders are remembered for ten minutes after their end. */
const longestLifeSeconds = 15 * 60
/** Time after its end in which an expired row of SQLite is to be swept, ms. */
const sweptMs = 15_000

/** A redis-server that keeps its data over a restart, as one in production does. */
export async function redisStore(): Promise<SoakStore> {
  const redis = await RedisServer.start('--appendonly', 'yes', '--appendfsync', 'everysec')
  const { port } = redis
  return {
    url: redis.url,
    async restart() {
      await redis.kill()
      await pause(awayMs)
      await redis.start()
    },
    async holds() {
      const clients = (await redis.cli('CLIENT', 'LIST')).split('\n').filter((line) => !line.includes('cmd=client'))
      const count = async (...args: string[]): Promise<number> =>
        (await redis.cli('PUBSUB', ...args)).split('\n').filter((line) => line !== '').length
      return {
        'Redis connections': clients.length,
        'Redis sharded channels': await count('SHARDCHANNELS'),
        'Redis channels': await count('CHANNELS'),
        'Redis patterns': Number((await redis.cli('PUBSUB', 'NUMPAT')).replace(/\D/g, '')),
      }
    },
    state: async () => redisState(port),
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  }
}

/** The life of a key that has ended since the scan that found it, as PTTL says it. */
const gone = -2

async function redisState(port: number): Promise<StoreState> {
  const client = createClient({ url: `redis://127.0.0.1:${port}` })
  await client.connect()
  try {
    const found: { key: string; seconds: number }[] = []
    for await (const keys of client.scanIterator({ COUNT: 1000 })) {
      const lives = await Promise.all(keys.map((key) => client.pTTL(key)))
      for (const [index, key] of keys.entries()) {
        const ms = lives[index] ?? gone
        if (ms !== gone) found.push({ key, seconds: ms / 1000 })
      }
    }
    return judged(found)
  } finally {
    client.destroy()
  }
}

/** A SQLite file in a folder of its own. */
export async function sqliteStore(): Promise<SoakStore> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-soak-'))
  const file = join(folder, 'store.db')
  return {
    url: `sqlite:${file}`,
    holds: async () => ({}),
    state: async () => sqliteState(file),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

function sqliteState(file: string): StoreState {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const now = Date.now()
    const rows = database.prepare('SELECT key, expires_at AS expiresAt FROM entries').all()
    const members = database.prepare('SELECT set_key AS key, expires_at AS expiresAt FROM members').all()
    const all = [...rows, ...members].map(({ key, expiresAt }) => ({ key: String(key), left: Number(expiresAt) - now }))
    const late = all.filter(({ left }) => left < -sweptMs)
    const { keys, findings } = judged(
      all
        .filter(({ left }) => left > 0)
        // What lives forever expires in thousands of years.
        .map(({ key, left }) => ({ key, seconds: left > 1e13 ? -1 : left / 1000 })),
    )
    const lateFinding =
      late.length === 0 ? [] : [`SQLite: ${late.length} rows are left ${sweptMs / 1000} s after their end`]
    return { keys, findings: [...findings, ...lateFinding] }
  } finally {
    database.close()
  }
}

/** Kinds of keys that live forever: there are as many as there are wallets, and one secret. */
const lastingKinds: readonly string[] = ['user', 'wallet', 'secret']

/** `seconds` is the time that is left of a key; negative if it lives forever. */
function judged(found: readonly { readonly key: string; readonly seconds: number }[]): StoreState {
  const keys = [...Map.groupBy(found, ({ key }) => kindOf(key))]
    .map(([kind, all]) => ({
      kind,
      count: all.length,
      forever: all.filter(({ seconds }) => seconds < 0).length,
      longestSeconds: Math.round(Math.max(0, ...all.map(({ seconds }) => seconds))),
    }))
    .sort((a, b) => a.kind.localeCompare(b.kind))
  const findings = keys.flatMap(({ kind, forever, longestSeconds }) => [
    ...(forever > 0 && !lastingKinds.includes(kind) ? [`store: ${forever} keys of kind ${kind} have no end`] : []),
    ...(longestSeconds > longestLifeSeconds ? [`store: a key of kind ${kind} lives for ${longestSeconds} s more`] : []),
  ])
  return { keys, findings }
}

/** What a key is of: its words before the id. */
function kindOf(key: string): string {
  const parts = key.replaceAll(/[{}]/g, '').split(':')
  const own = parts[0] === 'countersign' ? parts.slice(1) : parts
  return own[0] ?? key
}
