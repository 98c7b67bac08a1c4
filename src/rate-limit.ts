import { CountersignError } from './errors.ts'
import { networksOf } from './request.ts'

/** A group of calls that share an allowance. Each client address has its own. */
export type RateLimitGroup = 'sign-in' | 'start order' | 'order' | 'session' | 'reflection'

/**
 * Calls per minute, which can also come all at once. Generous, because many people can share an address: the limits
 * keep one client from filling the store or overloading the verifier. They do not protect secrets, which have 256 bits.
 */
export const callsPerMinute: Record<RateLimitGroup, number> = {
  'sign-in': 240,
  'start order': 120,
  order: 1200,
  session: 2400,
  reflection: 120,
}

/**
 * How many times the allowance of a client address the networks around it have, in the order of {@link networksOf}: an IPv4
 * address or an IPv6 /64 once, a /56 4 times, a /48 16 times. A /56 and a /48 are what one subscriber at home or one company
 * has, but a mobile network has 65,000 phones in a /48: 16 times 240 calls are 32 sign-ins a second for them. Nothing
 * is counted beyond an IPv4 address, because each costs its holder something, and thousands of people can share one.
 */
const shares = [1, 4, 16] as const

/**
 * Most networks of each width to remember. One that is forgotten has its full allowance again; that happens at the earliest after
 * half as many others were seen.
 */
const maxBuckets = 50_000

const minuteMs = 60_000

interface Bucket {
  tokens: number
  refilledAt: number
}

/**
 * Token buckets in this process's memory. Each instance counts for itself, so the limit over several instances is
 * higher, and no call waits for the store.
 */
export class RateLimiter {
  /** Apart for each width, so that a flood from many narrow networks does not push out the wide ones that they are in. */
  readonly #widths = shares.map((share) => new Allowances(share))

  /**
   * Takes one call from the allowances of an address and of the networks around it. RATE_LIMITED, with the time to wait, if one
   * of them has none left; then none is taken from the others, so that refused calls use up nobody's allowance. If the
   * address is unknown, nothing is counted: with one bucket for all such clients, one could lock out the others.
   */
  spend(group: RateLimitGroup, ip: string | undefined): void {
    if (ip === undefined) return
    const now = Date.now()
    const asked = networksOf(ip).map((network, width) =>
      (this.#widths[width] as Allowances).ask(`${group} ${network}`, callsPerMinute[group], now),
    )
    const retryAfterMs = Math.max(...asked.map(({ waitMs }) => waitMs))
    if (retryAfterMs > 0) {
      throw new CountersignError(
        'RATE_LIMITED',
        'Too many requests from this address or its network; try again later',
        {
          retryAfterMs,
        },
      )
    }
    for (const { take } of asked) take()
  }
}

/** What an allowance says about a call. */
interface Asked {
  /** Time in ms after which there is a call left; 0 if there is one now. */
  readonly waitMs: number
  /** Takes that call. */
  readonly take: () => void
}

/**
 * The allowances of all networks of one width, in two generations: what was seen since the younger one began, and what was seen
 * before. A map in the order of use, from which the first entry is deleted for each new one, takes a tenth of a millisecond for
 * each call of a flood from many networks, because its iterator has to pass over all that was deleted.
 */
class Allowances {
  readonly #share: number
  #younger = new Map<string, Bucket>()
  #older = new Map<string, Bucket>()

  constructor(share: number) {
    this.#share = share
  }

  /** Looks whether a bucket has a call left. One that is full, because nothing was ever taken from it, is not remembered. */
  ask(key: string, callsPerMinute: number, now: number): Asked {
    const capacity = callsPerMinute * this.#share
    const known = this.#younger.get(key) ?? this.#older.get(key)
    if (known !== undefined) this.#remember(key, known)
    const bucket = known ?? { tokens: capacity, refilledAt: now }
    const elapsedMs = Math.max(0, now - bucket.refilledAt)
    bucket.tokens = Math.min(capacity, bucket.tokens + (elapsedMs * capacity) / minuteMs)
    bucket.refilledAt = now
    return {
      waitMs: bucket.tokens >= 1 ? 0 : Math.ceil(((1 - bucket.tokens) * minuteMs) / capacity),
      take: () => {
        bucket.tokens -= 1
        this.#remember(key, bucket)
      },
    }
  }

  #remember(key: string, bucket: Bucket): void {
    this.#younger.set(key, bucket)
    if (this.#younger.size < maxBuckets / 2) return
    this.#older = this.#younger
    this.#younger = new Map()
  }
}
