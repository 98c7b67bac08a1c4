/** The steps of a store that sign-ins are made of, one command or statement each, without anything on top. */
import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'redis'
import { scripts } from '../src/store/redis/scripts.ts'

/** Steps of the least sign-in, and those that Countersign's has beside them. Times are in ms; values expire. */
export interface FloorSteps {
  set(key: string, value: string, ttlMs: number): unknown
  get(key: string): unknown
  take(key: string): unknown
  addMember(set: string, member: string, ttlMs: number): unknown
  /** Stores a value in the place of another. */
  replace(key: string, value: string, ttlMs: number): unknown
  /** Tells those who watch a topic. */
  wake(topic: string, message: string): unknown
  /** Resolves with what ends it. */
  watch(topic: string, onWake: (message: string) => void): Promise<() => void>
}

/** Most members of a set, as Countersign limits the sessions of a user. */
const mostMembers = 100

/** Opens a store by the address that Countersign takes: "sqlite::memory:", "sqlite:" and a file, or the URL of a Redis. */
export async function openSteps(store: string): Promise<FloorSteps> {
  if (store === 'sqlite::memory:') return openMaps()
  return store.startsWith('sqlite:') ? openDatabase(store.slice('sqlite:'.length)) : await openRedis(store)
}

async function openRedis(url: string): Promise<FloorSteps> {
  // As Countersign's own client: no timer for each command.
  const client = createClient({ url, scripts, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
  const subscriber = createClient({ url, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
  await Promise.all([client.connect(), subscriber.connect()])
  const set: FloorSteps['set'] = (key, value, ttlMs) =>
    client.set(key, value, { expiration: { type: 'PX', value: ttlMs } })
  return {
    set,
    replace: set,
    wake: (topic, message) => client.sPublish(topic, message),
    async watch(topic, onWake) {
      await subscriber.sSubscribe(topic, onWake)
      return () => void subscriber.sUnsubscribe(topic)
    },
    get: (key) => client.get(key),
    take: (key) => client.getDel(key),
    addMember: (set, member, ttlMs) => client.addMember(set, { member, ttlMs, most: mostMembers }),
  }
}

/** What has expired is not removed: a run does not last as long. */
function openMaps(): FloorSteps {
  const values = new Map<string, { readonly value: string; readonly expiresAt: number }>()
  const sets = new Map<string, Map<string, number>>()
  const watches = new Map<string, (message: string) => void>()
  const set: FloorSteps['set'] = (key, value, ttlMs) => values.set(key, { value, expiresAt: Date.now() + ttlMs })
  const get = (key: string): string | undefined => {
    const entry = values.get(key)
    return entry !== undefined && entry.expiresAt > Date.now() ? entry.value : undefined
  }
  return {
    set,
    replace: set,
    wake: (topic, message) => watches.get(topic)?.(message),
    async watch(topic, onWake) {
      watches.set(topic, onWake)
      return () => void watches.delete(topic)
    },
    get,
    take(key) {
      const value = get(key)
      values.delete(key)
      return value
    },
    addMember(name, member, ttlMs) {
      const members = sets.get(name) ?? new Map<string, number>()
      sets.set(name, members.set(member, Date.now() + ttlMs))
      return members.size
    },
  }
}

function openDatabase(file: string): FloorSteps {
  const database = new DatabaseSync(file)
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
     CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
     CREATE TABLE members (set_key TEXT NOT NULL, member TEXT NOT NULL, expires_at INTEGER NOT NULL,
       PRIMARY KEY (set_key, member)) STRICT, WITHOUT ROWID`,
  )
  const insert = database.prepare('INSERT INTO entries (key, value, expires_at) VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM entries WHERE key = ? AND expires_at > ? RETURNING value')
  const read = database.prepare('SELECT value FROM entries WHERE key = ? AND expires_at > ?')
  const addMember = database.prepare('INSERT INTO members (set_key, member, expires_at) VALUES (?, ?, ?)')
  const count = database.prepare('SELECT count(*) AS count FROM members WHERE set_key = ? AND expires_at > ?')
  const replace = database.prepare('INSERT OR REPLACE INTO entries (key, value, expires_at) VALUES (?, ?, ?)')
  const watches = new Map<string, (message: string) => void>()
  return {
    replace: (key, value, ttlMs) => replace.run(key, value, Date.now() + ttlMs),
    wake: (topic, message) => watches.get(topic)?.(message),
    async watch(topic, onWake) {
      watches.set(topic, onWake)
      return () => void watches.delete(topic)
    },
    set: (key, value, ttlMs) => insert.run(key, value, Date.now() + ttlMs),
    get: (key) => read.get(key, Date.now())?.value,
    take: (key) => remove.get(key, Date.now())?.value,
    addMember: (set, member, ttlMs) => {
      const now = Date.now()
      addMember.run(set, member, now + ttlMs)
      return count.get(set, now)
    },
  }
}
