import { type Call, type CallOptions, run } from './call.ts'
import type { Services } from './connect.ts'
import { CountersignClientError } from './errors.ts'
import { plain } from './plain.ts'
import type { TokenStore } from './token-store.ts'
import type { KnownComputer, Session } from './types.ts'

/** Calls for the signed-in user's sessions and known computers. */
export interface SessionCalls {
  /**
   * The caller's session, or `undefined` if nobody is signed in. Rejects if neither is certain, because the service is
   * unavailable or did not answer: then keep showing the user as signed in.
   */
  getCurrentSession(options?: CallOptions): Promise<Session | undefined>
  /**
   * Ends this session and removes the stored token. Rejects, and keeps the token, unless the service confirms that the
   * session has ended.
   */
  signOut(options?: CallOptions): Promise<void>
  /** The user's live sessions, newest first. */
  listSessions(options?: CallOptions): Promise<readonly Session[]>
  /** Ends one of the user's sessions. Rejects with SESSION_NOT_FOUND if the user has none with this identifier. */
  revokeSession(sessionId: string, options?: CallOptions): Promise<void>
  /** Ends all of the user's sessions but this one. Resolves with the number of sessions that it ended. */
  revokeOtherSessions(options?: CallOptions): Promise<number>
  /** The user's known computers, whose orders need no return code, newest first. */
  listKnownComputers(options?: CallOptions): Promise<readonly KnownComputer[]>
  /**
   * Forgets one of the user's known computers: its next order needs a return code again. Its sessions go on. Rejects with
   * COMPUTER_NOT_FOUND if the user has none with this identifier.
   */
  forgetKnownComputer(id: string, options?: CallOptions): Promise<void>
}

/** Calls for sessions and known computers over the generated client. */
export function sessionCalls(service: Services['session'], tokens: TokenStore, timeoutMs: number): SessionCalls {
  const authorised = async <T>(call: Call<T>, { signal }: CallOptions = {}): Promise<T> => {
    const sent = tokens.read()
    try {
      return await run(call, signal, timeoutMs)
    } catch (thrown) {
      // Only on the service's own word: an outage is no reason to lose a valid token.
      if (thrown instanceof CountersignClientError && thrown.code === 'SESSION_INVALID') tokens.forget(sent)
      throw thrown
    }
  }
  const unlessEnded = async <T>(call: Promise<T>): Promise<T | undefined> => {
    try {
      return await call
    } catch (thrown) {
      if (thrown instanceof CountersignClientError && ended.has(thrown.code)) return undefined
      throw thrown
    }
  }
  return {
    async getCurrentSession(options) {
      const response = await unlessEnded(authorised((call) => service.getCurrentSession({}, call), options))
      return response?.session === undefined ? undefined : plain<Session>(response.session)
    },
    async signOut(options) {
      const sent = tokens.read()
      await unlessEnded(authorised((call) => service.signOut({}, call), options))
      tokens.forget(sent)
    },
    async listSessions(options) {
      const { sessions } = await authorised((call) => service.listSessions({}, call), options)
      return sessions.map((session) => plain<Session>(session))
    },
    async revokeSession(sessionId, options) {
      await authorised((call) => service.revokeSession({ sessionId }, call), options)
    },
    async revokeOtherSessions(options) {
      return (await authorised((call) => service.revokeOtherSessions({}, call), options)).revokedCount
    },
    async listKnownComputers(options) {
      const { computers } = await authorised((call) => service.listKnownComputers({}, call), options)
      return computers.map((computer) => plain<KnownComputer>(computer))
    },
    async forgetKnownComputer(id, options) {
      await authorised((call) => service.forgetKnownComputer({ id }, call), options)
    },
  }
}

/** Reasons for which the service refuses a caller who is not, or no longer, signed in. */
const ended: ReadonlySet<string> = new Set(['SESSION_REQUIRED', 'SESSION_INVALID'])
