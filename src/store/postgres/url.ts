/** What a PostgreSQL URL says: how to reach the server, and as whom. */
export interface PostgresTarget {
  /** A host, or the folder of the server's socket, which begins with a slash. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string | undefined
  /** Most connections of this process for calls. One more is for watches. */
  readonly connections: number
  /** Undefined means without TLS. */
  readonly tls: PostgresTls | undefined
}

/** Files in PEM format that connections with TLS use; they are read anew for each connection. */
export interface PostgresTls {
  /** Certificates of the authorities that the server is checked against. Default: those that Node.js knows. */
  readonly rootCert: string | undefined
  /** Client certificate, for servers that ask for one, and its private key without a passphrase. */
  readonly cert: string | undefined
  readonly key: string | undefined
}

const form = 'postgres://user:password@host:5432/database'

/** Names of parameters as libpq has them; `connections` is ours. */
const parameterNames = ['connections', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const

/** Default port of a PostgreSQL server. */
const postgresPort = 5432
/** Default and most connections of a service for calls, and the default of a command. */
const defaultConnections = 10
const maxConnections = 1000
const commandConnections = 2

/**
 * Reads a PostgreSQL URL: credentials, host or percent-encoded socket folder, database and parameters. What has no
 * effect here is refused.
 *
 * @throws TypeError if it is malformed. The message does not repeat the URL, because it can contain a password.
 */
export function parsePostgresUrl(url: string): PostgresTarget {
  const match = /^postgres(?:ql)?:\/\/(?:([^/?#@]*)@)?([^/?#@]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/.exec(url)
  if (match === null) throw new TypeError(`The PostgreSQL URL is malformed: write it like ${form}`)
  const fail = (problem: string): TypeError => new TypeError(`The PostgreSQL URL ${problem}: write it like ${form}`)
  try {
    const [, credentials = '', hostAndPort = '', database = '', query = ''] = match
    const [, user = '', password] = /^([^:]*)(?::(.*))?$/s.exec(credentials) ?? []
    const { host, port } = readHost(hostAndPort, fail)
    if (user === '') throw fail('has no user')
    if (database === '') throw fail('has no database')
    const parameters = readParameters(query, fail)
    return {
      host,
      port,
      database: decodeURIComponent(database),
      user: decodeURIComponent(user),
      // An empty one, as libpq has it, is none.
      password: password ? decodeURIComponent(password) : undefined,
      connections: readConnections(parameters.connections, fail),
      tls: readTlsParameters(parameters, isLocal(host), fail),
    }
  } catch (error) {
    if (error instanceof URIError) throw fail('has a malformed percent-encoding')
    throw error
  }
}

/** The URL of a store for a command: in PostgreSQL with few connections, unless it says how many. */
export function withFewConnections(url: string): string {
  if (!/^postgres(?:ql)?:/.test(url) || /[?&]connections=/.test(url)) return url
  return `${url}${url.includes('?') ? '&' : '?'}connections=${commandConnections}`
}

/** Describes for people where the target is, without credentials. */
export function describeTarget({ host, port, database, tls }: PostgresTarget): string {
  const where = host.startsWith('/') ? `${host}, port ${port}` : `${host.includes(':') ? `[${host}]` : host}:${port}`
  return `PostgreSQL at ${where}, database ${database}${tls === undefined ? '' : ' over TLS'}`
}

type Fail = (problem: string) => TypeError
type Parameters = Partial<Record<(typeof parameterNames)[number], string>>

function readHost(text: string, fail: Fail): { host: string; port: number } {
  if (text.includes(',')) throw fail('has several hosts, and needs exactly one')
  const [, bracketed, name, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const port = digits === undefined ? postgresPort : Number(digits)
  const host = bracketed ?? (name === undefined ? undefined : decodeURIComponent(name))
  if (host === undefined || port < 1 || port > 65_535) throw fail('has a malformed host or port')
  return { host, port }
}

function readParameters(query: string, fail: Fail): Parameters {
  const read: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (!parameterNames.some((known) => known === name)) {
      throw fail(`has the parameter ${JSON.stringify(name)}, and takes ${parameterNames.join(', ')} only`)
    }
    if (read[name] !== undefined) throw fail(`has ${name} twice`)
    read[name] = value
  }
  return read
}

function readConnections(text: string | undefined, fail: Fail): number {
  if (text === undefined) return defaultConnections
  const connections = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (connections < 1 || connections > maxConnections) {
    throw fail(`has connections other than a whole number from 1 to ${maxConnections}`)
  }
  return connections
}

/** TLS as `sslmode` says, or as the host does without it: a server elsewhere is always verified. */
function readTlsParameters(parameters: Parameters, local: boolean, fail: Fail): PostgresTls | undefined {
  const { sslmode = local ? 'disable' : 'verify-full', sslrootcert, sslcert, sslkey } = parameters
  if (sslmode !== 'verify-full' && sslmode !== 'disable') {
    throw fail('has an sslmode other than verify-full and disable')
  }
  if (sslmode === 'disable') {
    if (!local) throw fail('has sslmode=disable with a host that is neither loopback nor a socket')
    if (sslrootcert ?? sslcert ?? sslkey) throw fail('has files for TLS, which need sslmode=verify-full')
    return undefined
  }
  if ((sslcert === undefined) !== (sslkey === undefined)) throw fail('needs sslcert and sslkey together')
  return { rootCert: sslrootcert, cert: sslcert, key: sslkey }
}

function isLocal(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
