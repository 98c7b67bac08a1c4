import {
  Code,
  ConnectError,
  type ContextKey,
  type ContextValues,
  createContextKey,
  type Interceptor,
} from '@connectrpc/connect'
import { admission, type GuardOptions } from './refusal.ts'
import type { Session } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** Where a handler's context has the session: `context.values.get(sessionKey)`. */
export const sessionKey: ContextKey<Session | undefined> = createContextKey<Session | undefined>(undefined, {
  description: 'countersign session',
})

const codes = { 401: Code.Unauthenticated, 403: Code.PermissionDenied, 503: Code.Unavailable } as const

/**
 * Interceptor for servers of Connect that lets only calls with a live session through, over Connect, gRPC and gRPC-Web.
 * Handlers get it by {@link sessionOf}. All others end with `unauthenticated`, with `permission_denied` if the cookie
 * does not count because of the Origin or the user is in none of the groups, or with `unavailable` if sessions cannot
 * be checked at the moment. A stream is checked once, when it begins.
 */
export function requireSession(verifier: SessionVerifier, options?: GuardOptions): Interceptor {
  const admit = admission(verifier, options)
  return (next) => async (request) => {
    const { header: headers, requestMethod: method, url } = request
    const admitted = await admit({ headers, method, url })
    if ('refusal' in admitted) {
      const { status, headers: answered, body } = admitted.refusal
      throw new ConnectError(body.message, codes[status], answered)
    }
    request.contextValues.set(sessionKey, admitted.session)
    return await next(request)
  }
}

/** The session of a call that {@link requireSession} let through. Throws a `TypeError` if it did not see the call. */
export function sessionOf(context: { readonly values: ContextValues }): Session {
  const session = context.values.get(sessionKey)
  if (session === undefined) throw new TypeError('sessionOf needs the interceptor requireSession on the service')
  return session
}
