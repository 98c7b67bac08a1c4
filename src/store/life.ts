import type { Life } from './store.ts'

const MAX_TTL_MS = 10 * 365 * 24 * 60 * 60 * 1000

/**
 * Checks how long a value is to live and returns the milliseconds, or undefined for ever.
 *
 * @throws TypeError unless the life is 'forever' or a whole number of milliseconds from 1 to 10 years of 365 days.
 */
export function ttlMsOf(life: Life): number | undefined {
  if (life === 'forever') return undefined
  const { ttlMs } = life
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > MAX_TTL_MS) {
    throw new TypeError(`ttlMs must be a whole number of milliseconds from 1 to ${MAX_TTL_MS}, but is ${ttlMs}`)
  }
  return ttlMs
}
