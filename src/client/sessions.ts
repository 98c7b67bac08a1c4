import type { Message } from '@bufbuild/protobuf'
import { type Services, toClientError } from './connect.ts'
import { CountersignClientError } from './errors.ts'
import type { CallOptions } from './orders.ts'
import { plain } from './plain.ts'
import { callSignal } from './rest.ts'
import type { TokenStore } from './token-store.ts'
import type { Session } from './types.ts'

/** The signed-in user's sessions. */
export interface SessionCalls {
  /**
   * The caller's session; `undefined` when nobody is signed in. Rejects when that is not known, because the service is away
   * or did not answer: keep showing the user as signed in then.
   */
  getCurrentSession(options?: CallOptions): Promise<Session | undefined>
  /**
   * Ends this session and drops the stored token. Rejects, and keeps the token, when the service did not say that the session
   * is over.
   */
  signOut(options?: CallOptions): Promise<void>
  /** The user's live sessions, newest first. */
  listSessions(options?: CallOptions): Promise<readonly Session[]>
  /** Ends one of the user's sessions. SESSION_NOT_FOUND when it is gone already. */
  revokeSession(sessionId: string, options?: CallOptions): Promise<void>
  /** Ends all of the user's sessions but this one; resolves with their number. */
  revokeOtherSessions(options?: CallOptions): Promise<number>
}

/** Sessions over the generated client. */
export function sessionCalls(service: Services['session'], tokens: TokenStore, timeoutMs: number): SessionCalls {
  const run = async <T extends Message>(
    call: (options: { signal: AbortSignal }) => Promise<T>,
    { signal }: CallOptions = {},
  ): Promise<T> => {
    const sent = tokens.read()
    try {
      return await call({ signal: callSignal(signal, timeoutMs) })
    } catch (thrown) {
      const error = toClientError(thrown, signal)
      // Only when the service itself says so: an outage is no reason to lose a good token.
      if (error.code === 'SESSION_INVALID') tokens.forget(sent)
      throw error
    }
  }
  const orIfOver = async <T>(call: Promise<T>): Promise<T | undefined> => {
    try {
      return await call
    } catch (thrown) {
      if (thrown instanceof CountersignClientError && over.has(thrown.code)) return undefined
      throw thrown
    }
  }
  return {
    async getCurrentSession(options) {
      const response = await orIfOver(run((call) => service.getCurrentSession({}, call), options))
      return response?.session === undefined ? undefined : plain<Session>(response.session)
    },
    async signOut(options) {
      const sent = tokens.read()
      await orIfOver(run((call) => service.signOut({}, call), options))
      tokens.forget(sent)
    },
    async listSessions(options) {
      const { sessions } = await run((call) => service.listSessions({}, call), options)
      return sessions.map((session) => plain<Session>(session))
    },
    async revokeSession(sessionId, options) {
      await run((call) => service.revokeSession({ sessionId }, call), options)
    },
    async revokeOtherSessions(options) {
      return (await run((call) => service.revokeOtherSessions({}, call), options)).revokedCount
    },
  }
}

/** What the service says to a caller who is not, or no longer, signed in. */
const over: ReadonlySet<string> = new Set(['SESSION_REQUIRED', 'SESSION_INVALID'])
