import { CountersignClientError } from '../errors.ts'

/** The coded error for anything that was thrown: what has no code was a mistake in how the element is used. */
export function failureOf(thrown: unknown): CountersignClientError {
  // The page's own client may be another copy of the code, with a class of its own.
  if (thrown instanceof Error && thrown.name === 'CountersignClientError') return thrown as CountersignClientError
  return new CountersignClientError('INVALID_REQUEST', String(thrown), { cause: thrown })
}
