import { type Connection, dialMaster, findMaster, Link, type RedisClient } from './redis-connection.ts'
import type { RedisTarget } from './redis-url.ts'

/** The servers behind a Redis URL, which may fail and be replaced: where commands go, and where subscriptions go. */
export interface Servers {
  /** Resolves once the servers answered for the first time; rejects if they did not. */
  readonly opened: Promise<unknown>
  /**
   * Runs one step on the server of a key. It is tried once: a step whose answer was lost may have happened. The client it
   * runs on is noted in `attempt`.
   */
  run<T>(key: string, step: (client: RedisClient) => Promise<T>, attempt: Attempt): Promise<T>
  /** Names the server of a key or channel, as far as is known. */
  locate(key: string): string
  /** Whether a server that {@link locate} once named is still one of them. */
  serves(server: string): boolean
  /** Connects to a server that {@link locate} named. */
  dial(server: string): Promise<Connection>
  /** Learns from what a failed step was told where the key is now. */
  redirect(key: string, cause: unknown): void
  close(): void
}

/** The running of a step. */
export interface Attempt {
  client?: RedisClient
}

/** Is called with a server to which the command connection was lost: others may be broken without a sign. */
export type OnServerLost = (server: string) => void

/** A single server, or the master that the sentinels name. */
export class OneServer implements Servers {
  readonly opened: Promise<unknown>
  readonly #target: RedisTarget
  readonly #link: Link

  constructor(target: RedisTarget, onServerLost: OnServerLost) {
    this.#target = target
    this.#link = new Link(() => this.dial(), { onLost: () => onServerLost(this.locate()) })
    this.opened = this.#link.connection
  }

  async run<T>(_key: string, step: (client: RedisClient) => Promise<T>, attempt: Attempt): Promise<T> {
    const { client } = await this.#link.connection
    attempt.client = client
    return step(client)
  }

  locate(): string {
    return 'master'
  }

  serves(): boolean {
    return true
  }

  async dial(): Promise<Connection> {
    const target = this.#target
    return dialMaster(target.kind === 'sentinel' ? await findMaster(target) : target.addresses[0], target)
  }

  redirect(): void {
    // There is only one place; a link that is dialled anew asks where that is.
  }

  close(): void {
    this.#link.close()
  }
}
