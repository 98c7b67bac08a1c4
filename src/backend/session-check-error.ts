/**
 * Why a session could not be checked:
 *
 * - SERVICE_UNAVAILABLE: the service did not answer in time, could not be reached, or said that it cannot answer at the moment.
 * - UNEXPECTED_ANSWER: what answered is not the service; check `url`.
 */
export type SessionCheckErrorReason = 'SERVICE_UNAVAILABLE' | 'UNEXPECTED_ANSWER'

/** Details of a {@link SessionCheckError}. */
export interface SessionCheckErrorOptions {
  /** Time after which a retry can succeed, in milliseconds, if the service stated one. */
  readonly retryAfterMs?: number | undefined
  /** The error underneath: the network's or the service's. */
  readonly cause?: unknown
}

/**
 * The error that a check of a session rejects with if nobody can say at the moment whether the token is valid. It never means
 * "signed out": answer with HTTP 503, because a client that reads 401 throws its token away.
 */
export class SessionCheckError extends Error {
  override readonly name = 'SessionCheckError'
  readonly reason: SessionCheckErrorReason
  readonly retryAfterMs: number | undefined

  constructor(reason: SessionCheckErrorReason, message: string, options: SessionCheckErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.retryAfterMs = options.retryAfterMs
  }
}
