import { toClientError } from './connect.ts'
import { CountersignClientError } from './errors.ts'
import { withTimeLimit } from './time-limit.ts'

/** Options of every call. */
export interface CallOptions {
  /** Ends the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** A call of a generated client, waiting for its signal. */
export type Call<Response> = (options: { readonly signal: AbortSignal }) => Promise<Response>

/** Makes a call with a time limit. Rejects with a `CountersignClientError`. */
export async function run<Response>(
  call: Call<Response>,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<Response> {
  try {
    return await call({ signal: withTimeLimit(signal, timeoutMs) })
  } catch (thrown) {
    const error = toClientError(thrown, signal)
    // A call over REST sees one signal, and cannot tell the end of the time limit from the caller's.
    if (error.code !== 'ABORTED' || signal?.aborted) throw error
    throw new CountersignClientError('NETWORK', 'The service did not answer', { cause: error.cause })
  }
}
