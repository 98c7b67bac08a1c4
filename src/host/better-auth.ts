import type { AuthContext } from 'better-auth'
import { setRequestCookie } from 'better-auth/cookies'
import { guarded } from '../better-auth/failures.ts'
import type { RequestContext } from '../request.ts'
import type { CurrentSession, Host, IssuedSession } from './host.ts'

/** What is used of a Better Auth server: any that has the plugin `walletSignIn`. */
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
 * Better Auth as the host of a Countersign service in the same process: its users, sessions, cookies and hooks. The server
 * must have the plugin `walletSignIn`, whose options (`resolveLogin`, `syncAddressToUser` and `syncPublicKeyToUser` among
 * them) then count, and not the service's own.
 *
 * Cookies are accepted from Better Auth's trusted origins; so the origins that the service trusts belong there, too.
 *
 * Throws a `TypeError` for a server without the plugin.
 */
export function betterAuthHost(auth: WalletAuth): Host {
  if (typeof auth?.api?.runWithWalletHost !== 'function') {
    throw new TypeError('betterAuthHost needs a Better Auth server with the plugin walletSignIn')
  }

  /** Runs a step inside one of Better Auth's endpoints; the cookies that Better Auth set there come along. */
  const inside = async <T>(
    headers: Headers,
    run: (host: Host) => Promise<T>,
  ): Promise<{ result: T; cookies: readonly string[] }> => {
    // Guarded, because hooks of the application run before and after it.
    const answer = await guarded(() => auth.api.runWithWalletHost({ body: { run }, headers, returnHeaders: true }))
    return { result: answer.response as T, cookies: answer.headers?.getSetCookie() ?? [] }
  }

  /** Better Auth reads sessions from its cookie; its own bearer plugin puts a token there, too. */
  const withCredential = async ({ headers }: RequestContext): Promise<Headers> => {
    const bearer = /^Bearer +(\S+)\s*$/i.exec(headers.get('authorization') ?? '')?.[1]
    if (bearer === undefined) return headers
    const { authCookies } = await auth.$context
    const copy = new Headers(headers)
    setRequestCookie(copy, authCookies.sessionToken.name, bearer)
    return copy
  }

  return {
    async resolveUser(identity, request) {
      return (await inside(request.headers, (host) => host.resolveUser(identity, request))).result
    },
    async createSession(user, identity, request, order): Promise<IssuedSession> {
      const { result, cookies } = await inside(request.headers, (host) =>
        host.createSession(user, identity, request, order),
      )
      return { ...result, cookies }
    },
    async currentSession(request): Promise<CurrentSession> {
      const headers = await withCredential(request)
      const { result, cookies } = await inside(headers, (host) => host.currentSession(request))
      return { ...result, cookies }
    },
    async signOut(request) {
      return (await inside(request.headers, (host) => host.signOut(request))).cookies
    },
    async listSessions(userId, request) {
      return (await inside(request.headers, (host) => host.listSessions(userId, request))).result
    },
    async revokeSession(userId, sessionId, request) {
      return (await inside(request.headers, (host) => host.revokeSession(userId, sessionId, request))).result
    },
    async introspect(token) {
      return (await inside(new Headers(), (host) => host.introspect(token))).result
    },
  }
}
