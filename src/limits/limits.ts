import { CountersignError, reasons } from '../shared/errors.ts'

/** Group of calls with one limit in common, for each client address. */
export type RateLimitGroup = 'sign-in' | 'start-order' | 'start-link' | 'order' | 'session'

/**
 * Limit of a rate, in a window of a minute: calls, wrong tokens and codes, sign-ins of a wallet. Wrong codes of a
 * device have a window of ten.
 */
export type RateLimit = RateLimitGroup | 'wrong-token' | 'order-wrong-token' | 'wrong-device-code' | 'wallet-sign-in'

/** Limit of a number at a time. */
export type PlaceLimit = 'open-orders' | 'watchers'

/** Name of a limit, as in the setting and in the metadata of RATE_LIMITED. */
export type LimitName = RateLimit | PlaceLimit

/** Number of each limit. All except `watchers` hold over the instances that share a store. */
export type Limits = Readonly<Record<LimitName, number>>

/**
 * Generous, because many people can share an address: the limits keep one client from filling the store or overloading
 * the verifier. Secrets need none: they have 256 bits.
 */
export const defaultLimits: Limits = {
  'sign-in': 240,
  'start-order': 120,
  'start-link': 30,
  order: 1200,
  session: 2400,
  'wrong-token': 300,
  'order-wrong-token': 60,
  'wrong-device-code': 10,
  'open-orders': 500,
  watchers: 2000,
  'wallet-sign-in': 60,
}

/** Window of a rate in ms. A code of a device is short enough to be guessed. */
export function windowMsOf(limit: RateLimit): number {
  return limit === 'wrong-device-code' ? 600_000 : 60_000
}

/** Largest body of a request, and largest decompressed message, in bytes. */
export const maxBodyBytes: number = 64 * 1024

/** Largest form or JSON of the issuer, in bytes. */
export const maxFormBytes: number = 16 * 1024

/** Most live sessions of a user. One more ends the one that expires soonest. */
export const maxSessionsPerUser = 100

/** Most instances of one store for which the limits hold. Each may have a sixteenth that is unreported. */
export const mostInstances = 16

/** Smallest and largest number that a limit can have. */
export const limitRange = { min: 1, max: 100_000 } as const

/**
 * Multiples of an address's limit for the networks around it, in the order of `networksOf`: an IPv4 address or an IPv6
 * /64 once, a /56 4 times, a /48 16 times. One subscriber at home or one company has a /56 or a /48, but a mobile
 * network has 65,000 phones in a /48: 16 times 240 calls are 32 sign-ins a second for them. An IPv4 address is in no
 * wider network: each costs its holder something, and thousands of people can share one.
 */
export const networkShares: readonly number[] = [1, 4, 16]

/** Messages of the limits other than those on calls of an address. */
const messages: Partial<Readonly<Record<LimitName, string>>> = {
  'wrong-token': 'Too many wrong tokens came from this address or its network; try again later',
  'order-wrong-token': 'Too many wrong tokens were tried for this order; try again later',
  'wrong-device-code': 'Too many wrong codes came from this address or its network; try again later',
  'open-orders': 'Too many orders of this address or its network are open; finish or cancel one, or try again later',
  watchers: 'Too many streams of events of this address or its network are open; close one, or try again later',
  'wallet-sign-in': 'This wallet signs in too often; sign again later',
}

/** The refusal at a limit. `retryAfterMs`: time in ms after which a retry can succeed. */
export function rateLimited(limit: LimitName, retryAfterMs: number, cause?: unknown): CountersignError {
  const message = messages[limit] ?? reasons.RATE_LIMITED.text
  return new CountersignError('RATE_LIMITED', message, { retryAfterMs, metadata: { limit }, cause })
}
