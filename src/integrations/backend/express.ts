import type { AuthInfo, ProtectedResource, ResourceResponse } from './protected-resource.ts'
import { admission, type GuardOptions } from './refusal.ts'
import type { NodeRequest } from './request.ts'
import type { Session } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** What Express has for later handlers of a request that {@link requireSession} let through: `response.locals`. */
export interface SessionLocals {
  session: Session
}

/** What the guard uses of Express's response. */
export interface ExpressResponse<Locals> {
  locals: Locals
  status(code: number): { set(headers: Record<string, string>): { json(body: object): unknown } }
}

/**
 * Express middleware. By the first signature it fits next to middleware without sessions; from the last
 * one Express infers the type of `response.locals` for later handlers.
 */
export interface ExpressGuard {
  (request: NodeRequest, response: ExpressResponse<object>, next: (error?: unknown) => void): Promise<void>
  (request: NodeRequest, response: ExpressResponse<SessionLocals>, next: (error?: unknown) => void): Promise<void>
}

/**
 * Express middleware that lets only requests with a live session through. Later handlers find it, with its type, in
 * `response.locals.session`. All others are answered with 401, with 403 if the cookie does not count because of the
 * Origin or the user is in none of the groups, or with 503 if sessions cannot be checked at the moment.
 */
export function requireSession(verifier: SessionVerifier, options?: GuardOptions): ExpressGuard {
  const admit = admission(verifier, options)
  return async (request: NodeRequest, response: ExpressResponse<object>, next: (error?: unknown) => void) => {
    try {
      const admitted = await admit(request)
      if ('refusal' in admitted) {
        const { status, headers, body } = admitted.refusal
        response.status(status).set(headers).json(body)
        return
      }
      Object.assign(response.locals, { session: admitted.session } satisfies SessionLocals)
    } catch (error) {
      next(error)
      return
    }
    next()
  }
}

/** A request of Express that {@link requireToken} lets through: it has `auth`. */
export interface TokenRequest extends NodeRequest {
  readonly url?: string | undefined
  readonly originalUrl?: string | undefined
  auth?: AuthInfo
}

/**
 * Express middleware that lets only requests with a token for this resource through, with what it says in
 * `request.auth`. It also answers preflights and serves the metadata, so use it for the whole application
 * (`app.use(requireToken(resource))`), before the routes.
 */
export function requireToken(
  resource: ProtectedResource,
): (request: TokenRequest, response: ResourceResponse, next: (error?: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    let isThrough = false
    try {
      await resource.handle(request, response, () => {
        isThrough = true
      })
    } catch (error) {
      next(error)
      return
    }
    if (isThrough) next()
  }
}
