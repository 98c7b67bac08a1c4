import { TimeLimit } from '../../base/timing/time-limit.ts'
import { type Connection, dial, Link } from './connection.ts'
import { type Address, formatAddress, type RedisTarget } from './url.ts'

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
export function newestConfiguration({ configurations }: Answers): Configuration | undefined {
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

  /** `onFailover` is called as soon as any of the sentinels tells of a failover. */
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
  readonly #link: Link

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
