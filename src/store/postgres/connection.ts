import type { ConnectionOptions } from 'node:tls'
import type { Client, ClientBase, Pool, PoolClient, QueryResult } from 'pg'
import { TimeLimitError, timeLimitMs, withinTimeLimit } from '../reconnecting-link.ts'
import { readTls } from './tls.ts'
import { type PostgresTarget, parsePostgresUrl } from './url.ts'

/** A prepared statement. The name is the server's for it; each connection prepares it once. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** Time in milliseconds after which the server itself ends a statement or a wait for a lock: below that of calls. */
const statementTimeoutMs = 2000
const lockTimeoutMs = 1500

/** Time in milliseconds after which a connection that is not used is closed. */
const idleMs = 60_000

/** What the server calls the one connection of a process that listens. */
export const watchingName = 'countersign watches'

/** Oldest server, as `server_version_num` has it: `date_bin` came with it. */
const oldestVersion = 140_000

/** The server cannot be used as it is. The message is for operators. */
export class UnfitServerError extends Error {
  override readonly name = 'UnfitServerError'
}

/** How to make a connection. */
export interface Access {
  /** The package pg. */
  readonly library: typeof import('pg')
  readonly target: PostgresTarget
  /** Options of TLS for new connections; false is without TLS. */
  ssl: ConnectionOptions | false
}

/**
 * Resolves with how to reach the server of a URL.
 *
 * @throws TypeError if the URL is malformed, a file that it names is missing or not what it should be, or the package
 * pg is not installed.
 */
export async function accessOf(url: string): Promise<Access> {
  const target = parsePostgresUrl(url)
  const access: Access = { library: await loadLibrary(), target, ssl: false }
  await readTls(access)
  return access
}

/** Imports pg where its absence is an error to catch: bundlers refuse any other import of it. */
async function loadLibrary(): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (cause) {
    throw new TypeError('A store in PostgreSQL needs the package pg: npm install pg@8', { cause })
  }
}

interface CallsEvents {
  /** A new connection has reached the server of this identity. */
  onServer?(server: string): void
  /** Calls wait for established connections, because the server has no room for another one. */
  onFull?(): void
}

/** The connections for calls. */
export class Calls {
  readonly #access: Access
  readonly #events: CallsEvents
  #pool: Pool
  /** Number of established connections of the pool. */
  #made = 0

  constructor(access: Access, events: CallsEvents = {}) {
    this.#access = access
    this.#events = events
    this.#pool = this.#newPool()
  }

  /** Runs a statement, as {@link on}, with values that are asked for when it is sent. It is not repeated. */
  run<Row extends object>(
    { name, text }: Statement,
    values: () => unknown[] = () => [],
    isOver?: () => boolean,
  ): Promise<QueryResult<Row>> {
    return this.on((client) => client.query<Row>({ name, text, values: values() }), isOver)
  }

  /** Closes all connections: the server behind them has changed. Calls that come then connect anew. */
  renew(): void {
    const old = this.#pool
    if (old.ending) return
    this.#pool = this.#newPool()
    void old.end().catch(() => undefined)
  }

