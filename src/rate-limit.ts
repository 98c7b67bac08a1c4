import { CountersignError } from './errors.ts'
import { networkOf } from './request.ts'

/** A group of calls that share an allowance. Each client address has its own. */
export type RateLimitGroup = 'sign-in' | 'start order' | 'order' | 'session'

/**
 * Calls per minute, which can also come all at once. Generous, because many people can share an address: the limits
 * keep one client from filling the store or overloading the verifier. They do not protect secrets, which have 256 bits.
 */
export const callsPerMinute: Record<RateLimitGroup, number> = {
  'sign-in': 240,
  'start order': 120,
  order: 1200,
  session: 2400,
}

/** Most addresses to remember. One more replaces the least recently seen, which then has its full allowance again. */
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
  readonly #buckets = new Map<string, Bucket>()

  /**
   * Takes one call from an address's allowance. RATE_LIMITED, with the time to wait, if none is left. If the address is
   * unknown, nothing is counted: with one bucket for all such clients, one could lock out the others.
   */
  spend(group: RateLimitGroup, ip: string | undefined): void {
    if (ip === undefined) return
    const key = `${group} ${networkOf(ip)}`
    const capacity = callsPerMinute[group]
    const now = Date.now()
    const bucket = this.#buckets.get(key) ?? { tokens: capacity, refilledAt: now }
    const elapsedMs = Math.max(0, now - bucket.refilledAt)
    bucket.tokens = Math.min(capacity, bucket.tokens + (elapsedMs * capacity) / minuteMs)
    bucket.refilledAt = now
    // Deleted first, so that the map is in the order of use.
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    if (this.#buckets.size > maxBuckets) this.#buckets.delete(this.#buckets.keys().next().value as string)
    if (bucket.tokens < 1) {
      const retryAfterMs = Math.ceil(((1 - bucket.tokens) * minuteMs) / capacity)
      throw new CountersignError('RATE_LIMITED', 'Too many requests from this address; try again later', {
        retryAfterMs,
      })
    }
    bucket.tokens -= 1
  }
}
