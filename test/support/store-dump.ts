import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { createClient } from 'redis'

/** Everything that a store has under one key. */
export interface DumpedKey {
  readonly key: string
  /** The value, or the members of the set. */
  readonly text: string
  /** Time in ms until it expires; infinite if it does not. */
  readonly ttlMs: number
}

/** Reads everything that is stored: all tables of SQLite or PostgreSQL, or every key of a Redis, also what only a set has. */
export async function dumpStore(url: string): Promise<DumpedKey[]> {
  if (url.startsWith('sqlite:')) return dumpSqlite(url.slice('sqlite:'.length))
  return url.startsWith('postgres:') ? await dumpPostgres(url) : await dumpRedis(url)
}

function dumpSqlite(file: string): DumpedKey[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    return tables.flatMap(({ name }) =>
      database
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => {
          const { key, set_key: set, expires_at: end, ...rest } = row
          const ttlMs = end === Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : Number(end) - Date.now()
          return { key: String(key ?? set ?? ''), text: JSON.stringify(rest), ttlMs }
        }),
    )
  } finally {
    database.close()
  }
}

async function dumpPostgres(url: string): Promise<DumpedKey[]> {
  const client = new Client(url)
  await client.connect()
  try {
    const ttl = 'extract(epoch FROM expires_at)::float8 - extract(epoch FROM clock_timestamp())::float8 AS ttl'
    const { rows } = await client.query(`SELECT key, value, ${ttl} FROM countersign.entries
      UNION ALL SELECT set_key, convert_to(member, 'UTF8'), ${ttl} FROM countersign.members`)
    return rows.map(({ key, value, ttl }) => ({ key, text: value.toString(), ttlMs: ttl * 1000 }))
  } finally {
    await client.end()
  }
}

async function dumpRedis(url: string): Promise<DumpedKey[]> {
  const client = createClient({ url })
  await client.connect()
  try {
    const dumped: DumpedKey[] = []
    for await (const keys of client.scanIterator({ COUNT: 1000 })) {
      for (const key of keys) {
        const type = await client.type(key)
        const ttlMs = await client.pTTL(key)
        const text =
          type === 'zset'
            ? (await client.zRange(key, 0, -1)).join('\n')
            : type === 'string'
              ? ((await client.get(key)) ?? '')
              : ''
        if (type !== 'zset' && type !== 'string' && type !== 'none') throw new Error(`${key} is a ${type}`)
        if (type !== 'none') dumped.push({ key, text, ttlMs: ttlMs === -1 ? Number.POSITIVE_INFINITY : ttlMs })
      }
    }
    return dumped
  } finally {
    client.destroy()
  }
}
