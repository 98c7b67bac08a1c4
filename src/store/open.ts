import { openSqliteStore } from './sqlite.ts'
import type { Store } from './store.ts'

const FORMS =
  'sqlite:./file.db, sqlite::memory:, redis://host:6379/0, rediss://host, redis+cluster://host1,host2 or redis+sentinel://host1,host2/name'

/**
 * Opens the store that a URL names.
 *
 * | URL | store |
 * |---|---|
 * | `sqlite:./file.db`, `sqlite:/folder/file.db` | a file, made if it is missing |
 * | `sqlite::memory:` | memory: gone when the process ends |
 * | `redis://user:password@host:6379/0` | one Redis server, 7 or newer |
 * | `redis+cluster://user:password@host1:6379,host2` | a Redis cluster; any of its nodes will do to find the others |
 * | `redis+sentinel://user:password@host1:26379,host2/name` | the master of that name, whichever it is |
 *
 * With `rediss` in place of `redis` the connections use TLS.
 *
 * @throws TypeError when the URL has none of these forms; the message does not repeat it, for it can hold a password.
 * @throws StoreOpenError when the store cannot be opened: one line that says what to change.
 */
export async function openStore(url: string): Promise<Store> {
  const [, scheme, rest = ''] = /^(sqlite|rediss?(?:\+\w+)?):(.*)$/s.exec(url) ?? []
  // sqlite://file.db would mean a file in the root folder, which nobody means.
  if (scheme === 'sqlite' && rest !== '' && !/^\/\/(?!\/)/.test(rest)) return openSqliteStore(rest)
  if (scheme === undefined || scheme === 'sqlite') throw new TypeError(`The store must be one of ${FORMS}`)
  // Loaded on demand: the embedded default needs no Redis client.
  const { openRedisStore } = await import('./redis.ts')
  return openRedisStore(url)
}
