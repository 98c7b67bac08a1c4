import { AsyncLocalStorage } from 'node:async_hooks'
import type { Session } from '../core/users/host.ts'

/** What is known of the request that the library is serving. */
export interface RequestState {
  /** The live session of the request's cookie. Absent without one, and for the calls of backends. */
  readonly session: Session | undefined
  /** The browser's own secret, by which an interaction recognises the browser that began it. */
  readonly browser: string | undefined
}

/** State of the request in progress, for what the library calls without a context of ours. */
export const requestState = new AsyncLocalStorage<RequestState>()
