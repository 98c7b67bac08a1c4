import { type Address, formatAddress, parseAddress, parseCredentials } from '../address.ts'
import type { RedisTls } from './tls.ts'

/** What a Redis URL says: how to reach the servers, and as whom. */
export interface RedisTarget {
  readonly kind: 'single' | 'cluster'
  /** The single server, or some nodes of the cluster. */
  readonly addresses: readonly [Address, ...Address[]]
  /** Undefined means without TLS. */
  readonly tls: RedisTls | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  /** Number of the database; 0 in a cluster, which has no other. */
  readonly database: number
}

/** Default port of a Redis server. */
const redisPort = 6379

/** The form of the URL of each kind, for error messages. */
const forms = {
  single: 'redis://user:password@host:6379/0',
  cluster: 'redis+cluster://user:password@host1:6379,host2:6379',
}

/**
 * Reads a Redis URL: `redis` or `redis+cluster`, or the same with `rediss` for TLS; then credentials (percent-encoded),
 * hosts, and for a single server `/database`. What would have no effect, such as the `?db=2` of other clients, is
 * refused.
 *
 * @param tls what TLS is to use; only with `rediss`.
 * @throws TypeError if it is malformed, or names sentinels. The message does not repeat the URL, because it can contain
 * a password.
 */
export function parseRedisUrl(url: string, tls: RedisTls = {}): RedisTarget {
  if (/^rediss?\+sentinel:/.test(url)) {
    throw new TypeError(
      'Redis Sentinel is not supported, because its failovers lose acknowledged writes: use postgres:// with a ' +
        'synchronous standby, redis+cluster://, or redis:// with an address that always leads to the master ' +
        '(docs/scaling.md)',
    )
  }
  const match = /^(rediss?)(\+cluster)?:\/\/(?:([^/?#]*)@)?([^/?#@]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(url)
  const [, scheme, suffix, credentials, hosts = '', path = '', query = ''] = match ?? []
  const kind = suffix === undefined ? 'single' : 'cluster'
  const fail = (problem: string) => new TypeError(`The Redis URL ${problem}: write it like ${forms[kind]}`)
  if (scheme === undefined) {
    throw new TypeError(`The Redis URL is malformed: write it like ${Object.values(forms).join(' or ')}`)
  }

  const [first, ...others] = hosts.split(',').map((host) => {
    const address = parseAddress(host, redisPort)
    if (address === undefined) throw fail('has a malformed host or port')
    return address
  })
  if (first === undefined || (kind === 'single' && others.length > 0)) throw fail('needs exactly one host')

  if (!/^\d{0,4}$/.test(path)) throw fail('has a malformed database number')
  if (kind === 'cluster' && Number(path) !== 0) throw fail('names a database, of which a cluster has only one')
  if (query !== '') throw fail('has a query, which has no effect (the database is in the path, and TLS is rediss)')
  // The client would send neither.
  if (/^[^:]+:?$/.test(credentials ?? '')) throw fail('has a user without a password')

  try {
    const { user: username, password } = parseCredentials(credentials)
    return {
      kind,
      addresses: [first, ...others],
      tls: scheme === 'rediss' ? tls : undefined,
      username,
      password,
      database: Number(path),
    }
  } catch {
    throw fail('has a malformed percent-encoding')
  }
}

/** Describes for people where the target is, without credentials. */
export function describeTarget({ kind, addresses, tls, database }: RedisTarget): string {
  const where = addresses.map(formatAddress).join(', ')
  const how = `${tls === undefined ? '' : ' over TLS'}${database > 0 ? `, database ${database}` : ''}`
  return `Redis ${kind === 'cluster' ? 'cluster ' : ''}at ${where}${how}`
}
