import type { RedisTls } from './tls.ts'

/** The host and port of a server. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** What a Redis URL says: how to reach the servers, and as whom. */
export interface RedisTarget {
  readonly kind: 'single' | 'cluster' | 'sentinel'
  /** The single server, some nodes of the cluster, or the sentinels. */
  readonly addresses: readonly [Address, ...Address[]]
  /** Undefined means without TLS. */
  readonly tls: RedisTls | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  /** Number of the database; 0 in a cluster, which has no other. */
  readonly database: number
  /** The name by which the sentinels know the master. Empty for the other kinds. */
  readonly masterName: string
  /** Credentials of the sentinels themselves, which can differ from those of the servers. */
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

/** Default port of a Redis server. */
const redisPort = 6379
/** Default port of a sentinel. */
const sentinelPort = 26_379

/** All that the query of a URL with sentinels can have. Other URLs have none. */
const sentinelParameters = ['sentinelUsername', 'sentinelPassword']

/** The form of the URL of each kind, for error messages. */
const forms = {
  single: 'redis://user:password@host:6379/0',
  cluster: 'redis+cluster://user:password@host1:6379,host2:6379',
  sentinel: 'redis+sentinel://user:password@host1:26379,host2:26379/name/0?sentinelPassword=...',
}

/**
 * Reads a Redis URL: `redis`, `redis+cluster` or `redis+sentinel`, or the same with `rediss` for TLS; then credentials
 * (percent-encoded), hosts, and for a single server `/database`, for sentinels `/name` or `/name/database`. What would
 * have no effect, such as the `?db=2` of other clients, is refused.
 *
 * @param tls what TLS is to use; only with `rediss`.
 * @throws TypeError if it is malformed. The message does not repeat the URL, because it can contain a password.
 */
export function parseRedisUrl(url: string, tls: RedisTls = {}): RedisTarget {
  const match = /^(rediss?)(?:\+(cluster|sentinel))?:\/\/(?:([^/?#]*)@)?([^/?#@]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(
    url,
  )
  const [, scheme, suffix = 'single', credentials, hosts = '', path = '', query = ''] = match ?? []
  const kind = suffix as RedisTarget['kind']
  const fail = (problem: string) => new TypeError(`The Redis URL ${problem}: write it like ${forms[kind]}`)
  if (scheme === undefined) {
    throw new TypeError(`The Redis URL is malformed: write it like ${Object.values(forms).join(' or ')}`)
  }

  const [first, ...others] = hosts.split(',').map((host) => {
    const address = parseAddress(host, kind === 'sentinel' ? sentinelPort : redisPort)
    if (address === undefined) throw fail('has a malformed host or port')
    return address
  })
  if (first === undefined || (kind === 'single' && others.length > 0)) throw fail('needs exactly one host')

  const [masterName = '', ...rest] = kind === 'sentinel' ? path.split('/') : ['', path]
  const databasePath = rest.join('/')
  if (kind === 'sentinel' && masterName === '') throw fail('does not name the master')
  if (!/^\d{0,4}$/.test(databasePath)) throw fail('has a malformed database number')
  if (kind === 'cluster' && Number(databasePath) !== 0) throw fail('names a database, of which a cluster has only one')

  const parameters = new URLSearchParams(query)
  const names = [...parameters.keys()]
  const known = kind === 'sentinel' ? sentinelParameters : []
  if (!names.every((name) => known.includes(name)) || new Set(names).size < names.length) {
    const problem =
      known.length === 0 ? 'has a query' : `has more in its query than ${known.join(' and ')}, each of them once`
    throw fail(`${problem}, which has no effect (the database is in the path, and TLS is rediss)`)
  }
  // The client would send neither.
  const hasUserAlone = parameters.get('sentinelUsername') && !parameters.get('sentinelPassword')
  if (hasUserAlone || /^[^:]+:?$/.test(credentials ?? '')) throw fail('has a user without a password')

  try {
    const [username, password] = parseCredentials(credentials)
    return {
      kind,
      addresses: [first, ...others],
      tls: scheme === 'rediss' ? tls : undefined,
      username,
      password,
      database: Number(databasePath),
      masterName: decodeURIComponent(masterName),
      sentinelUsername: parameters.get('sentinelUsername') ?? undefined,
      sentinelPassword: parameters.get('sentinelPassword') ?? undefined,
    }
  } catch {
    throw fail('has a malformed percent-encoding')
  }
}

/** Formats an address as `host:port`, an IPv6 host in brackets. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Describes for people where the target is, without credentials. */
export function describeTarget({ kind, addresses, tls, database, masterName }: RedisTarget): string {
  const where = addresses.map(formatAddress).join(', ')
  const how = `${tls === undefined ? '' : ' over TLS'}${database > 0 ? `, database ${database}` : ''}`
  if (kind === 'cluster') return `Redis cluster at ${where}${how}`
  if (kind === 'sentinel') return `Redis master ${masterName} of the sentinels at ${where}${how}`
  return `Redis at ${where}${how}`
}

function parseAddress(text: string, defaultPort: number): Address | undefined {
  const [, bracketed, name, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? name
  const port = digits === undefined ? defaultPort : Number(digits)
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}

function parseCredentials(text: string | undefined): [string | undefined, string | undefined] {
  if (text === undefined || text === '') return [undefined, undefined]
  const [, username = '', password] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? []
  return [decodeURIComponent(username) || undefined, password === undefined ? undefined : decodeURIComponent(password)]
}
