import { formatAddress, parseAddress, parseCredentials } from '../address.ts'

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
  /**
   * Files in PEM format for TLS: certificates of the authorities that the server is checked against (default: those
   * that Node.js knows), a client certificate, and its private key without a passphrase. Undefined means without TLS.
   */
  readonly tls: Readonly<Record<'rootCert' | 'cert' | 'key', string | undefined>> | undefined
}

/** Names of parameters as libpq has them; `connections` is ours. */
const parameterNames = ['connections', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const

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
  if (match === null) throw malformed('is malformed')
  try {
    const [, credentials = '', hostAndPort = '', database = '', query = ''] = match
    const { user, password } = parseCredentials(credentials)
    if (hostAndPort.includes(',')) throw malformed('has several hosts, and needs exactly one')
    const address = parseAddress(hostAndPort, postgresPort)
    if (address === undefined) throw malformed('has a malformed host or port')
    if (user === undefined) throw malformed('has no user')
    if (database === '') throw malformed('has no database')
    const host = decodeURIComponent(address.host)
    const parameters = readParameters(query)
    return {
      host,
      port: address.port,
      database: decodeURIComponent(database),
      user,
      // An empty one, as libpq has it, is none.
      password: password || undefined,
      connections: readConnections(parameters.connections),
      tls: readTlsParameters(parameters, isLocal(host)),
    }
  } catch (error) {
    if (error instanceof URIError) throw malformed('has a malformed percent-encoding')
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
  const where = host.startsWith('/') ? `${host}, port ${port}` : formatAddress({ host, port })
  return `PostgreSQL at ${where}, database ${database}${tls === undefined ? '' : ' over TLS'}`
}

type Parameters = Partial<Record<(typeof parameterNames)[number], string>>

function readParameters(query: string): Parameters {
  const read: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (!parameterNames.some((known) => known === name)) {
      throw malformed(`has the parameter ${JSON.stringify(name)}, and takes ${parameterNames.join(', ')} only`)
    }
    if (read[name] !== undefined) throw malformed(`has ${name} twice`)
    read[name] = value
  }
  return read
}

function readConnections(text: string | undefined): number {
  if (text === undefined) return defaultConnections
  const connections = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (connections < 1 || connections > maxConnections) {
    throw malformed(`has connections other than a whole number from 1 to ${maxConnections}`)
  }
  return connections
}

/** TLS as `sslmode` says, or as the host does without it: a server elsewhere is always verified. */
function readTlsParameters(parameters: Parameters, local: boolean): PostgresTarget['tls'] {
  const { sslmode = local ? 'disable' : 'verify-full', sslrootcert, sslcert, sslkey } = parameters
  if (sslmode !== 'verify-full' && sslmode !== 'disable') {
    throw malformed('has an sslmode other than verify-full and disable')
  }
  if (sslmode === 'disable') {
    if (!local) throw malformed('has sslmode=disable with a host that is neither loopback nor a socket')
    if (sslrootcert ?? sslcert ?? sslkey) throw malformed('has files for TLS, which need sslmode=verify-full')
    return undefined
  }
  if ((sslcert === undefined) !== (sslkey === undefined)) throw malformed('needs sslcert and sslkey together')
  return { rootCert: sslrootcert, cert: sslcert, key: sslkey }
}

function isLocal(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function malformed(problem: string): TypeError {
  return new TypeError(`The PostgreSQL URL ${problem}: write it like postgres://user:password@host:5432/database`)
}
