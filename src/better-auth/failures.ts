import type { GenericEndpointContext } from '@better-auth/core'
import { BetterAuthError } from 'better-auth'
import { APIError, isAPIError } from 'better-auth/api'
import { CountersignError, type ErrorReason, reasons } from '../errors.ts'
import { retryAfterSeconds, toFailure } from '../rpc/connect-errors.ts'

/** One entry of a plugin's `$ERROR_CODES`. */
export interface ErrorCode {
  readonly code: ErrorReason
  readonly message: string
}

/** The codes that the plugins' endpoints answer with, for Better Auth's `$ERROR_CODES`. The message of an answer says more. */
export const errorCodes: Readonly<Record<ErrorReason, ErrorCode>> = Object.fromEntries(
  Object.keys(reasons).map((reason) => [reason, { code: reason as ErrorReason, message: inWords(reason) }]),
) as Record<ErrorReason, ErrorCode>

function inWords(reason: string): string {
  const words = reason.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/**
 * What Better Auth is told of a failure: an `APIError` with the HTTP status of its reason and `{code, message}` as the body.
 * The cause of what is nobody's fault but the server's goes to Better Auth's log.
 */
export function apiError(ctx: GenericEndpointContext, thrown: unknown): APIError {
  const failure = toFailure(thrown)
  const { reason, message, httpStatus, retryAfterMs, cause } = failure
  if (httpStatus >= 500) ctx.context.logger.error(`${reason}: ${message}`, cause)
  const headers: Record<string, string> =
    retryAfterMs === undefined ? {} : { 'retry-after': retryAfterSeconds(retryAfterMs) }
  return new APIError(httpStatus as 400, { code: reason, message }, headers)
}

/**
 * Runs a step that Better Auth or its database takes. What a hook of the application refuses becomes LOGIN_REFUSED with the
 * hook's own words, and what the database does not answer STORE_UNAVAILABLE: an outage is never told as a wrong proof.
 */
export async function guarded<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (cause) {
    // Better Auth's own errors are of its configuration or data; to say that it is away would have callers try for ever.
    if (cause instanceof CountersignError || cause instanceof BetterAuthError) throw cause
    if (isAPIError(cause) && cause.statusCode < 500) {
      throw new CountersignError('LOGIN_REFUSED', cause.body?.message ?? 'The application refused the sign-in', {
        cause,
      })
    }
    throw new CountersignError('STORE_UNAVAILABLE', 'The database does not answer; try again shortly', {
      retryAfterMs: 1000,
      cause,
    })
  }
}
