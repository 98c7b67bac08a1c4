import type { Client, ClientBase, ClientConfig, Pool, PoolClient, QueryResult } from 'pg'
import { callTime, type Linked, TimeLimitError, timeLimitMs, withinTimeLimit } from '../reconnecting-link.ts'
import { TlsFiles } from './tls.ts'
import { type PostgresTarget, parsePostgresUrl } from './url.ts'

/** A prepared statement. The name is the server's for it; each connection prepares it once. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/**
 * Time in milliseconds after which the server itself ends a statement or a wait for a lock: before the time limit of
 * calls, so that a caller is answered by then.
 */
const statementTimeoutMs = 2000
const lockTimeoutMs = 1500

/** Time in milliseconds after which a connection that is not used is closed. */
const idleMs = 60_000

/** Time in milliseconds for which no more connections are tried after the server had no room for one. */
const fullMs = 60_000

/** Interval in milliseconds in which a connection that only listens is asked whether it is still there. */
const askIntervalMs = 5000

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
  /** Undefined means without TLS. */
  readonly tls: TlsFiles | undefined
}

/**
 * Resolves with how to reach the server of a URL.
 *
 * @throws TypeError if the URL is malformed, a file that it names is missing or not what it should be, or the package pg
 * is not installed.
 */
export async function accessOf(url: string): Promise<Access> {
  const target = parsePostgresUrl(url)
  const tls = target.tls && new TlsFiles(target.tls)
  await tls?.read()
  return { library: await loadLibrary(), target, tls }
}

/** Imports pg where its absence is an error to catch: bundlers refuse any other import of it. */
async function loadLibrary(): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (cause) {
    throw new TypeError('A store in PostgreSQL needs the package pg: npm install pg@8', { cause })
  }
}

/** The connections for calls. */
export class Calls {
  readonly #access: Access
  readonly #onServer: (server: string) => void
  readonly #onFull: () => void
  #pool: Pool
  /** Number of established connections of the pool. */
  #made = 0
  #fullTimer: NodeJS.Timeout | undefined
  #closed = false

  /**
   * `onServer` is called with the identity of the server that a new connection has reached, `onFull` when calls wait
   * for established connections, because the server has no room for another one.
   */
  constructor(access: Access, onServer = (_server: string): void => {}, onFull = (): void => {}) {
    this.#access = access
    this.#onServer = onServer
    this.#onFull = onFull
    this.#pool = this.#newPool()
  }

  /**
   * Runs a statement, with values that are asked for when it is sent. It is not repeated; when its time is over, or
   * `isOver` is aborted, its connection is closed.
   */
  run<Row extends object>(
    { name, text }: Statement,
    values: () => unknown[] = () => [],
    isOver?: AbortSignal,
  ): Promise<QueryResult<Row>> {
    return this.on((client) => client.query<Row>({ name, text, values: values() }), isOver)
  }

