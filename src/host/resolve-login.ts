import { CountersignError, internalError } from '../errors.ts'
import type { ProvenIdentity } from '../wallet/proof.ts'
import type { HostUser } from './host.ts'
import { loginRefused } from './refusals.ts'

/**
 * Decides who can sign in: returns the application's user of a proven identity, or null to refuse. If it throws, the
 * call fails with STORE_UNAVAILABLE, so that nobody takes an outage for a refusal.
 *
 * Go by `adapterId` and `address` to recognise a wallet, or by `adapterId` and `subject`; never by the key or address
 * alone.
 */
export type ResolveLogin = (identity: ProvenIdentity) => HostUser | null | Promise<HostUser | null>

const maxUserIdLength = 200

/** Asks the application for the user of a proven identity. LOGIN_REFUSED if it returns null. */
export async function askResolveLogin(resolveLogin: ResolveLogin, identity: ProvenIdentity): Promise<HostUser> {
  let user: HostUser | null
  try {
    user = await resolveLogin(identity)
  } catch (cause) {
    throw new CountersignError(
      'STORE_UNAVAILABLE',
      'The application could not look up the user of this wallet; try again shortly',
      { retryAfterMs: 1000, cause },
    )
  }
  if (user === null) throw loginRefused()
  if (typeof user?.id !== 'string' || user.id === '' || user.id.length > maxUserIdLength) {
    throw internalError(
      new TypeError(`resolveLogin must return null or {id: text of 1 to ${maxUserIdLength} characters}`),
    )
  }
  return user
}
