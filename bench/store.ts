import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'redis'
import { openStore } from '../src/store/open.ts'
import type { Store } from '../src/store/store.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { compare, inFlight, printMeasured, type Subject } from './harness.ts'
import { hasRedis } from './servers.ts'

const most = 64
const life = { ttlMs: 300_000 }
/** As long as what is stored for a nonce. */
const value = 'v'.repeat(600)

/** What is measured of a store and its floor. A worker has a key of its own, which `prepare` fills. */
interface Steps {
  prepare(worker: number): Promise<unknown>
  createAndTake(key: string): Promise<unknown>
  replace(worker: number): Promise<unknown>
  get(worker: number): Promise<unknown>
}

/** The steps that sign-ins and orders are made of, on each store, against the bare database client. */
export async function benchStore(): Promise<void> {
  await benchMemory()
  const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  try {
    await benchSqlite('SQLite file', join(folder, 'store.db'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  if (hasRedis()) await benchRedis()
}

async function benchMemory(): Promise<void> {
  const store = await openStore('sqlite::memory:')
  const values = new Map<string, string>()
  try {
    await benchSteps('memory', 'bare Map', stepsOf(store), {
      prepare: async (worker) => values.set(String(worker), value),
      async createAndTake(key) {
        values.set(key, value)
        values.delete(key)
      },
      replace: async (worker) => values.set(String(worker), value),
      get: async (worker) => values.get(String(worker)),
    })
  } finally {
    await store.close()
  }
}

async function benchSqlite(name: string, location: string): Promise<void> {
  const store = await openStore(`sqlite:${location}`)
  const database = new DatabaseSync(`${location}.floor`)
  try {
    await benchSteps(name, 'bare node:sqlite', stepsOf(store), sqliteSteps(database))
  } finally {
    database.close()
    await store.close()
  }
}

async function benchRedis(): Promise<void> {
  await using redis = await RedisServer.start()
  const store = await openStore(redis.url)
  const client = createClient({ url: redis.url })
  await client.connect()
  try {
    await benchSteps('Redis', 'bare node-redis', stepsOf(store), {
      prepare: (worker) => client.set(`floor:${worker}`, value),
      async createAndTake(key) {
        await client.set(key, value)
        await client.getDel(key)
      },
      replace: (worker) => client.set(`floor:${worker}`, value),
      get: (worker) => client.get(`floor:${worker}`),
    })
  } finally {
    client.destroy()
    await store.close()
  }
}

function stepsOf(store: Store): Steps {
  const versions = new Array<number>(most).fill(1)
  const keyOf = (worker: number): string => `bench:${worker}`
  return {
    prepare: (worker) => store.create(keyOf(worker), value, life),
    async createAndTake(key) {
      await store.create(key, value, life)
      if ((await store.take(key)) === undefined) throw new Error('the store lost a value')
    },
    async replace(worker) {
      const version = versions[worker] as number
      if (!(await store.compareAndSet(keyOf(worker), version, value, life))) throw new Error('the store lost count')
      versions[worker] = version + 1
    },
    get: (worker) => store.get(keyOf(worker)),
  }
}

/** The same changes to the simplest of tables: nothing expires, nothing is compared. */
function sqliteSteps(database: DatabaseSync): Steps {
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
    CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID`)
  const insert = database.prepare('INSERT INTO entries (key, value) VALUES (?, ?)')
  const take = database.prepare('DELETE FROM entries WHERE key = ? RETURNING value')
  const update = database.prepare('UPDATE entries SET value = ? WHERE key = ?')
  const select = database.prepare('SELECT value FROM entries WHERE key = ?')
  return {
    prepare: async (worker) => insert.run(String(worker), value),
    async createAndTake(key) {
      insert.run(key, value)
      take.all(key)
    },
    replace: async (worker) => update.run(value, String(worker)),
    get: async (worker) => select.all(String(worker)),
  }
}

async function benchSteps(name: string, floorName: string, store: Steps, floor: Steps): Promise<void> {
  for (let worker = 0; worker < most; worker++) {
    await store.prepare(worker)
    await floor.prepare(worker)
  }
  let keys = 0
  const pair = (step: string, concurrency: number, run: (steps: Steps, worker: number) => Promise<unknown>) => {
    const manner = concurrency === 1 ? 'one by one' : `${concurrency} at once`
    const bare = `${step}, ${manner}, ${floorName}`
    return [
      { name: bare, load: inFlight(concurrency, (worker) => run(floor, worker)) },
      { name: `${step}, ${manner}`, load: inFlight(concurrency, (worker) => run(store, worker)), floor: bare },
    ] satisfies Subject[]
  }
  const subjects = [1, most].flatMap((concurrency) => [
    ...pair('create and take', concurrency, (steps) => steps.createAndTake(`new:${keys++}`)),
    ...pair('compare and set', concurrency, (steps, worker) => steps.replace(worker)),
    ...pair('get', concurrency, (steps, worker) => steps.get(worker)),
  ])
  printMeasured(`Store: ${name}`, 'steps', await compare(subjects, { rounds: 3, roundMs: 100 }))
}
