import type { RequestInput } from './request.ts'
import { type Session, SessionCheckError } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** The answer of a guard to a call that it does not let through. */
export interface Refusal {
  /**
   * HTTP status: 401 for a call without a live session, 403 for one whose cookie does not count because of its Origin,
   * 503 if sessions cannot be checked at the moment.
   */
  readonly status: 401 | 403 | 503
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>
  /** Body of the answer, in the form of Countersign's own errors. */
  readonly body: {
    readonly code: 'SESSION_REQUIRED' | 'ORIGIN_NOT_TRUSTED' | 'SERVICE_UNAVAILABLE'
    readonly message: string
  }
}

/**
 * The session of a request, or what to answer without one. Rejects with any other error: that is a mistake in the
 * program.
 */
export async function admit(
  verifier: SessionVerifier,
  request: RequestInput,
): Promise<{ readonly session: Session } | { readonly refusal: Refusal }> {
  try {
    const session = await verifier.verify(request)
    if (session !== undefined) return { session }
    // A verifier of the application's own, or of its tests, can lack the method.
    const message = verifier.cookieRefusal?.(request)
    return { refusal: message === undefined ? signInFirst : originNotTrusted(message) }
  } catch (error) {
    if (error instanceof SessionCheckError) return { refusal: unavailable(error) }
    throw error
  }
}

// Answers about who is signed in are for no cache.
const noStore = { 'cache-control': 'no-store' }

const signInFirst: Refusal = {
  status: 401,
  headers: noStore,
  body: { code: 'SESSION_REQUIRED', message: 'This call needs a live session: sign in' },
}

function originNotTrusted(message: string): Refusal {
  return { status: 403, headers: noStore, body: { code: 'ORIGIN_NOT_TRUSTED', message } }
}

function unavailable({ retryAfterMs }: SessionCheckError): Refusal {
  return {
    status: 503,
    headers: {
      ...noStore,
      ...(retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
    },
    body: { code: 'SERVICE_UNAVAILABLE', message: 'Sessions cannot be checked at the moment; try again shortly' },
  }
}
