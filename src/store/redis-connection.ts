import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from 'redis'
import { scripts } from './redis-scripts.ts'
import { type Address, formatAddress, type RedisTarget } from './redis-url.ts'

/** The time in which anything asked of Redis must be answered, in milliseconds. */
const TIME_LIMIT_MS = 2500

// Behind a broken network nobody says goodbye, and a subscriber would wait for ever. So every connection is asked for a
// sign of life, and silence ends it, also while it is still being made.
const PING_INTERVAL_MS = 2000
const SILENCE_LIMIT_MS = 3000

// A server that stopped answering must not let calls pile up for as long as it takes to notice.
const MAX_CALLS_IN_FLIGHT = 20_000

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2000
const STABLE_AFTER_MS = 1000

/** One connected client. It never reconnects: what comes after it is a new one. */
export interface Connection {
  readonly client: RedisClient
  /** Resolves with the reason when the connection is gone. */
  readonly lost: Promise<unknown>
}

export type RedisClient = ReturnType<typeof newClient>

/** Something was not answered in time. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'
}

/** Waits for work for 2.5 seconds at most; then rejects with a TimeLimitError, and the work goes on unheard. */
export async function withinTimeLimit<T>(work: Promise<T>): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new TimeLimitError(`no answer within ${TIME_LIMIT_MS} ms`)), TIME_LIMIT_MS)
  try {
    return await Promise.race([work, over])
  } finally {
    clearTimeout(timer)
  }
}

/** Connects to a master of Redis 7 or newer that is, or is not, a node of a cluster. */
export async function dialMaster(address: Address, target: RedisTarget): Promise<Connection> {
  const { username, password, database } = target
  const connection = await dial(address, target.tls, { username, password, database })
  try {
    await checkMaster(connection.client, address, target.kind === 'cluster')
    return connection
  } catch (error) {
    connection.client.destroy()
    throw error
  }
}

/** Asks all sentinels at once which server is the master now, and takes the first answer. */
export async function findMaster(target: RedisTarget): Promise<Address> {
  const { addresses, masterName, sentinelUsername: username, sentinelPassword: password } = target
  const answers = addresses.map(async (address) => {
    const { client } = await dial(address, target.tls, { username, password, database: 0 })
    try {
      const request = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName]
      const answer: unknown = await client.sendCommand(request)
      if (!Array.isArray(answer)) {
        throw new Error(`the sentinel at ${formatAddress(address)} knows no master named ${masterName}`)
      }
      return { host: String(answer[0]), port: Number(answer[1]) }
    } finally {
      client.destroy()
    }
  })
  try {
    return await Promise.any(answers)
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error
  }
}

interface Access {
  username: string | undefined
  password: string | undefined
  database: number
}

async function dial(address: Address, tls: boolean, access: Access): Promise<Connection> {
  const client = newClient(address, tls, access)
  const { promise: lost, resolve } = Promise.withResolvers<unknown>()
  // Without a listener the error of a lost connection would end the process.
  client.on('error', resolve).on('end', () => resolve(new Error('the connection was closed')))
  try {
    await client.connect()
    return { client, lost }
  } catch (error) {
    client.destroy()
    throw error
  }
}

function newClient({ host, port }: Address, tls: boolean, { username, password, database }: Access) {
  const timing = { connectTimeout: TIME_LIMIT_MS, socketTimeout: SILENCE_LIMIT_MS, reconnectStrategy: false } as const
  return createClient({
    scripts,
    socket: tls ? { host, port, tls, ...timing } : { host, port, ...timing },
    // Shown by CLIENT LIST.
    name: 'countersign',
    database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    commandsQueueMaxLength: MAX_CALLS_IN_FLIGHT,
    pingInterval: PING_INTERVAL_MS,
    maintNotifications: 'disabled',
    // The client's own limit covers only what it has not sent yet, with a timer for each call.
    commandOptions: { timeout: 0 },
  })
}

async function checkMaster(client: RedisClient, address: Address, inCluster: boolean): Promise<void> {
  const { version, mode, role } = await client.hello()
  const where = `the server at ${formatAddress(address)}`
  if (mode === 'sentinel') throw new Error(`${where} is a sentinel: use redis+sentinel://`)
  if (mode === 'cluster' && !inCluster) throw new Error(`${where} is part of a cluster: use redis+cluster://`)
  if (mode !== 'cluster' && inCluster) throw new Error(`${where} is not part of a cluster: use redis://`)
  if (Number.parseInt(version, 10) < 7) {
    throw new Error(`${where} is Redis ${version}, and sharded publish and subscribe needs Redis 7 or newer`)
  }
  if (role !== 'master' && !inCluster) throw new Error(`${where} is a ${role} and takes no writes`)
}

/** What happens to a {@link Link}, for those who depend on it. */
export interface LinkEvents {
  onUp?(): void
  /** A connection that was up is gone. */
  onLost?(): void
  /** There is none: it is gone, or a try to dial failed. */
  onDown?(): void
}

/** Keeps one connection, dialling anew whenever it is lost, with growing pauses between failures. */
export class Link {
  readonly #dialOnce: () => Promise<Connection>
  readonly #closing = new AbortController()
  #connection: Promise<Connection>
  #up: Connection | undefined

  constructor(dialOnce: () => Promise<Connection>, events: LinkEvents = {}) {
    this.#dialOnce = dialOnce
    this.#connection = dialOnce()
    void this.#keep(events)
  }

  /** The connection; or the one being dialled; or, in a pause, at once the reason why there is none. */
  get connection(): Promise<Connection> {
    return this.#connection
  }

  /** Gives up the connection, if there is one. The next one is dialled at once. */
  drop(): void {
    this.#up?.client.destroy()
  }

  close(): void {
    this.#closing.abort(new Error('the store is closed'))
    this.drop()
  }

  async #keep(events: LinkEvents): Promise<void> {
    const { signal } = this.#closing
    let failures = 0
    while (true) {
      let cause: unknown
      try {
        this.#up = await this.#connection
        const upAt = performance.now()
        if (signal.aborted) this.drop()
        else events.onUp?.()
        cause = await this.#up.lost
        this.drop()
        if (!signal.aborted) events.onLost?.()
        failures = performance.now() - upAt > STABLE_AFTER_MS ? 0 : failures + 1
      } catch (error) {
        cause = error
        failures++
      }
      this.#up = undefined
      this.#connection = rejected(signal.aborted ? signal.reason : cause)
      if (signal.aborted) return
      events.onDown?.()
      await pauseAfter(failures, signal)
      this.#connection = signal.aborted ? rejected(signal.reason) : this.#dialOnce()
    }
  }
}

/** Waits before the next try: longer after each failure, never exactly as long as the neighbours. Ends when aborted. */
export async function pauseAfter(failures: number, signal: AbortSignal): Promise<void> {
  const longest = failures === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
  await pause(longest * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
}

function rejected(cause: unknown): Promise<never> {
  const promise = Promise.reject(cause)
  promise.catch(() => undefined)
  return promise
}
