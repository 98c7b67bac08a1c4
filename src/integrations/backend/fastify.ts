import type { AuthInfo, ProtectedResource } from './protected-resource.ts'
import { admission, type GuardOptions } from './refusal.ts'
import type { NodeRequest } from './request.ts'
import type { Session } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** What the guard uses of Fastify's request. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest & { readonly url?: string | undefined }
}

/** What the guard uses of Fastify's reply. */
export interface FastifyReplyLike {
  code(status: number): { headers(values: Record<string, string>): { send(body: object | string | null): unknown } }
}

/** What the guard of a resource uses of Fastify's reply. */
export interface FastifyResourceReply extends FastifyReplyLike {
  readonly raw: { setHeader(name: string, value: string): unknown }
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

/**
 * Fastify hook (`onRequest`, of the whole application) that lets only requests with a token for this resource through.
 * {@link authOf} returns what it says, which MCP's SDK finds in `request.raw.auth`. It also answers preflights and
 * serves the metadata.
 */
export function requireToken(
  resource: ProtectedResource,
): (request: FastifyRequestLike, reply: FastifyResourceReply) => Promise<unknown> {
  return async ({ raw }, reply) => {
    const { answer, auth, headers } = await resource.check(raw)
    if (answer !== undefined) return reply.code(answer.status).headers(answer.headers).send(answer.body)
    // Also for a handler that writes to the raw response, as MCP's SDK does.
    for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value)
    Object.assign(raw, { auth })
    return undefined
  }
}

/** What the token of a request says that {@link requireToken} let through. Throws a `TypeError` without that hook. */
export function authOf({ raw }: FastifyRequestLike): AuthInfo {
  const { auth } = raw as { readonly auth?: AuthInfo }
  if (auth === undefined) throw new TypeError('authOf needs the hook requireToken on the route')
  return auth
}
