import { resolve } from 'node:path'
import { requireSuitableNode } from '../base/node-version.js'
import type { StoreOptions } from './implementation.ts'
import { defaultKeyPrefix, keyPrefixForm, keyPrefixPattern, withKeyPrefix } from './map-store.ts'
import { isTlsGiven } from './redis/tls.ts'
import type { Store } from './store.ts'

export type { RedisTls } from './redis/tls.ts'

/** The forms of a store's URL, for error messages. */
const forms =
  'sqlite:./file.db, sqlite::memory:, redis://host:6379/0, rediss://host, redis+cluster://host1,host2 ' +
  'or postgres://user:password@host/database'

/**
 * Opens the store that a URL names.
 *
 * | URL | store |
 * |---|---|
 * | `sqlite:./file.db`, `sqlite:/folder/file.db` | a file, created if it is missing |
 * | `sqlite::memory:` | the memory of this process, lost when it ends |
 * | `redis://user:password@host:6379/0` | one Redis server, 7 or newer |
 * | `redis+cluster://user:password@host1:6379,host2` | a Redis cluster; any of its nodes leads to the others |
 * | `postgres://user:password@host:5432/database` | one PostgreSQL server, 14 or newer, with the package `pg` |
 *
 * With `rediss` in place of `redis` the connections use TLS.
 *
 * @throws TypeError if Node.js is too old, the URL has none of these forms or a part without effect, the key prefix is
 * malformed, `redisTls` is given without `rediss`, or a file that it names cannot be used. The message does not repeat
 * the URL, because it can contain a password.
 * @throws StoreOpenError if the store cannot be opened. The message is one line that says what to change.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  requireSuitableNode()
  const { log, keyPrefix = defaultKeyPrefix, redisTls } = options
  if (!keyPrefixPattern.test(keyPrefix)) throw new TypeError(`The key prefix must be ${keyPrefixForm}`)
  const [, scheme] = /^(sqlite|postgres(?:ql)?|rediss?(?:\+\w+)?):/.exec(url) ?? []
  if (redisTls !== undefined && isTlsGiven(redisTls) && !scheme?.startsWith('rediss')) {
    throw new TypeError(
      'redis.tlsCa, tlsCert, tlsKey and tlsServerName (COUNTERSIGN_REDIS_TLS_*) need a store whose address ' +
        'begins with rediss, for TLS',
    )
  }
  const location = sqliteLocation(url)
  if (location !== undefined) {
    // Loaded on demand: versions of Node.js without node:sqlite cannot link a module that imports it, and are refused
    // above.
    const { openSqliteStore } = await import('./sqlite.ts')
    return withKeyPrefix(await openSqliteStore(location, { log }), keyPrefix)
  }
  if (scheme === undefined) throw malformed()
  // Loaded on demand, because the embedded default needs neither client.
  if (scheme.startsWith('postgres')) {
    const { openPostgresStore } = await import('./postgres/store.ts')
    return openPostgresStore(url, options)
  }
  const { openRedisStore } = await import('./redis/store.ts')
  return openRedisStore(url, options)
}

/**
 * The path in an SQLite store's URL, or `:memory:`; `undefined` for any other store.
 *
 * @throws TypeError if the URL names no file, or has a query.
 */
export function sqliteLocation(url: string): string | undefined {
  const [, location] = /^sqlite:(.*)$/s.exec(url) ?? []
  if (location === undefined) return undefined
  // By the rules of URLs, file.db in sqlite://file.db is a host; as a path it would be in the root folder. Neither is
  // meant.
  if (location === '' || /^\/\/(?!\/)/.test(location)) throw malformed()
  // It would be a part of the file's name.
  if (location.includes('?')) {
    throw new TypeError('The URL of an SQLite store has a query, which has no effect: write it like sqlite:./file.db')
  }
  return location
}

/** The absolute path of the file of an SQLite store; `undefined` for any other store. */
export function sqliteFile(store: string | object): string | undefined {
  const location = typeof store === 'string' ? sqliteLocation(store) : undefined
  return location === undefined || location === ':memory:' ? undefined : resolve(location)
}

function malformed(): TypeError {
  return new TypeError(`The store must be one of ${forms}`)
}
