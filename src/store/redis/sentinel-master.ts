import { setTimeout as pause } from 'node:timers/promises'
import { type Connection, dialMaster, Link, type RedisClient } from './connection.ts'
import { Lease } from './lease.ts'
import { agreedConfiguration, Sentinels } from './sentinels.ts'
import type { Attempt, Servers, ServersEvents } from './servers.ts'
import type { RedisTarget } from './url.ts'

/** Interval between two questions to the sentinels, in milliseconds, beside what they tell of themselves. */
const askIntervalMs = 1000

/**
 * The current master according to the sentinels.
 *
 * The sentinels are asked before a connection to it is made, again after its greeting, every second, and whenever one of them
 * tells of a failover. What is deposed is closed at once. {@link Lease} says when an answer counts.
 */
export class SentinelMaster implements Servers {
  readonly opened: Promise<unknown>
  readonly #target: RedisTarget
  readonly #sentinels: Sentinels
  /** Of all connections to the master, those for subscriptions included, and those that are being made. */
  readonly #leases = new Map<Connection, Lease>()
  readonly #link: Link
  readonly #closing = new AbortController()

  constructor(target: RedisTarget, events: ServersEvents) {
    this.#target = target
    this.#sentinels = new Sentinels(target, () => this.#onFailover())
    this.#link = new Link(() => this.#dialForCalls(), {
      onUp: () => events.onUp(this.locate()),
      onLost: () => events.onLost(this.locate()),
    })
    this.opened = this.#link.connection
    void this.#watch()
  }

  async run<T>(_key: string, step: (client: RedisClient) => Promise<T>, attempt: Attempt): Promise<T> {
    const connection = this.#link.up ?? (await this.#link.connection)
    const lease = this.#leases.get(connection)
    if (lease === undefined) throw new Error('the connection to the master is lost')
    attempt.connection = connection
    return lease.trusted(step(connection.client))
  }

  locate(): string {
    return 'master'
  }

  serves(): boolean {
    return true
  }

  async dial(): Promise<Connection> {
    return (await this.#dialMaster()).connection
  }

  redirect(): void {
    // There is only one place, and each new connection asks where that is.
  }

  close(): void {
    this.#closing.abort()
    this.#link.close()
    this.#sentinels.close()
  }

  async #dialForCalls(): Promise<Connection> {
    const lease = await this.#dialMaster()
    void lease.keep()
    return lease.connection
  }

  async #dialMaster(): Promise<Lease> {
    const configuration = agreedConfiguration(await this.#sentinels.ask())
    const connection = await dialMaster(configuration.master, this.#target)
    const lease = new Lease(connection, this.#sentinels, configuration)
    // Beforehand, so that a failover that begins meanwhile closes it.
    this.#leases.set(connection, lease)
    void connection.lost.then(() => this.#leases.delete(connection))
    try {
      await lease.confirm()
      return lease
    } catch (error) {
      connection.client.destroy()
      throw error
    }
  }

  #onFailover(): void {
    for (const lease of this.#leases.values()) lease.revoke()
    void this.#ask()
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await pause(askIntervalMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (!signal.aborted) await this.#ask()
    }
  }

  async #ask(): Promise<void> {
    const answers = await this.#sentinels.ask()
    for (const lease of this.#leases.values()) lease.closeIfDeposed(answers)
  }
}
