import { isIPv6 } from 'node:net'
import { CountersignError } from './errors.ts'

/** A group of calls that share an allowance, each client address having its own. */
export type RateLimitGroup = 'sign-in' | 'start order' | 'order' | 'session'

/**
 * Calls a minute, which may also come at once. Generous, because many people can share one address: they are there to keep
 * a single client from filling the store or wearing out the verifier, not to guard secrets, which have 256 bits.
 */
export const callsPerMinute: Record<RateLimitGroup, number> = {
  'sign-in': 240,
  'start order': 120,
  order: 1200,
  session: 2400,
}

/** Addresses remembered at most. Beyond it the least recently seen is forgotten, which only forgives. */
const maxBuckets = 50_000

const minuteMs = 60_000

interface Bucket {
  tokens: number
  refilledAt: number
}

/**
 * Token buckets in this process's memory: each instance counts for itself, so the limits of a cluster are those times its
 * instances, and a store that is away does not matter.
 */
export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>()

  /**
   * Takes one call from an address's allowance; RATE_LIMITED, with the time to wait, when none is left. Without an address
   * nothing is counted, because one bucket for all clients would let one lock out the others.
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
    // Set anew, so that the map's order is that of use.
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

/** What counts as one client: an IPv4 address, or an IPv6 /64, which is what one subscriber has. */
function networkOf(ip: string): string {
  const address = ip.split('%')[0] as string
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const rest = tail === '' ? [] : tail.split(':')
    while (groups.length + rest.length < 8) groups.push('0')
    groups.push(...rest)
  }
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
