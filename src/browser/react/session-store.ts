'use client'

import { useSyncExternalStore } from 'react'
import type { ClientCalls } from '../client/calls.ts'
import { type CountersignClientError, failureOf, isPassing } from '../client/errors.ts'
import type { Session } from '../client/index.ts'
import { Listeners } from '../client/listeners.ts'
import { isHidden, onWake } from '../client/page.ts'

/**
 * The calls of a client that {@link SessionStore} makes: every client of `countersign/client` and its subpaths has
 * them.
 */
export interface SessionClient extends Pick<ClientCalls, 'getCurrentSession' | 'signOut' | 'onSession'> {}

/**
 * What is known of the session. `unavailable`: the service does not answer. Then `session` is what was known before:
 * keep showing a user who was signed in as signed in.
 */
export type SessionState =
  | { readonly status: 'loading'; readonly session: undefined; readonly error: undefined }
  | { readonly status: 'signed-in'; readonly session: Session; readonly error: undefined }
  | { readonly status: 'signed-out'; readonly session: undefined; readonly error: undefined }
  | { readonly status: 'unavailable'; readonly session: Session | undefined; readonly error: CountersignClientError }

/** The state before the service has answered, and on servers that render pages. */
const loading: SessionState = { status: 'loading', session: undefined, error: undefined }

/** Least wait before the service is asked again after it did not answer, in milliseconds. */
const retryMs = 10_000

/**
 * The session of a client's user, for the components that show it. Asks the service while there are such components:
 * when the first appears, and after it was unavailable. Between these times it hears of changes from the client, other
 * tabs included.
 */
export class SessionStore {
  readonly #client: SessionClient
  readonly #listeners = new Listeners(() => this.#start())
  #state: SessionState = loading
  #retry: ReturnType<typeof setTimeout> | undefined
  /** Number of questions and changes. An answer of the service counts only if there was none since the question. */
  #turn = 0

  constructor(client: SessionClient) {
    this.#client = client
  }

  readonly getState = (): SessionState => this.#state

  /** Calls `listener` after each change of the state. Returns a function that ends it. */
  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.add(listener)

  /** Asks the service for the session. Never rejects: the state has the outcome. */
  readonly refresh = async (): Promise<void> => {
    const turn = this.#next()
    try {
      const session = await this.#client.getCurrentSession()
      if (turn === this.#turn) this.#set(stateOf(session))
    } catch (thrown) {
      if (turn !== this.#turn) return
      const error = failureOf(thrown)
      this.#set({ status: 'unavailable', session: this.#state.session, error })
      if (this.#listeners.isEmpty || !isPassing(error)) return
      this.#retry = setTimeout(
        () => {
          // A hidden page asks when it wakes up.
          if (!isHidden()) void this.refresh()
        },
        Math.max(retryMs, error.retryAfterMs ?? 0),
      )
    }
  }

  /** Ends the session. Rejects with a `CountersignClientError` unless the service confirms that it has ended. */
  readonly signOut = async (): Promise<void> => {
    await this.#client.signOut()
    this.#next()
    this.#set(stateOf(undefined))
  }

  #start(): () => void {
    const stopHearing = this.#client.onSession((session) => this.#hear(session))
    const stopWaking = onWake(() => {
      if (this.#state.status === 'unavailable') void this.refresh()
    })
    const turn = this.#next()
    // React's StrictMode takes each component away and puts it back at once: only the second time asks.
    queueMicrotask(() => {
      if (turn === this.#turn) void this.refresh()
    })
    return () => {
      this.#next()
      stopHearing()
      stopWaking()
    }
  }

  /**
   * Follows news of the client, after the caller has its answer: with the change of the state a component
   * that signs in may go, and must have reported its own before.
   */
  #hear(session: Session | undefined): void {
    const turn = this.#next()
    setTimeout(() => {
      if (turn === this.#turn) this.#set(stateOf(session))
    })
  }

  #next(): number {
    clearTimeout(this.#retry)
    return ++this.#turn
  }

  #set(state: SessionState): void {
    this.#state = state
    this.#listeners.notify()
  }
}

function stateOf(session: Session | undefined): SessionState {
  return session === undefined
    ? { status: 'signed-out', session, error: undefined }
    : { status: 'signed-in', session, error: undefined }
}

const stores = new WeakMap<SessionClient, SessionStore>()

/** The store of a client, of which there is one, so that all components show the same and the service is asked once. */
export function storeOf(client: SessionClient): SessionStore {
  const store = stores.get(client) ?? new SessionStore(client)
  stores.set(client, store)
  return store
}

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
