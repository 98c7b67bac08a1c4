/** Time limit of a call, in milliseconds, unless the client's options say otherwise. */
export const defaultTimeoutMs = 15_000

/** A signal that aborts when the caller's does, and at the latest after `timeoutMs` milliseconds. */
export function withTimeLimit(signal: AbortSignal | undefined, timeoutMs: number): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs)
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout])
}
