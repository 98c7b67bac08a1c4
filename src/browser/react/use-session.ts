'use client'

import { useSyncExternalStore } from 'react'
import { loading, type SessionClient, type SessionState, storeOf } from './session-store.ts'

/** What {@link useSession} returns. */
export type SessionHook = SessionState & {
  /** Asks the service for the session, and resolves when it is known or the service is unavailable. Never rejects. */
  readonly refresh: () => Promise<void>
  /** Ends the session. Rejects with a `CountersignClientError` unless the service confirms that it has ended. */
  readonly signOut: () => Promise<void>
}

/**
 * The session of a client's user. It follows sign-ins and sign-outs of this client, of `<SignIn/>` and of other tabs.
 * While the service is unavailable it is asked again every 10 seconds. On a server that renders pages, and until the
 * service has answered, the status is `loading`.
 *
 * Make the client outside of components: each client has a session of its own here, and a component that makes a client
 * as it renders would ask the service at each rendering.
 */
export function useSession(client: SessionClient): SessionHook {
  const { subscribe, getState, refresh, signOut } = storeOf(client)
  const state = useSyncExternalStore(subscribe, getState, () => loading)
  return { ...state, refresh, signOut }
}
