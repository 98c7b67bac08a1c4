import type { RedisClient } from './connection.ts'

/**
 * Silence of a connection after which its answers need a confirmation, in milliseconds. The other servers need longer to elect
 * a new master if `cluster-node-timeout` is 500 ms or more: that timeout, and half a second before the election.
 */
const silenceMs = 1000

/** Time between two questions that a server is asked only to hear of it, in milliseconds. Idle connections are not silent. */
export const signOfLifeMs = silenceMs / 2

/**
 * Notices when a server answers again after a silence. It may have been frozen while the others elected a new master. When it
 * continues, it first carries out the calls that were sent to it in the meantime, because it does not know yet that it has been
 * replaced. It then discards their effects, so their answers must not count.
 */
export class Silence {
  /** When each connection was last heard, on the clock of `performance.now()`. */
  readonly #heardAt = new WeakMap<RedisClient, number>()
  readonly #confirming = new WeakMap<RedisClient, Promise<void>>()

  /** A new connection: `since` is when it was begun, because a frozen server accepts connections and answers later. */
  begin(client: RedisClient, since: number): void {
    this.#heardAt.set(client, since)
  }

  /**
   * To be called with each answer. Returns a promise if the answer needs a confirmation; it counts if the promise resolves.
   * `confirm` is called with the first answer after a silence. All answers that arrive while it is in progress share its
   * result; later ones need no confirmation, because the server was still master when it continued.
   */
  heard(client: RedisClient, confirm: () => Promise<void>): Promise<void> | undefined {
    const now = performance.now()
    const silent = now - (this.#heardAt.get(client) ?? now) > silenceMs
    this.#heardAt.set(client, now)
    if (silent) this.#confirm(client, confirm)
    return this.#confirming.get(client)
  }

  #confirm(client: RedisClient, confirm: () => Promise<void>): void {
    const confirming = confirm().finally(() => {
      if (this.#confirming.get(client) === confirming) this.#confirming.delete(client)
    })
    // A failure reaches those who wait for it, if there are any.
    confirming.catch(() => undefined)
    this.#confirming.set(client, confirming)
  }
}
