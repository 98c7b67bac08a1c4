import { admission, type GuardOptions } from './refusal.ts'
import type { NodeRequest } from './request.ts'
import type { Session } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** What the guard uses of Fastify's request. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest
}

/** What the guard uses of Fastify's reply. */
export interface FastifyReplyLike {
  code(status: number): { headers(values: Record<string, string>): { send(body: object): unknown } }
}

/** By request: a property of the request would clash with those of session plugins. */
const sessions = new WeakMap<object, Session>()

/**
 * Fastify hook (`onRequest` or any later one, of the application, a plugin or a route) that lets only requests with a
 * live session through, which {@link sessionOf} returns. All others are answered with 401, with 403 if the cookie does
 * not count because of the Origin or the user is in none of the groups, or with 503 if sessions cannot be checked at
 * the moment.
 */
export function requireSession(
  verifier: SessionVerifier,
  options?: GuardOptions,
): (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown> {
  const admit = admission(verifier, options)
  return async (request, reply) => {
    const admitted = await admit(request.raw)
    if ('refusal' in admitted) {
      const { status, headers, body } = admitted.refusal
      // A hook that returns what it sent ends the request.
      return reply.code(status).headers(headers).send(body)
    }
    sessions.set(request.raw, admitted.session)
    return undefined
  }
}

/**
 * The session of a request that {@link requireSession} let through. Throws a `TypeError` if it did not see the request.
 */
export function sessionOf(request: FastifyRequestLike): Session {
  const session = sessions.get(request.raw)
  if (session === undefined) throw new TypeError('sessionOf needs the hook requireSession on the route')
  return session
}
