import { AsyncLocalStorage } from 'node:async_hooks'
import type { RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'

/** What is known of the request that the library is serving. */
export interface RequestState {
  /** The live session of the request's cookie. Absent without one, and for the calls of backends. */
  readonly session: Session | undefined
  readonly request: RequestContext
  /** The browser's own secrets, the oldest first. None for the calls of backends. */
  readonly browserSecrets: readonly string[]
}

/** State of the request in progress, for what the library calls without a context of ours. */
export const requestState = new AsyncLocalStorage<RequestState>()
