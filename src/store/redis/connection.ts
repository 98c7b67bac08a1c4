import { createClient, ErrorReply } from 'redis'
import { type Address, formatAddress } from '../address.ts'
import { ReconnectingLink, timeLimitMs } from '../reconnecting-link.ts'
import { scripts } from './scripts.ts'
import { readTls, type TlsMaterial } from './tls.ts'
import type { RedisTarget } from './url.ts'

/**
 * Interval between two PINGs on a connection, in milliseconds. A network that breaks does not close connections, and a
 * subscriber that only listens would wait forever.
 */
const pingIntervalMs = 2000

/** Silence after which a connection is closed, in milliseconds, even while it is still being made. */
const silenceLimitMs = 3000

/** Most calls of one connection that wait for an answer: so many may pile up until a server that hangs is noticed. */
const maxCallsInFlight = 20_000

/** A connected client. It never reconnects; a new connection is a new client. */
export class Connection {
  readonly client: RedisClient
  /** Resolves with the reason once the connection is lost. */
  readonly lost: Promise<unknown>
  /** When the last answer came, on the clock of `performance.now()`. */
  #heardAt = performance.now()
  #checkingSilence = false

  constructor(client: RedisClient, lost: Promise<unknown>) {
    this.client = client
    this.lost = lost
    client.on('ping-interval', this.heard)
  }

  close(): void {
    this.client.destroy()
  }

  /** To be called if the server has answered a call, even with an error. */
  readonly heard = (): void => {
    this.#heardAt = performance.now()
  }

