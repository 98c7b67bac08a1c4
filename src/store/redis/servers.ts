import { type Connection, dialMaster, Link, type RedisClient } from './connection.ts'
import type { RedisTarget } from './url.ts'

/**
 * The servers behind a Redis URL, which may fail and be replaced. Knows where commands and subscriptions have to go.
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

/** Told of what happens to the servers. */
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
  readonly #link: Link

  constructor(target: RedisTarget, events: ServersEvents) {
    this.#target = target
    this.#link = new Link(() => this.dial(), {
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
