import { CountersignError } from '../errors.ts'
import type { HostUser, ProvenIdentity } from './host.ts'

/**
 * The application's say in who may sign in: the user of a proven identity, or null when it has none. What it throws is
 * answered as STORE_UNAVAILABLE, because nothing is known then.
 */
export type ResolveLogin = (identity: ProvenIdentity) => HostUser | null | Promise<HostUser | null>

const maxUserIdLength = 200

/** Asks the application for the user of a proven identity. LOGIN_REFUSED when it has none. */
export async function askResolveLogin(resolveLogin: ResolveLogin, identity: ProvenIdentity): Promise<HostUser> {
  let user: HostUser | null
  try {
    user = await resolveLogin(identity)
  } catch (cause) {
    throw new CountersignError(
      'STORE_UNAVAILABLE',
      'The application could not be asked who this is; try again shortly',
      { retryAfterMs: 1000, cause },
    )
  }
  if (user === null) throw loginRefused()
  if (typeof user?.id !== 'string' || user.id === '' || user.id.length > maxUserIdLength) {
    const cause = new TypeError(`resolveLogin must return null or {id: text of 1 to ${maxUserIdLength} characters}`)
    throw new CountersignError('INTERNAL', 'The server failed; its log says why', { cause })
  }
  return user
}

/** The application does not let a wallet sign in. */
export function loginRefused(): CountersignError {
  return new CountersignError('LOGIN_REFUSED', 'The wallet proved its key, but it may not sign in here')
}
