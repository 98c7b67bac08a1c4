import { aborted, CountersignClientError } from './errors.ts'

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
 * Makes a call that only pages of trusted origins may make, with a time limit. A browser hides why it failed: if the
 * service at `baseUrl` answers what needs no permission, it was the page's origin. Rejects with a
 * `CountersignClientError`.
 */
export async function runTrusted<Answer>(
  call: (options: { readonly signal: AbortSignal }) => Promise<Answer>,
  signal: AbortSignal | undefined,
  timeoutMs: number,
  baseUrl: string,
): Promise<Answer> {
  try {
    return await run(call, signal, timeoutMs)
  } catch (thrown) {
    const { cause } = thrown as CountersignClientError
    // Fetch rejects so both if there is no answer and if the page may not read it.
    if (!(cause instanceof TypeError) || !(await answersElsewhere(baseUrl, timeoutMs))) throw thrown
    const message = `The origin ${location.origin} is not in trustedOrigins`
    throw new CountersignClientError('ORIGIN_NOT_TRUSTED', message, { cause })
  }
}

/** Whether a service at another origin than the page's answers at all. */
async function answersElsewhere(baseUrl: string, timeoutMs: number): Promise<boolean> {
  if (globalThis.location === undefined || new URL(baseUrl, location.href).origin === location.origin) return false
  const question = { mode: 'no-cors', credentials: 'omit', signal: withTimeLimit(undefined, timeoutMs) } as const
  // Not the page at the root, which other origins may not load.
  return await fetch(`${baseUrl}/healthz`, question).then(
    () => true,
    () => false,
  )
}

/**
 * The error of a call that was given a signal of its own: only the caller's signal makes it ABORTED. If the call was
 * ended for another reason, it had no answer.
 */
export function callError(thrown: unknown, signal: AbortSignal | undefined): CountersignClientError {
  if (signal?.aborted) return aborted(signal)
  if (thrown instanceof CountersignClientError && thrown.code !== 'ABORTED') return thrown
  return new CountersignClientError('NETWORK', 'The service did not answer', { cause: thrown })
}

/** Time limit of a call, in milliseconds, unless the client's options say otherwise. */
export const defaultTimeoutMs = 15_000

/** A signal that aborts when the caller's does, and at the latest after `timeoutMs` milliseconds. */
export function withTimeLimit(signal: AbortSignal | undefined, timeoutMs: number): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs)
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout])
}

/** Throws a `TypeError` unless this is the http or https address of a service, or empty for the page's own origin. */
export function requireHttp(baseUrl: string): void {
  if (baseUrl === '') return
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new TypeError(`baseUrl must be an http or https address, not ${baseUrl}`)
  }
}
