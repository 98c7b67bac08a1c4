import { BetterAuthError } from 'better-auth'
import { APIError, isAPIError } from 'better-auth/api'
import { failureBody } from '../http/rest/serve.ts'
import { retryAfterSeconds, toFailure } from '../rpc/errors.ts'
import { CountersignError, type ErrorReason, reasons } from '../shared/errors.ts'

/** One entry of a plugin's `$ERROR_CODES`. */
export interface ErrorCode {
  readonly code: ErrorReason
  readonly message: string
}

/** Error codes of the plugins' endpoints, for Better Auth's `$ERROR_CODES`. An answer's own message says more. */
export const errorCodes: Readonly<Record<ErrorReason, ErrorCode>> = Object.fromEntries(
  Object.keys(reasons).map((reason) => [reason, { code: reason as ErrorReason, message: inWords(reason) }]),
) as Record<ErrorReason, ErrorCode>

function inWords(reason: string): string {
  const words = reason.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** A failure as Better Auth's `APIError`: the HTTP status of its reason, and the body that REST answers with. */
export function apiError(thrown: unknown): APIError {
  const failure = toFailure(thrown)
  const { httpStatus, retryAfterMs } = failure
  const headers: Record<string, string> =
    retryAfterMs === undefined ? {} : { 'retry-after': retryAfterSeconds(retryAfterMs) }
  return new APIError(httpStatus as 400, failureBody(failure), headers)
}

/**
 * Runs a step of Better Auth or its database. If a hook of the application refuses, the failure is LOGIN_REFUSED with
 * the hook's own words; if the database does not answer, it is STORE_UNAVAILABLE, so that an outage does not look like
 * a wrong proof.
 */
export async function guarded<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (cause) {
    // Better Auth's own errors are about its configuration or data. As STORE_UNAVAILABLE, callers would retry them
    // forever.
    if (cause instanceof CountersignError || cause instanceof BetterAuthError) throw cause
    if (isAPIError(cause) && cause.statusCode < 500) {
      const words = cause.body?.message
      throw new CountersignError('LOGIN_REFUSED', words ?? 'The application refused the sign-in', {
        ...(words === undefined ? {} : { metadata: { application_message: words } }),
        cause,
      })
    }
    throw new CountersignError('STORE_UNAVAILABLE', 'The database does not answer; try again shortly', {
      retryAfterMs: 1000,
      cause,
    })
  }
}
