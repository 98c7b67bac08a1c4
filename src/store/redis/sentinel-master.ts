import { setTimeout as pause } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import {
  type Attempt,
  type Connection,
  dialMaster,
  Link,
  type RedisClient,
  type Servers,
  type ServersEvents,
} from './connection.ts'
import { type Answers, agreedConfiguration, type Configuration, newestConfiguration, Sentinels } from './sentinels.ts'
import { formatAddress, type RedisTarget } from './url.ts'

/** Interval between two questions to the sentinels, in milliseconds, beside what they tell of themselves. */
const askIntervalMs = 1000

/**
 * The current master according to the sentinels.
 *
 * The sentinels are asked before a connection to it is made, again after its greeting, every second, and whenever one
 * of them tells of a failover. What is deposed is closed at once. {@link Lease} says when an answer counts.
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

/**
 * Part of `down-after-milliseconds` for which an answer vouches. The rest covers the way of a sentinel's last PING
 * before a freeze, from which it counts the silence.
 */
const trustedPart = 0.8

/**
 * Part of that time after which another PING is sent. The more often, the longer a pause may be that needs no clearing
 * up.
 */
const pingPart = 1 / 8

/** Longest interval between two PINGs, in milliseconds. */
const longestPingIntervalMs = 2000

/**
 * How long the sentinels are asked whether a server is still the master until the connection is given up, in
 * milliseconds.
 */
const confirmLimitMs = 1500

/** Pause until sentinels that did not answer are asked again, in milliseconds. */
const askAgainMs = 100

/**
 * The trust in a connection to the master that sentinels named.
 *
 * A master that freezes is replaced, goes on when it thaws, and answers as a master until a sentinel makes it a replica
 * some ten seconds later. What it does in that time is lost. But sentinels replace it only after a silence of
 * `down-after-milliseconds`. So, if the server ran a step that was sent at some time, all its answers until four fifths
 * of that silence later are those of the master, and a PING every now and then extends that. An answer that comes later
 * is kept back until the sentinels, asked after it came, still name this server; if they do not, or cannot be asked,
 * the connection is closed.
 */
export class Lease {
  readonly connection: Connection
  readonly #sentinels: Sentinels
  #configuration: Configuration
  /** On the clock of `performance.now()`. */
  #trustedUntil = 0
  #revocations = 0
  #confirming: Promise<void> | undefined
  #confirmingNext: Promise<void> | undefined

  /** A lease on a connection that is not confirmed yet. */
  constructor(connection: Connection, sentinels: Sentinels, configuration: Configuration) {
    this.connection = connection
    this.#sentinels = sentinels
    this.#configuration = configuration
  }

  /** Waits for an answer and, if it came too late to be trusted, for the sentinels. */
  async trusted<T>(answer: Promise<T>): Promise<T> {
    const result = await answer
    if (performance.now() >= this.#trustedUntil) await this.confirm()
    return result
  }

  /**
   * Resolves once the sentinels, asked from now on, have named this server. Otherwise rejects, and closes the
   * connection.
   */
  confirm(): Promise<void> {
    // One that is in progress may have asked already. If it fails, the next one still has to be made.
    this.#confirmingNext ??= Promise.allSettled([this.#confirming]).then(() => {
      this.#confirming = this.#confirmingNext
      this.#confirmingNext = undefined
      return this.#confirmOnce()
    })
    return this.#confirmingNext
  }

  /** Lets every answer wait for the sentinels from now on, until they are asked again. */
  revoke(): void {
    this.#revocations++
    this.#trustedUntil = 0
  }

  /**
   * Closes the connection if it follows from the answers that the server is not the master any more. An older
   * configuration means nothing as long as a sentinel is missing, which may be the one that knows better.
   */
  closeIfDeposed(answers: Answers): void {
    const newest = newestConfiguration(answers)
    if (newest === undefined) return
    const { epoch } = this.#configuration
    const isCertain = newest.epoch > epoch || answers.configurations.length === answers.asked
    if (newest.epoch < epoch && !isCertain) return
    if (newest.promoting || (isCertain && !this.#isNamedBy(newest))) this.connection.client.destroy()
    else if (this.#isNamedBy(newest)) this.#configuration = newest
  }

  /** Extends the trust as long as the connection lasts. */
  async keep(): Promise<void> {
    const { client } = this.connection
    while (client.isReady) {
      await pause(this.#pingIntervalMs, undefined, { ref: false })
      // Fails only if the connection is lost, or so busy that a call will do as well.
      await this.#extend().catch(() => undefined)
    }
  }

  async #extend(): Promise<void> {
    const sentAt = await this.#ping()
    if (performance.now() < this.#trustedUntil) this.#trustUntil(sentAt)
    else await this.confirm()
  }

  async #confirmOnce(): Promise<void> {
    try {
      const revocations = this.#revocations
      const sentAt = await this.#ping()
      this.#configuration = await this.#confirmed()
      if (revocations === this.#revocations) this.#trustUntil(sentAt)
    } finally {
      this.#confirming = undefined
    }
  }

  async #confirmed(): Promise<Configuration> {
    try {
      const configuration = await this.#ask()
      if (this.#isNamedBy(configuration)) return configuration
      throw new Error(`the sentinels name another master, ${formatAddress(configuration.master)}`)
    } catch (error) {
      this.connection.client.destroy()
      throw error
    }
  }

  /** Makes the server answer. Resolves with the time at which it was asked to. */
  async #ping(): Promise<number> {
    const sentAt = performance.now()
    try {
      await this.connection.client.ping()
    } catch (error) {
      // A server that cannot save to disk refuses a PING, which is an answer too.
      if (!(error instanceof ErrorReply)) throw error
    }
    this.connection.heard()
    return sentAt
  }

  async #ask(): Promise<Configuration> {
    const giveUpAt = performance.now() + confirmLimitMs
    while (true) {
      const answers = await this.#sentinels.ask()
      const { configurations, asked } = answers
      if (configurations.length * 2 >= asked || performance.now() > giveUpAt) return agreedConfiguration(answers)
      await pause(askAgainMs)
    }
  }

  #trustUntil(sentAt: number): void {
    this.#trustedUntil = Math.max(this.#trustedUntil, sentAt + this.#trustMs)
  }

  #isNamedBy({ master }: Configuration): boolean {
    return formatAddress(master) === formatAddress(this.#configuration.master)
  }

  get #trustMs(): number {
    return this.#configuration.downAfterMs * trustedPart
  }

  get #pingIntervalMs(): number {
    return Math.min(this.#trustMs * pingPart, longestPingIntervalMs)
  }
}
