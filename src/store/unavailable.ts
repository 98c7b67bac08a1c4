import { CountersignError } from '../errors.ts'

/** What a caller is told to wait when an embedded store does not answer, in milliseconds. */
const retryAfterMs = 1000

/** What a step of an embedded store rejects with that fails for a reason of the store's. */
export function storeUnavailable(message: string, cause?: unknown): CountersignError {
  return new CountersignError('STORE_UNAVAILABLE', message, { retryAfterMs, cause })
}

/** What the methods of a store reject with once it is closed. */
export function storeClosed(): CountersignError {
  return storeUnavailable('The store is closed')
}
