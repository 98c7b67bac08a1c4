import type { MiddlewareHandler } from 'hono'
import type { AuthInfo, ProtectedResource } from './protected-resource.ts'
import { admission, type GuardOptions } from './refusal.ts'
import type { Session } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** What Hono has for later handlers of a request that {@link requireSession} let through. */
export interface SessionVariables {
  readonly session: Session
}

/**
 * Hono middleware that lets only requests with a live session through. Later handlers find it, with its type, in
 * `c.var.session`. All others are answered with 401, with 403 if the cookie does not count because of the Origin
 * or the user is in none of the groups, or with 503 if sessions cannot be checked at the moment.
 */
export function requireSession(
  verifier: SessionVerifier,
  options?: GuardOptions,
): MiddlewareHandler<{ Variables: SessionVariables }> {
  const admit = admission(verifier, options)
  return async (c, next) => {
    const admitted = await admit(c.req.raw)
    if ('refusal' in admitted) {
      const { status, headers, body } = admitted.refusal
      return c.json(body, status, headers)
    }
    c.set('session', admitted.session)
    await next()
    return undefined
  }
}

/** What Hono has for later handlers of a request that {@link requireToken} let through. */
export interface TokenVariables {
  readonly auth: AuthInfo
}

/**
 * Hono middleware that lets only requests with a token for this resource through, with what it says in `c.var.auth`. It
 * also answers preflights and serves the metadata, so use it for the whole application, before the routes:
 * `app.use(requireToken(resource))`.
 */
export function requireToken(resource: ProtectedResource): MiddlewareHandler<{ Variables: TokenVariables }> {
  return async (c, next) => {
    const { answer, auth, headers } = await resource.check(c.req.raw)
    if (answer !== undefined) return new Response(answer.body, answer)
    // In `c.res`, Hono keeps them also for a Response that a handler makes itself.
    for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value)
    c.set('auth', auth)
    await next()
    return undefined
  }
}
