import type { Life } from './store.ts'

/** Longest life that is not forever, in milliseconds: 10 years of 365 days. */
const maxTtlMs = 10 * 365 * 24 * 60 * 60 * 1000

/**
 * Checks a life and returns its milliseconds, or undefined if it is forever.
 *
 * @throws TypeError unless the life is 'forever' or a whole number of milliseconds from 1 to 10 years of 365 days.
 */
function ttlMsOf(life: Life): number | undefined {
  if (life === 'forever') return undefined
  const { ttlMs } = life
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > maxTtlMs) {
    throw new TypeError(`ttlMs must be a whole number of milliseconds from 1 to ${maxTtlMs}, but is ${ttlMs}`)
  }
  return ttlMs
}

/** Does a step with a life in milliseconds, or rejects if the life is out of bounds: the methods of a store never throw. */
export function withTtl<T>(life: Life, step: (ttlMs: number | undefined) => Promise<T>): Promise<T> {
  let ttlMs: number | undefined
  try {
    ttlMs = ttlMsOf(life)
  } catch (thrown) {
    return Promise.reject(thrown)
  }
  return step(ttlMs)
}
