import { AsyncLocalStorage } from 'node:async_hooks'
import type { RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'
import type { GrantRecord } from './grants.ts'

/** A code or refresh token that came a second time. */
export interface ReplayedToken {
  readonly userId: string
  readonly clientId: string
  readonly what: 'code' | 'refresh token'
}

/** What is known of the request that the library is serving. */
export interface RequestState {
  /** The live session of the request's cookie. Absent without one, and for the calls of backends. */
  readonly session: Session | undefined
  readonly request: RequestContext
  /** The browser's own secrets, the oldest first. None for the calls of backends. */
  readonly browserSecrets: readonly string[]
  /** The code or refresh token of this request, if it had been used before. */
  replayed?: ReplayedToken | undefined
  /**
   * The grant of the code that this request has used up. The answer goes by it, also if another request with the same
   * code ends the grant meanwhile; then what was answered is dead when it arrives.
   */
  usedUp?: { readonly grantId: string; readonly grant: GrantRecord } | undefined
}

/** State of the request in progress, for what the library calls without a context of ours. */
export const requestState = new AsyncLocalStorage<RequestState>()
