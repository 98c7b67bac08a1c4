import { Allowance } from './limits/allowance.ts'
import { type Limits, networkShares, type RateLimit, type RateLimitGroup, rateLimited } from './limits/limits.ts'
import type { SharedCount } from './limits/shared-count.ts'
import { networksOf } from './networks.ts'

/**
 * Most networks of each width, orders and wallets to remember. One that is forgotten has its full allowance again in this process;
 * that happens at the earliest after half as many others were seen.
 */
const maxRemembered = 50_000

/**
 * The limits on what happens in a minute. Methods return `undefined` if a call is let through at once, as it is unless a client
 * has made many; otherwise the call has to wait. They throw, or reject with, RATE_LIMITED and the time to wait.
 */
export class RateLimiter {
  readonly #limits: Limits
  readonly #shared: SharedCount | undefined
  /** Apart for each width, so that a flood from many narrow networks does not push out the wide ones that they are in. */
  readonly #networks = networkShares.map(() => new Allowances())
  /** Apart from them, because anybody can make any number of wallets. */
  readonly #wallets = new Allowances()
  readonly #orders = new Allowances()

  /** Without `shared`, this process counts for itself, by its own clock. */
  constructor(limits: Limits, shared?: SharedCount) {
    this.#limits = limits
    this.#shared = shared
  }

  /**
   * Takes one call from the allowances of an address and of the networks around it. If one of them has none left, none is taken from
   * the others, so that refused calls use up nobody's allowance. If the address is unknown, nothing is counted: with one allowance
   * for all such clients, one could lock out the others.
   */
  spend(group: RateLimitGroup, ip: string | undefined): Promise<void> | undefined {
    return this.#spendOfAddress(group, ip)
  }

  /** Counts a wrong token or code of an address. */
  countWrongToken(ip: string | undefined): Promise<void> | undefined {
    return this.#spendOfAddress('wrong-token', ip)
  }

  /** Counts a wrong token that was tried for an order. */
  countWrongTokenOf(orderId: string): Promise<void> | undefined {
    return this.#spendOne('order-wrong-token', orderId, this.#orders)
  }

  /** Counts a sign-in of a wallet. */
  countSignIn({
    adapterId,
    subject,
  }: {
    readonly adapterId: string
    readonly subject: string
  }): Promise<void> | undefined {
    return this.#spendOne('wallet-sign-in', `${adapterId} ${subject}`, this.#wallets)
  }

  #spendOfAddress(limit: RateLimit, ip: string | undefined): Promise<void> | undefined {
    if (ip === undefined) return undefined
    const asked = networksOf(ip).map((network, width) => {
      const known = this.#networks[width] as Allowances
      return known.find(`${limit} ${network}`, this.#limits[limit] * (networkShares[width] as number))
    })
    return this.#take(limit, asked)
  }

  #spendOne(limit: RateLimit, name: string, known: Allowances): Promise<void> | undefined {
    return this.#take(limit, [known.find(`${limit} ${name}`, this.#limits[limit])])
  }

  #take(limit: RateLimit, asked: readonly Remembered[]): Promise<void> | undefined {
    const now = this.#shared?.now() ?? Date.now() * 1000
    const waitUs = Math.max(...asked.map(({ allowance }) => allowance.waitAt(now)))
    if (waitUs > 0) throw rateLimited(limit, Math.ceil(waitUs / 1000))
    const shared = this.#shared
    const owing = shared === undefined ? [] : asked.filter(({ allowance }) => shared.mustTell(allowance))
    if (shared !== undefined && owing.length > 0) return this.#tellAndTake(limit, asked, owing, shared)
    for (const { allowance, remember } of asked) {
      allowance.take(now)
      remember()
    }
    return undefined
  }

  /** Others of the same client wait for the same trip, so that no more of them are let through than the store knows to be left. */
  async #tellAndTake(
    limit: RateLimit,
    asked: readonly Remembered[],
    owing: readonly Remembered[],
    shared: SharedCount,
  ): Promise<void> {
    for (const { remember } of owing) remember()
    await Promise.all(owing.map(({ allowance }) => shared.tell(allowance)))
    await this.#take(limit, asked)
  }
}

/** An allowance that was found or made. */
interface Remembered {
  readonly allowance: Allowance
  /** Keeps it. */
  readonly remember: () => void
}

/**
 * Allowances by name, in two generations: what was seen since the younger one began, and what was seen before. A map in the order
 * of use, from which the first entry is deleted for each new one, takes a tenth of a millisecond for each call of a flood from many
 * networks, because its iterator has to pass over all that was deleted.
 */
class Allowances {
  #younger = new Map<string, Allowance>()
  #older = new Map<string, Allowance>()

  /** Finds an allowance. One that is full, because nothing was ever taken from it, is not remembered. */
  find(key: string, calls: number): Remembered {
    const known = this.#younger.get(key) ?? this.#older.get(key)
    if (known !== undefined) this.#remember(known)
    const allowance = known ?? new Allowance(key, calls)
    return { allowance, remember: () => this.#remember(allowance) }
  }

  #remember(allowance: Allowance): void {
    this.#younger.set(allowance.key, allowance)
    if (this.#younger.size < maxRemembered / 2) return
    this.#older = this.#younger
    this.#younger = new Map()
  }
}
