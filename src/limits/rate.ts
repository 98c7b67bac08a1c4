import { changeRecord } from '../base/record.ts'
import { headerOf, networksOf, type RequestContext } from '../base/request.ts'
import { Slots } from '../base/timing/slots.ts'
import { hashToken } from '../base/token.ts'
import type { Store } from '../store/store.ts'
import {
  type Limits,
  mostInstances,
  networkShares,
  type RateLimit,
  type RateLimitGroup,
  rateLimited,
  windowMsOf,
} from './limits.ts'

/**
 * Most rates of a kind in memory. A forgotten one starts again at its full limit in this process, at the earliest after
 * half as many others were seen.
 */
const maxRemembered = 50_000

/** Most reports to the store at a time; further ones wait in line. */
const mostReports = 64

/** Time without reports after a failure of the store, in ms. */
const awayMs = 1_000

/** Parts of {@link RateLimiter}. */
export interface RateParts {
  /** Store in which the instances of a service add up. Without it, this process counts alone. */
  readonly store?: Store | undefined
  /** Whether a foreign page caused a request in its visitor's browser. Default: no request. */
  readonly isForeign?: ((request: RequestContext) => boolean) | undefined
}

/**
 * Limits of rates, counted in the process. A call passes at once while less than a sixteenth of the limit is
 * unreported; otherwise the rate is reported to the store first, which answers with the reports of other instances. So
 * up to 16 instances let at most twice a limit through, and a client with few calls costs no trip to the store. While
 * the store is away, the instance counts alone.
 *
 * Methods return `undefined` for a call that passes at once, else a promise to wait for. They throw, or reject with,
 * RATE_LIMITED and the time to wait.
 */
export class RateLimiter {
  readonly #limits: Limits
  readonly #store: Store | undefined
  /** Whether a foreign page caused a request in its visitor's browser. */
  readonly isForeign: (request: RequestContext) => boolean
  /** One for each width: a flood from many narrow networks does not push out the wide ones around them. */
  readonly #networks = networkShares.map(() => new RecentRates())
  /** Apart from networks, because one person can make any number of wallets. */
  readonly #wallets = new RecentRates()
  readonly #orders = new RecentRates()
  readonly #clients = new RecentRates()
  readonly #reports = new Slots(mostReports)
  #awayUntil = Number.NEGATIVE_INFINITY

  constructor(limits: Limits, { store, isForeign = () => false }: RateParts = {}) {
    this.#limits = limits
    this.#store = store
    this.isForeign = isForeign
  }

  /**
   * Counts a call for its address and the networks around it. At the limit of one of them, it counts for none. An
   * unknown address is not counted: with one limit for all such clients, one could lock out the others. Requests of a
   * foreign page through its visitor's browser are counted by themselves, so that they take nothing from the visitor's
   * own network.
   */
  spend(group: RateLimitGroup, request: RequestContext): Promise<void> | undefined {
    return this.#spendOfNetworks(group, request, this.isForeign(request))
  }

  /**
   * Counts a navigation as {@link spend} does, but that of a whole page always for the visitor's own network. It comes
   * from a link of another site more often than not, and a foreign page cannot cause many: each one replaces the page,
   * or needs a click.
   */
  spendNavigation(group: RateLimitGroup, request: RequestContext): Promise<void> | undefined {
    return this.#spendOfNetworks(group, request, this.isForeignNavigation(request))
  }

  /** Whether a navigation is one of those that a foreign page can cause unseen: of a frame, or ahead of a click. */
  isForeignNavigation(request: RequestContext): boolean {
    const isUnseen = headerOf(request, 'sec-fetch-dest') === 'iframe' || headerOf(request, 'sec-purpose') !== undefined
    return isUnseen && this.isForeign(request)
  }

  /** Counts a call of a client that has proven who it is. It acts for as many people as there are in a wide network. */
  spendOfClient(group: RateLimitGroup, clientId: string): Promise<void> | undefined {
    const perWindow = this.#limits[group] * Math.max(...networkShares)
    return this.#take(group, [this.#clients.find(`${group} client ${clientId}`, { perWindow, limit: group })])
  }

  /** Counts a wrong token or code of an address. */
  countWrongToken(request: RequestContext): Promise<void> | undefined {
    return this.#spendOfNetworks('wrong-token', request, this.isForeign(request))
  }

