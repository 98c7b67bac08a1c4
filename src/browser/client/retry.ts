import type { ApiCall } from './api.ts'
import { run } from './call.ts'
import { aborted, CountersignClientError, isPassing } from './errors.ts'
import { onWake } from './page.ts'

/** First and longest wait between two tries, in milliseconds. */
const waits = { first: 250, longest: 10_000 } as const

/** Wait before the next try, in milliseconds: doubled with each failure, then reduced at random by up to a half. */
export function backoffMs(failures: number): number {
  const full = Math.min(waits.longest, waits.first * 2 ** Math.min(failures, 16))
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return full / 2 + (random / 2 ** 32) * (full / 2)
}

/**
 * Waits before the next try: until the page wakes up at the latest, but for the full `retryAfterMs` if the server asked
 * for it. Rejects with ABORTED.
 */
export async function pause(failures: number, retryAfterMs: number | undefined, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) throw aborted(signal)
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      stopListening()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, Math.max(backoffMs(failures), retryAfterMs ?? 0))
    const stopListening = retryAfterMs === undefined ? onWake(end) : () => {}
    signal?.addEventListener('abort', end)
  })
  if (signal?.aborted) throw aborted(signal)
}

/**
 * Makes a call, and retries it if no answer arrives or the service is unavailable, for up to `forMs` milliseconds. Only
 * for calls whose retry gets the same answer.
 */
export async function retrying<T>(call: () => Promise<T>, signal: AbortSignal | undefined, forMs = 30_000): Promise<T> {
  const startedAt = performance.now()
  for (let failures = 0; ; failures++) {
    try {
      return await call()
    } catch (thrown) {
      if (!(thrown instanceof CountersignClientError) || !isPassing(thrown)) throw thrown
      const spentMs = performance.now() - startedAt + (thrown.retryAfterMs ?? 0)
      if (spentMs >= forMs) throw thrown
      await pause(failures, thrown.retryAfterMs, signal)
    }
  }
}

/** Makes calls that are retried, with this time limit for each try. See {@link retrying}. */
export function retriesOf(timeoutMs: number) {
  return <Answer>(
    call: (options: ApiCall) => Promise<Answer>,
    signal: AbortSignal | undefined,
    forMs?: number,
  ): Promise<Answer> => retrying(() => run(call, signal, timeoutMs), signal, forMs)
}
