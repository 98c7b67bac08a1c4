import type { Life } from './store.ts'

/** Longest life that is not forever, in milliseconds: 10 years of 365 days. */
const maxTtlMs = 10 * 365 * 24 * 60 * 60 * 1000

/**
 * Checks a life and returns its milliseconds, or undefined if it is forever.
 *
 * @throws TypeError unless the life is 'forever' or a whole number of milliseconds from 1 to 10 years of 365 days.
 */
export function ttlMsOf(life: Life): number | undefined {
  if (life === 'forever') return undefined
  const { ttlMs } = life
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > maxTtlMs) {
    throw new TypeError(`ttlMs must be a whole number of milliseconds from 1 to ${maxTtlMs}, but is ${ttlMs}`)
  }
  return ttlMs
}
