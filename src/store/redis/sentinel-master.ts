import { setTimeout as pause } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import { TimeLimit } from '../../base/timing/time-limit.ts'
import { Link } from '../link.ts'
import {
  type Attempt,
  type Connection,
  dial,
  dialMaster,
  type RedisClient,
  type Servers,
  type ServersEvents,
} from './connection.ts'
import { type Address, formatAddress, type RedisTarget } from './url.ts'

/** Interval in ms between two questions to the sentinels, in addition to what they publish. */
const askIntervalMs = 1000

/**
 * The current master according to the sentinels.
 *
 * The sentinels are asked before a connection to it is made, again after its greeting, every second, and whenever one
 * of them reports a failover. What is deposed is closed at once. {@link Lease} says when an answer counts.
 */
export class SentinelMaster implements Servers {
  readonly opened: Promise<unknown>
  readonly #target: RedisTarget
  readonly #sentinels: Sentinels
  /** Of all connections to the master, those for subscriptions included, and those that are being made. */
  readonly #leases = new Map<Connection, Lease>()
  readonly #link: Link<Connection>
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

/**
 * Time limit of a question to one sentinel, in milliseconds. Up to a tenth of a second is added for the checks of it.
 */
const askLimitMs = 900

/** Longest wait for the sentinels that are late once half of them have answered, in milliseconds. */
const lateMs = 250

/**
 * What a sentinel says when it is about to promote a replica, when it has promoted one, and when it has heard of that.
 * Each reaches its subscribers before the sentinel names the new master to any client.
 */
const failoverChannels = ['+failover-state-send-slaveof-noone', '+promoted-slave', '+switch-master']

/**
 * States of a failover in which a sentinel has been elected to promote a replica and does not name the new master yet.
 */
const promotingStates: readonly unknown[] = ['select_slave', 'send_slaveof_noone', 'wait_promotion']

/** Which server is the master, as one sentinel says it. */
export interface Configuration {
  readonly master: Address
  /** Number of the configuration. Every failover makes a greater one. */
  readonly epoch: number
  /** Whether another server is being promoted at this moment, so that this one is or will soon be deposed. */
  readonly promoting: boolean
  /** Time for which the master has to be silent before sentinels replace it, in milliseconds. */
  readonly downAfterMs: number
}

/** What all sentinels have answered to one question. */
export interface Answers {
  readonly configurations: readonly Configuration[]
  readonly failures: readonly unknown[]
  /** How many sentinels were asked. */
  readonly asked: number
}

/**
 * The configuration that the answers agree on: the newest one. A failover takes the votes of more than half of the
 * sentinels, so at least half of them must have answered: then at least one that knows of the last failover, or will in
 * a moment, is among them, however old the answers of the others are.
 *
 * @throws Error if fewer than half have answered, if a replica is being promoted, or if there are two newest ones.
 */
export function agreedConfiguration(answers: Answers): Configuration {
  const { configurations, failures, asked } = answers
  if (configurations.length * 2 < asked) {
    const problems = new Set(failures.map((failure) => (failure instanceof Error ? failure.message : String(failure))))
    const count = `${configurations.length} of ${asked} sentinels answered, and ${Math.ceil(asked / 2)} must`
    throw new Error(`${count}: ${[...problems].join('; ')}`, { cause: failures[0] })
  }
  const newest = newestConfiguration(answers)
  if (newest === undefined) throw new Error('the sentinels name several masters')
  if (newest.promoting) throw new Error('the sentinels are replacing the master')
  return newest
}

/**
 * The newest configuration in the answers: of two with the same number, the more frequent one. None if that is
 * undecided.
 */
function newestConfiguration({ configurations }: Answers): Configuration | undefined {
  const epoch = Math.max(...configurations.map((configuration) => configuration.epoch))
  const newest = configurations.filter((configuration) => configuration.epoch === epoch)
  const byMaster = Map.groupBy(newest, ({ master }) => formatAddress(master))
  const [most, next] = [...byMaster.values()].sort((a, b) => b.length - a.length)
  if (most?.[0] === undefined || most.length === next?.length) return undefined
  return {
    master: most[0].master,
    epoch,
    promoting: most.some(({ promoting }) => promoting),
    downAfterMs: Math.min(...configurations.map(({ downAfterMs }) => downAfterMs)),
  }
}

/** The sentinels of a target, with one connection to each. */
export class Sentinels {
  readonly #sentinels: readonly Sentinel[]