  /**
   * To be called when a call has run out of time. A server that is busy answers late, and all calls in order: that call
   * has failed, and the others need their connection. It is closed only if nothing comes on it until the silence limit.
   * The timeout of the socket does not see that, because it counts what is written as well. `answer` is what the call
   * still waits for: an answer that is late is still one, even an error.
   */
  closeIfSilent(answer: Promise<unknown>): void {
    answer.then(this.heard, (cause) => {
      if (cause instanceof ErrorReply) this.heard()
    })
    if (this.#checkingSilence) return
    this.#checkingSilence = true
    const heardAt = this.#heardAt
    const silentSince = Math.max(heardAt, performance.now() - timeLimitMs)
    const check = () => {
      this.#checkingSilence = false
      if (this.#heardAt === heardAt) this.client.destroy()
    }
    // After what has arrived by then is read: the process itself may have had no time.
    setTimeout(() => setImmediate(check), silentSince + silenceLimitMs - performance.now()).unref()
  }
}

/** A Redis client that knows the scripts of the store. */
export type RedisClient = ReturnType<typeof newClient>

/** Connects to a Redis server. Rejects unless it is version 7 or newer, of the target's kind, and takes writes. */
export async function dialMaster(address: Address, target: RedisTarget): Promise<Connection> {
  const connection = await dial(address, target)
  try {
    await checkMaster(connection.client, address, target)
    return connection
  } catch (error) {
    connection.client.destroy()
    throw error
  }
}

/** The first answer of several servers or, if none answers, the failure of the first one. */
export async function firstAnswer<T>(answers: readonly Promise<T>[]): Promise<T> {
  try {
    return await Promise.any(answers)
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error
  }
}

async function dial(address: Address, target: RedisTarget): Promise<Connection> {
  // Read for each connection, so that a renewed certificate is used without a restart.
  const client = newClient(address, target, target.tls && (await readTls(target.tls)))
  const { promise: lost, resolve } = Promise.withResolvers<unknown>()
  // Without a listener, the error of a lost connection would end the process.
  client
    .on('error', (error) => {
      // A server that refuses a PING, as one does that cannot save to disk, has answered, and may serve other calls.
      if (!(error instanceof ErrorReply)) resolve(error)
    })
    .on('end', () => resolve(new Error('the connection was closed')))
  try {
    await client.connect()
    return new Connection(client, lost)
  } catch (error) {
    client.destroy()
    throw error
  }
}

function newClient({ host, port }: Address, target: RedisTarget, tls: TlsMaterial | undefined) {
  const { username, password, database } = target
  const timing = { connectTimeout: timeLimitMs, socketTimeout: silenceLimitMs, reconnectStrategy: false } as const
  return createClient({
    scripts,
    socket: tls === undefined ? { host, port, ...timing } : { host, port, tls: true, ...tls, ...timing },
    // CLIENT LIST shows it.
    name: 'countersign',
    database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    commandsQueueMaxLength: maxCallsInFlight,
    pingInterval: pingIntervalMs,
    maintNotifications: 'disabled',
    // Its own time limit covers only commands that are not sent yet, with a timer for each; `withinTimeLimit` covers
    // all.
    commandOptions: { timeout: 0 },
  })
}

async function checkMaster(client: RedisClient, address: Address, { kind }: RedisTarget): Promise<void> {
  const inCluster = kind === 'cluster'
  const { version, mode, role } = await client.hello()
  const where = `the server at ${formatAddress(address)}`
  if (mode === 'sentinel') throw new Error(`${where} is a sentinel, which stores nothing: name a Redis server`)
  if (mode === 'cluster' && !inCluster) throw new Error(`${where} is part of a cluster: use redis+cluster://`)
  if (mode !== 'cluster' && inCluster) throw new Error(`${where} is not part of a cluster: use redis://`)
  if (Number.parseInt(version, 10) < 7) {
    throw new Error(
      `${where} is Redis ${version}, and sharded publish and subscribe needs Redis 7 or newer: upgrade it`,
    )
  }
  if (role !== 'master' && !inCluster) throw new Error(`${where} is a ${role} and takes no writes: name its master`)
}

/**
 * The servers behind a Redis URL, which may fail and be replaced. Decides where commands and subscriptions go.
 */
export interface Servers {
  /** Resolves once the servers have answered for the first time; rejects if they do not. */
  readonly opened: Promise<unknown>
  /**
   * Runs one step on the server of a key. It is not repeated, because a step whose answer was lost may have happened.
   * The connection that it runs on is noted in `attempt`.
   */
  run<T>(key: string, step: (client: RedisClient) => Promise<T>, attempt: Attempt): Promise<T>
  /** Names the server that is believed to have a key or channel. Throws if none is known. */
  locate(key: string): string
  /** Whether a server that {@link locate} named before is still in use. */
  serves(server: string): boolean
  /** Connects to a server that {@link locate} named. */
  dial(server: string): Promise<Connection>
  /** Learns where a key is now from the error of a failed step. */
  redirect(key: string, cause: unknown): void
  /** Closes all connections; later steps are rejected. */
  close(): void
}

/** One try to run a step. */
export interface Attempt {
  /** The connection that the step was sent on, as soon as there is one. */
  connection?: Connection
}

/** Callbacks for changes of the servers. */
export interface ServersEvents {
  /** The connection for commands to a server is lost: other connections to it may be broken unnoticed. */
  onLost(server: string): void
  /** There is a new connection for commands to a server, which may have been replaced under its name. */
  onUp(server: string): void
  /** Keys may have moved to other servers. */
  onMoved(): void
}

/** A single server. */
export class OneServer implements Servers {
  readonly opened: Promise<unknown>
  readonly #target: RedisTarget
  readonly #link: ReconnectingLink<Connection>

  constructor(target: RedisTarget, events: ServersEvents) {
    this.#target = target
    this.#link = new ReconnectingLink(() => this.dial(), {
      onUp: () => events.onUp(this.locate()),
      onLost: () => events.onLost(this.locate()),
    })
    this.opened = this.#link.connection
  }

  run<T>(_key: string, step: (client: RedisClient) => Promise<T>, attempt: Attempt): Promise<T> {
    const start = (connection: Connection): Promise<T> => {
      attempt.connection = connection
      return step(connection.client)
    }
    const { up, connection } = this.#link
    return up === undefined ? connection.then(start) : start(up)
  }

  locate(): string {
    return 'master'
  }

  serves(): boolean {
    return true
  }

  dial(): Promise<Connection> {
    return dialMaster(this.#target.addresses[0], this.#target)
  }

  redirect(): void {
    // There is only one place.
  }

  close(): void {
    this.#link.close()
  }
}