  /**
   * Counts a code of a device as a wrong one before it is compared, so that any number of them at once is no more than
   * the limit. Resolves with what takes it back, for a right one.
   */
  async countDeviceCode({ ip }: RequestContext): Promise<() => void> {
    const rates = ip === undefined ? [] : this.#ratesOf('wrong-device-code', ip, 'wrong-device-code')
    await this.#take('wrong-device-code', rates)
    return () => {
      for (const rate of rates) rate.giveBack()
    }
  }

  /** Counts a wrong token for an order. */
  countWrongTokenOf(orderId: string): Promise<void> | undefined {
    return this.#spendOne('order-wrong-token', orderId, this.#orders)
  }

  /** Counts a sign-in of a wallet. */
  countSignIn(wallet: { readonly adapterId: string; readonly subject: string }): Promise<void> | undefined {
    return this.#spendOne('wallet-sign-in', `${wallet.adapterId} ${wallet.subject}`, this.#wallets)
  }

  #spendOfNetworks(limit: RateLimit, { ip }: RequestContext, isForeign: boolean): Promise<void> | undefined {
    if (ip === undefined) return undefined
    return this.#take(limit, this.#ratesOf(limit, ip, isForeign ? `${limit} foreign` : limit))
  }

  /** The rates of an address and of the networks around it. */
  #ratesOf(limit: RateLimit, ip: string, name: string): readonly Rate[] {
    return networksOf(ip).map((network, width) => {
      const perWindow = this.#limits[limit] * (networkShares[width] as number)
      return (this.#networks[width] as RecentRates).find(`${name} ${network}`, { perWindow, limit })
    })
  }

  #spendOne(limit: RateLimit, name: string, recent: RecentRates): Promise<void> | undefined {
    return this.#take(limit, [recent.find(`${limit} ${name}`, { perWindow: this.#limits[limit], limit })])
  }

  #take(limit: RateLimit, rates: readonly Rate[]): Promise<void> | undefined {
    const now = this.#now()
    const waitUs = Math.max(0, ...rates.map((rate) => rate.waitAt(now)))
    if (waitUs > 0) throw rateLimited(limit, Math.ceil(waitUs / 1000))
    const owing = this.#store === undefined || this.#isAway ? [] : rates.filter((rate) => rate.mustReport)
    if (owing.length > 0) return this.#reportAndTake(limit, rates, owing)
    for (const rate of rates) rate.take(now)
    return undefined
  }

  async #reportAndTake(limit: RateLimit, rates: readonly Rate[], owing: readonly Rate[]): Promise<void> {
    for (const rate of owing) rate.keep()
    await Promise.all(owing.map((rate) => this.#reported(rate)))
    await this.#take(limit, rates)
  }

  /**
   * Reports a rate; one report of it at a time. Also resolves without an answer of the store: no call fails for a
   * report.
   */
  #reported(rate: Rate): Promise<void> {
    rate.reporting ??= this.#reports
      .run(async () => {
        if (!this.#isAway) await this.#report(rate, this.#store as Store)
      })
      .catch(() => {
        this.#awayUntil = performance.now() + awayMs
      })
      .finally(() => {
        rate.reporting = undefined
      })
    return rate.reporting
  }

  async #report(rate: Rate, store: Store): Promise<void> {
    const { report } = await changeRecord(store, `limit:${hashToken(rate.key)}`, Number, (fullAt = 0, nowMs) => {
      const now = nowMs * 1000
      const report = rate.reportAt(now, fullAt)
      const life = { ttlMs: Math.max(0, Math.ceil((report.fullAt - now) / 1000)) + rate.afterlifeMs }
      return { value: String(report.fullAt), life, report }
    })
    rate.reported(report)
  }

  get #isAway(): boolean {
    return performance.now() < this.#awayUntil
  }

  /** Time in microseconds: the store's, on which all instances agree. */
  #now(): number {
    return (this.#store?.now() ?? Date.now()) * 1000
  }
}

/** A report to the store: when the limit is full again, and the number of calls that this includes. */
interface Report {
  readonly fullAt: number
  readonly calls: number
}

/** A limit's number of calls. */
interface RateNumbers {
  readonly perWindow: number
  readonly limit: RateLimit
}

