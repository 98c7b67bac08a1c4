import type { Tracing } from '../../base/tracing.ts'
import type { ProvenIdentity } from '../wallet/proof.ts'
import { answers } from './answers.ts'
import { askApplication } from './application-step.ts'
import type { HostUser } from './host.ts'
import { loginRefused } from './refusals.ts'

/**
 * Decides who can sign in: returns the application's user of a proven identity, or null to refuse. The id of a user is text of
 * 1 to 200 characters.
 *
 * If it throws, returns anything else or takes longer than five seconds, the call fails with HOST_UNAVAILABLE, so that nobody
 * takes an outage for a refusal. A `CountersignError` that it throws reaches the caller as it is.
 *
 * Go by `adapterId` and `address` to recognise a wallet, or by `adapterId` and `subject`; never by the key or address alone. One
 * key can be a wallet of several adapters, and a signature that its holder made for something else can be a proof for one of
 * them: see `nimiq` in src/core/wallet/nimiq.ts.
 */
export type ResolveLogin = (identity: ProvenIdentity) => HostUser | null | Promise<HostUser | null>

/** The same function, as a step of the call that asks it. What it does itself can be told as a part of that. */
export function tracedLogin(resolveLogin: ResolveLogin, tracing: Tracing): ResolveLogin {
  const step = { kind: 'application', name: 'resolveLogin' } as const
  return (identity) => tracing.step(step, () => resolveLogin(identity))
}

/** Asks the application for the user of a proven identity. LOGIN_REFUSED if it returns null. */
export async function askResolveLogin(resolveLogin: ResolveLogin, identity: ProvenIdentity): Promise<HostUser> {
  const user = await askApplication(
    'resolveLogin()',
    () => resolveLogin(identity),
    (what, answer) => (answer === null ? null : answers.user(what, answer)),
  )
  if (user === null) throw loginRefused()
  return user
}