  /** Closes all connections: the server behind them has changed. Calls that come then connect anew. */
  renew(): void {
    if (this.#closed) return
    const old = this.#pool
    this.#pool = this.#newPool()
    void old.end().catch(() => undefined)
  }

  /** Gives up a connection, unless it is the only one: the server has no room for one that is needed more. */
  giveUpOne(): void {
    if (this.#made < 2) return
    this.#bound(this.#pool, this.#made - 1)
    this.#pool.connect((_error, client) => client?.release(true))
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    void this.#pool.end().catch(() => undefined)
  }

  /** Does something on one connection, within the time of a call. */
  on<T>(work: (client: PoolClient) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    let held: PoolClient | undefined
    let isOver = false
    const end = (failure?: Error): void => {
      isOver = true
      // With a failure the pool closes the connection: a late answer is dropped.
      held?.release(failure)
      held = undefined
    }
    const giveUp = (): void => {
      const late = new TimeLimitError(`no answer within ${timeLimitMs} ms`)
      end(late)
      reject(late)
    }
    const limited = callTime.enter(giveUp)
    signal?.addEventListener('abort', giveUp)
    const begin = async (): Promise<T> => {
      const client = await this.#connect(() => isOver)
      if (isOver) {
        client.release()
        throw new TimeLimitError(`no answer within ${timeLimitMs} ms`)
      }
      held = client
      try {
        const result = await work(client)
        end()
        return result
      } catch (error) {
        end(isAnswer(error) ? undefined : new Error('the connection failed'))
        throw error
      }
    }
    begin()
      .finally(() => {
        callTime.leave(limited)
        signal?.removeEventListener('abort', giveUp)
      })
      .then(resolve, reject)
    return promise
  }

  /** Waits for an established connection if the server has no room for another one. */
  async #connect(isOver: () => boolean): Promise<PoolClient> {
    const pool = this.#pool
    return await pool.connect().catch((error) => {
      const canWait = pool === this.#pool && this.#made > 0 && !isOver()
      if (sqlStateOf(error) !== '53300' || !canWait) throw error
      this.#bound(pool, this.#made)
      this.#onFull()
      return this.#connect(isOver)
    })
  }

  /** Lets a pool have no more connections than these for a while. */
  #bound(pool: Pool, most: number): void {
    pool.options.max = most
    clearTimeout(this.#fullTimer)
    this.#fullTimer = setTimeout(() => {
      pool.options.max = this.#access.target.connections
    }, fullMs).unref()
  }

  #newPool(): Pool {
    const { library, target } = this.#access
    const pool = new library.Pool({
      ...basicConfig(target),
      Client: clientClass(this.#access),
      max: target.connections,
      idleTimeoutMillis: idleMs,
      onConnect: async (client) => this.#onServer((await prepareSession(client)).server),
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
function isAnswer(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code !== undefined && !endOfConnection.test(code)
}

/** The code of an error that the server answered with; five characters. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error && 'severity' in error ? error.code : undefined
  return typeof code === 'string' && code.length === 5 ? code : undefined
}

/** A connection of its own that listens to a channel, but not to itself. */
export class Listener implements Linked {
  readonly lost: Promise<unknown>
  /** Identity of the server. */
  server = ''
  /** Number of its process at the server. */
  #process = 0
  readonly #client: Client
  readonly #timer: NodeJS.Timeout
  readonly #lose: (reason: unknown) => void
  /** Resolves once no statement runs: pg takes one at a time. */
  #idle: Promise<unknown> = Promise.resolve()

  private constructor(client: Client) {
    this.#client = client
    const { promise, resolve } = Promise.withResolvers<unknown>()
    this.lost = promise
    this.#lose = resolve
    client.on('error', resolve)
    client.on('end', () => resolve(new Error('the connection was closed')))
    // A network that breaks closes no connection, and this one sends nothing of its own.
    this.#timer = setInterval(() => {
      this.run('SELECT 1', []).catch(() => undefined)
    }, askIntervalMs)
    this.#timer.unref()
    void promise.then(() => clearInterval(this.#timer))
  }

  /** Connects and listens. `onPayload` is called for each notification. */
  static async dial(access: Access, channel: string, onPayload: (payload: string) => void): Promise<Listener> {
    const config = { ...basicConfig(access.target), application_name: watchingName }
    const client = new (clientClass(access))(config)
    const listener = new Listener(client)
    client.on('notification', ({ processId, payload = '' }) => {
      if (processId !== listener.#process) onPayload(payload)
    })
    try {
      await client.connect()
      const session = await withinTimeLimit(prepareSession(client))
      listener.server = session.server
      listener.#process = session.process
      await withinTimeLimit(client.query(`LISTEN ${channel}`))
      return listener
    } catch (error) {
      listener.close()
      throw error
    }
  }

  /**
   * Runs a statement, without preparing it: behind a pooler in transaction mode, one that is prepared elsewhere would end
   * the connection before that mode is noticed. If no answer comes in time, the connection is closed.
   */
  async run(text: string, values: readonly unknown[]): Promise<unknown> {
    const answer = this.#idle.then(() => this.#client.query(text, [...values]))
    this.#idle = answer.catch(() => undefined)
    try {
      return await withinTimeLimit(answer)
    } catch (error) {
      if (!isAnswer(error)) this.close()
      throw error
    }
  }

  close(): void {
    clearInterval(this.#timer)
    // A server that does not answer does not end the connection either.
    this.#lose(new Error('the connection was closed'))
    // With a query in flight this closes the socket at once.
    void this.#client.end().catch(() => undefined)
  }
}

/** What both kinds of connections have in common. All that can be given is, so that variables such as PGHOST do not count. */
function basicConfig({ host, port, database, user, password }: PostgresTarget): ClientConfig {
  return {
    host,
    port,
    database,
    user,
    // A function also where there is none: otherwise PGPASSWORD and .pgpass would count.
    password: () => password ?? '',
    client_encoding: 'UTF8',
    application_name: 'countersign',
    sslnegotiation: 'postgres',
    keepAlive: true,
    connectionTimeoutMillis: timeLimitMs,
  }
}

/** Clients with TLS take the files as they are when they connect. */
function clientClass({ library, tls }: Access): new (config?: ClientConfig) => Client {
  return class extends library.Client {
    declare readonly connectionParameters: { options?: string | undefined; replication?: string | undefined }

    constructor(config?: ClientConfig) {
      // The pool keeps the password where a copy leaves it behind.
      super({ ...config, password: config?.password, ssl: tls?.material ?? false })
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
    pg_catalog.set_config('synchronous_commit',
      CASE pg_catalog.current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

/** A session of a connection. */
interface Session {
  /** Identity of its server: when it started, to the microsecond. */
  readonly server: string
  /** Number of its process at the server. */
  readonly process: number
}

async function prepareSession(client: ClientBase): Promise<Session> {
  const { rows } = await client.query<Session & { standby: boolean; version: number }>(sessionSettings)
  const [{ standby, version, server, process } = { standby: true, version: 0, server: '', process: 0 }] = rows
  if (version < oldestVersion) {
    throw new UnfitServerError(`the server is PostgreSQL ${Math.floor(version / 10_000)}, and 14 or later is needed`)
  }
  if (standby) throw new UnfitServerError('the server is a standby and takes no writes')
  return { server, process }
}
