import { aborted, CountersignClientError } from './errors.ts'
import { withTimeLimit } from './time-limit.ts'

/** Options of every call. */
export interface CallOptions {
  /** Ends the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** Makes a call with a time limit. Rejects with a `CountersignClientError`. */
export async function run<Answer>(
  call: (options: { readonly signal: AbortSignal }) => Promise<Answer>,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<Answer> {
  try {
    return await call({ signal: withTimeLimit(signal, timeoutMs) })
  } catch (thrown) {
    throw callError(thrown, signal)
  }
}

/**
 * The error of a call that was given a signal of its own: only the caller's signal makes it ABORTED. If the call was ended for
 * another reason, it had no answer.
 */
export function callError(thrown: unknown, signal: AbortSignal | undefined): CountersignClientError {
  if (signal?.aborted) return aborted(signal)
  if (thrown instanceof CountersignClientError && thrown.code !== 'ABORTED') return thrown
  return new CountersignClientError('NETWORK', 'The service did not answer', { cause: thrown })
}