/**
 * A number of calls that can come all at once and come back over a window, by the generic cell rate algorithm. Its only
 * state is the time at which the limit will be full again; each call puts it off by the same interval.
 *
 * One instance's view: the time as the store last had it, put off by the calls since then. It can let too much through,
 * by the unreported calls of the others, and never refuses too early.
 */
class Rate {
  /** Key in the store. */
  readonly key: string
  /** The report in progress. */
  reporting: Promise<void> | undefined
  /** Window in whole microseconds, so that sums of intervals are exact. */
  readonly #windowUs: number
  readonly #intervalUs: number
  readonly #mostUnreported: number
  #fullAt = 0
  /**
   * Calls since the last report. -1 after a report that included the call that required it, until that call is taken.
   */
  #unreported = 0
  #takenAt = 0
  readonly #recent: RecentRates

  constructor(key: string, { perWindow, limit }: RateNumbers, recent: RecentRates) {
    this.key = key
    this.#recent = recent
    this.#windowUs = windowMsOf(limit) * 1000
    this.#intervalUs = Math.floor(this.#windowUs / perWindow)
    this.#mostUnreported = Math.floor(perWindow / mostInstances)
  }

  /** Time in ms for which the store keeps it after its window has ended: an instance can report late by a window. */
  get afterlifeMs(): number {
    return this.#windowUs / 1000
  }

  /**
   * Latest end of a window from now: at their limit, instances let at most as much through again. A later one is an
   * error of the clock.
   */
  get #longestUs(): number {
    return 2 * this.#windowUs
  }

  /** Whether the next call has to wait for a report. */
  get mustReport(): boolean {
    return this.#unreported >= this.#mostUnreported
  }

  /** Time in microseconds until the next call; 0 if one is left. */
  waitAt(now: number): number {
    // A report would charge calls again that have come back meanwhile. So an instance hides a sixteenth of the limit.
    if (now - this.#takenAt > this.#windowUs) this.#unreported = Math.min(this.#unreported, 0)
    this.#fullAt = Math.min(this.#fullAt, now + this.#longestUs)
    return Math.max(0, this.#fullAt + this.#intervalUs - now - this.#windowUs)
  }

  /** Keeps it in memory. */
  keep(): void {
    this.#recent.keep(this)
  }

  take(now: number): void {
    this.keep()
    this.#takenAt = now
    this.#unreported++
    this.#fullAt = Math.max(this.#fullAt, now) + this.#intervalUs
  }

  /** Takes a call back. If it was reported, this instance has one more than the others see. */
  giveBack(): void {
    this.#unreported--
    this.#fullAt -= this.#intervalUs
  }

  /**
   * The report to a store that has `stored`, 0 if it has nothing: the calls so far, and the waiting one if it passes.
   */
  reportAt(now: number, stored: number): Report {
    const calls = this.#unreported
    const fullAt = Math.max(Math.min(stored, now + this.#longestUs) + calls * this.#intervalUs, this.#fullAt)
    const next = Math.max(fullAt, now) + this.#intervalUs
    return next <= now + this.#windowUs ? { fullAt: next, calls: calls + 1 } : { fullAt, calls }
  }

  /** Subtracts a report that was stored. Calls taken in the meantime are still unreported. */
  reported({ fullAt, calls }: Report): void {
    this.#unreported -= calls
    this.#fullAt = Math.max(fullAt + this.#unreported * this.#intervalUs, this.#fullAt)
  }
}

/**
 * Rates by key, in two generations: those seen since the younger one began, and those seen before. A map in the order
 * of use, whose first entry is deleted for each new one, takes a tenth of a millisecond for each call of a flood from
 * many networks: its iterator has to pass all deleted entries.
 */
class RecentRates {
  #younger = new Map<string, Rate>()
  #older = new Map<string, Rate>()

  /** Finds a rate, or makes one. It is kept in memory only once a call is taken: refused calls push out nothing. */
  find(key: string, numbers: RateNumbers): Rate {
    const known = this.#younger.get(key)
    if (known !== undefined) return known
    const older = this.#older.get(key)
    if (older === undefined) return new Rate(key, numbers, this)
    this.keep(older)
    return older
  }

  keep(rate: Rate): void {
    this.#younger.set(rate.key, rate)
    if (this.#younger.size < maxRemembered / 2) return
    this.#older = this.#younger
    this.#younger = new Map()
  }
}
