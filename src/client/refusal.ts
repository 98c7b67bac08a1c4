import { type ClientErrorCode, CountersignClientError } from './errors.ts'

/** A REST answer that is not a success. */
export interface Refusal {
  /** HTTP status. */
  readonly status: number
  /** `code` of the body. */
  readonly code?: unknown
  /** `message` of the body. */
  readonly message?: unknown
  /** `triesLeft` of the body, for a wrong code. */
  readonly triesLeft?: unknown
  /** Time from the Retry-After header, in milliseconds. */
  readonly retryAfterMs?: number | undefined
}

/** The error that a REST answer stands for. Only the service itself answers with a code and a message. */
export function refusalError({ status, code, message, triesLeft, retryAfterMs }: Refusal): CountersignClientError {
  if (typeof code === 'string' && typeof message === 'string') {
    const tries = typeof triesLeft === 'number' ? { triesLeft } : {}
    return new CountersignClientError(code as ClientErrorCode, message, { retryAfterMs, ...tries })
  }
  // A proxy that does not reach the service.
  return [429, 502, 503, 504].includes(status)
    ? new CountersignClientError('NETWORK', `The service did not answer: HTTP ${status}`, { retryAfterMs })
    : new CountersignClientError('UNEXPECTED_ANSWER', `Unexpected answer: HTTP ${status}`)
}
