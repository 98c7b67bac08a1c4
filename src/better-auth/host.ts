import type { AuthContext } from 'better-auth'
import { setRequestCookie } from 'better-auth/cookies'
import { bearerToken, type RequestContext } from '../base/request.ts'
import type { CurrentSession, Host, IssuedSession } from '../core/users/host.ts'
import { guarded } from './failures.ts'

/** The part of a Better Auth server that is used here. Any server with the plugin `walletSignIn` has it. */
export interface WalletAuth {
  readonly $context: Promise<Pick<AuthContext, 'authCookies'>>
  readonly api: {
    runWithWalletHost(call: {
      body: { run: (host: Host) => Promise<unknown> }
      headers: Headers
      returnHeaders: true
    }): Promise<{ headers?: Headers | null | undefined; response: unknown }>
  }
}

/**
 * Better Auth as the host of a Countersign service in the same process, with its users, sessions, cookies and hooks.
 * The server must have the plugin `walletSignIn`. The plugin's `resolveLogin`, `syncAddressToUser` and
 * `syncPublicKeyToUser` then count, and not the service's own.
 *
 * Cookies are accepted from Better Auth's trusted origins only, so add the origins that the service trusts to them.
 *
 * Throws a `TypeError` if the server does not have the plugin.
 */
export function betterAuthHost(auth: WalletAuth): Host {
  if (typeof auth?.api?.runWithWalletHost !== 'function') {
    throw new TypeError('betterAuthHost needs a Better Auth server with the plugin walletSignIn')
  }

  /**
   * Runs a step inside one of Better Auth's endpoints. Resolves with its result and the cookies that Better Auth set
   * there.
   */
  const inside = async <T>(
    headers: Headers,
    run: (host: Host) => Promise<T>,
  ): Promise<{ result: T; cookies: readonly string[] }> => {
    // Guarded, because hooks of the application run before and after the step.
    const answer = await guarded(() => auth.api.runWithWalletHost({ body: { run }, headers, returnHeaders: true }))
    return { result: answer.response as T, cookies: answer.headers?.getSetCookie() ?? [] }
  }

  const resultOf = async <T>(headers: Headers, run: (host: Host) => Promise<T>): Promise<T> =>
    (await inside(headers, run)).result

  /** Better Auth reads sessions from its cookie; its own bearer plugin puts a token there, too. */
  const withCredential = async (request: RequestContext): Promise<Headers> => {
    const { headers } = request
    const bearer = bearerToken(request)
    if (bearer === undefined) return headers
    const { authCookies } = await auth.$context
    const copy = new Headers(headers)
    setRequestCookie(copy, authCookies.sessionToken.name, bearer)
    return copy
  }

  return {
    resolveUser: (identity, request) => resultOf(request.headers, (host) => host.resolveUser(identity, request)),
    async createSession(user, identity, request, order): Promise<IssuedSession> {
      const { result, cookies } = await inside(request.headers, (host) =>
        host.createSession(user, identity, request, order),
      )
      return { ...result, cookies }
    },
    orderSessionId: ({ orderId }) => orderId,
    endOrderSession: (session) => resultOf(new Headers(), (host) => host.endOrderSession(session)),
    async currentSession(request): Promise<CurrentSession> {
      const headers = await withCredential(request)
      const { result, cookies } = await inside(headers, (host) => host.currentSession(request))
      return { ...result, cookies }
    },
    async signOut(request) {
      return (await inside(request.headers, (host) => host.signOut(request))).cookies
    },
    listSessions: (userId, request) => resultOf(request.headers, (host) => host.listSessions(userId, request)),
    revokeSession: (userId, sessionId, request) =>
      resultOf(request.headers, (host) => host.revokeSession(userId, sessionId, request)),
    introspect: (token) => resultOf(new Headers(), (host) => host.introspect(token)),
  }
}