  /** `onFailover` is called as soon as any of the sentinels reports a failover. */
  constructor(target: RedisTarget, onFailover: () => void) {
    this.#sentinels = target.addresses.map((address) => new Sentinel(address, target, onFailover))
  }

  /** Asks all sentinels. Resolves in about a second at most, and sooner if those that are missing are few and late. */
  async ask(): Promise<Answers> {
    const asked = this.#sentinels.length
    const configurations: Configuration[] = []
    const failures: unknown[] = []
    const { promise: late, resolve } = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined
    const answers = this.#sentinels.map(async (sentinel) => {
      try {
        configurations.push(await sentinel.ask())
        if (configurations.length * 2 >= asked) timer ??= setTimeout(resolve, lateMs)
      } catch (error) {
        failures.push(error)
      }
    })
    await Promise.race([Promise.all(answers), late])
    clearTimeout(timer)
    return { configurations: [...configurations], failures: [...failures], asked }
  }

  close(): void {
    for (const sentinel of this.#sentinels) sentinel.close()
  }
}

const askTime = new TimeLimit(askLimitMs, 100)

class Sentinel {
  readonly #address: Address
  readonly #target: RedisTarget
  readonly #onFailover: () => void
  readonly #link: Link<Connection>

  constructor(address: Address, target: RedisTarget, onFailover: () => void) {
    this.#address = address
    this.#target = target
    this.#onFailover = onFailover
    this.#link = new Link(() => this.#dial())
  }

  ask(): Promise<Configuration> {
    return askTime.within(this.#askOnce(), () => new Error(`${this.#name} does not answer`))
  }

  close(): void {
    this.#link.close()
  }

  get #name(): string {
    return `the sentinel at ${formatAddress(this.#address)}`
  }

  async #askOnce(): Promise<Configuration> {
    const { client } = await this.#link.connection
    const { masterName } = this.#target
    // In this order: an address that is newer than the number beside it loses against that of another sentinel, and one
    // that is older would win.
    const [state, named] = await Promise.all([
      client.sendCommand(['SENTINEL', 'MASTER', masterName]).catch((error: unknown) => {
        throw error instanceof Error && error.message.includes('No such master') ? this.#masterUnknown() : error
      }),
      client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName]),
    ])
    if (!Array.isArray(named)) throw this.#masterUnknown()
    const fields = state as unknown as Readonly<Record<string, unknown>>
    return {
      master: { host: String(named[0]), port: Number(named[1]) },
      epoch: Number(fields['config-epoch']),
      promoting: promotingStates.includes(fields['failover-state']),
      downAfterMs: Number(fields['down-after-milliseconds']),
    }
  }

  #masterUnknown(): Error {
    return new Error(`${this.#name} knows no master named ${this.#target.masterName}`)
  }

  async #dial(): Promise<Connection> {
    const { tls, sentinelUsername: username, sentinelPassword: password } = this.#target
    const connection = await dial({ address: this.#address, tls, username, password, database: 0 })
    try {
      await connection.client.subscribe(failoverChannels, this.#onMessage)
      return connection
    } catch (error) {
      connection.client.destroy()
      throw error
    }
  }

  readonly #onMessage = (message: string): void => {
    // `main 10.0.0.1 6379 10.0.0.2 6379`, or `slave 10.0.0.2:6379 10.0.0.2 6379 @ main 10.0.0.1 6379`.
    const name = message.includes(' @ ') ? message.split(' @ ')[1] : message
    if (name?.split(' ')[0] === this.#target.masterName) this.#onFailover()
  }
}