  /** Gives up a connection, unless it is the only one: the server has no room for one that is needed more. */
  giveUpOne(): void {
    if (this.#made < 2) return
    this.#pool.options.max = this.#made - 1
    this.#pool.connect((_error, client) => client?.release(true))
  }

  /** Lets calls have as many connections as they may again, should the server have had no room for them. */
  tryMore(): void {
    this.#pool.options.max = this.#access.target.connections
  }

  close(): void {
    void this.#pool.end().catch(() => undefined)
  }

  /** Does something on one connection, within the time of a call, unless `isOver` once there is a connection. */
  async on<T>(work: (client: PoolClient) => Promise<T>, isOver = () => false): Promise<T> {
    const attempt: { client?: PoolClient; isOver: boolean } = { isOver: false }
    const answer = this.#connect(attempt).then((client) => {
      if (attempt.isOver || isOver()) {
        client.release()
        throw new TimeLimitError()
      }
      attempt.client = client
      return work(client)
    })
    try {
      const result = await withinTimeLimit(answer)
      attempt.client?.release()
      return result
    } catch (error) {
      // Unless the server has answered, the pool closes the connection: a late answer is dropped.
      attempt.client?.release(!isAnswer(error))
      throw error
    } finally {
      attempt.isOver = true
    }
  }

  /** Waits for an established connection if the server has no room for another one. */
  async #connect(attempt: { readonly isOver: boolean }): Promise<PoolClient> {
    const pool = this.#pool
    return await pool.connect().catch((error) => {
      const canWait = pool === this.#pool && this.#made > 0 && !attempt.isOver
      if (sqlStateOf(error) !== '53300' || !canWait) throw error
      pool.options.max = this.#made
      this.#events.onFull?.()
      return this.#connect(attempt)
    })
  }

  #newPool(): Pool {
    const { library, target } = this.#access
    const pool = new library.Pool({
      Client: clientClass(this.#access),
      max: target.connections,
      connectionTimeoutMillis: timeLimitMs,
      idleTimeoutMillis: idleMs,
      onConnect: async (client) => {
        const { server } = await prepareSession(client)
        this.#events.onServer?.(server)
      },
    })
    // A connection that is lost while it is not used; the next call makes another one.
    pool.on('error', () => undefined)
    // One that is lost during a call: the call fails, and an error event without a listener would end the process.
    this.#made = 0
    pool.on('connect', (client) => {
      client.on('error', () => undefined)
      if (pool === this.#pool) pool.options.max = Math.max(pool.options.max, ++this.#made)
    })
    pool.on('remove', () => {
      if (pool === this.#pool) this.#made--
    })
    return pool
  }
}

/**
 * Errors of the server after which a connection is closed: it ends by itself (57P), the server has become a standby
 * (25006), or what was prepared there is gone (26000) or is of others (42P05), as behind a pooler.
 */
const endOfConnection = /^(?:57P|25006|26000|42P05)/

/** Whether the server has answered, even if with an error: the connection can go on. */
export function isAnswer(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code !== undefined && !endOfConnection.test(code)
}

/** The code of an error that the server answered with; five characters. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error && 'severity' in error ? error.code : undefined
  return typeof code === 'string' && code.length === 5 ? code : undefined
}

/**
 * Clients of a server, called by a name there, with the files of TLS as they are when they connect. All that can be
 * given is, so that variables such as PGHOST do not count.
 */
export function clientClass(access: Access, name = 'countersign'): new () => Client {
  const { host, port, database, user, password } = access.target
  return class extends access.library.Client {
    declare readonly connectionParameters: { options?: string | undefined; replication?: string | undefined }

    constructor() {
      super({
        host,
        port,
        database,
        user,
        // A function also where there is none: otherwise PGPASSWORD and .pgpass would count.
        password: () => password ?? '',
        // A copy, because pg hides the key in what it is given.
        ssl: access.ssl && { ...access.ssl },
        client_encoding: 'UTF8',
        application_name: name,
        sslnegotiation: 'postgres',
        keepAlive: true,
        connectionTimeoutMillis: timeLimitMs,
      })
      // Those of PGOPTIONS and PGREPLICATION, which count where the config has an empty value.
      this.connectionParameters.options = undefined
      this.connectionParameters.replication = undefined
    }
  }
}

/**
 * What each connection is set to, independently of the defaults of the server, database and user. Until then, names
 * without a schema could be those of others' functions.
 */
const sessionSettings = `SELECT pg_catalog.pg_is_in_recovery() AS standby,
    extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text AS server,
    pg_catalog.current_setting('server_version_num')::integer AS version,
    pg_catalog.pg_backend_pid() AS process,
    pg_catalog.set_config('search_path', 'pg_catalog', false),
    pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
    pg_catalog.set_config('statement_timeout', '${statementTimeoutMs}', false),
    pg_catalog.set_config('lock_timeout', '${lockTimeoutMs}', false),
    pg_catalog.set_config('synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit')
      WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

/** Resolves with the identity of the server, when it started to the microsecond, and the number of its process. */
export async function prepareSession(client: ClientBase): Promise<{ server: string; process: number }> {
  const { rows } = await client.query(sessionSettings)
  const [{ standby, version, server, process }] = rows
  if (version < oldestVersion) {
    throw new UnfitServerError(`the server is PostgreSQL ${Math.floor(version / 10_000)}, and 14 or later is needed`)
  }
  if (standby) throw new UnfitServerError('the server is a standby and takes no writes')
  return { server, process }
}
