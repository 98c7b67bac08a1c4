import { begunKeys, sessionKeys } from './oidc.ts'

/**
 * First parts of keys, as alternatives of a regular expression, of nonces, orders, inboxes, known computers and events
 * for the webhook, and of what applications hold: they may have been used, refused, forgotten, delivered or ended since
 * a copy of the store was made.
 */
const begun = `nonce|link-nonce|order|inbox|computers|webhook|${begunKeys}`

/** The same of sessions, their addresses and lists. */
const ofSessions = `session|session-address|sessions|${sessionKeys}`

/**
 * Matches the keys that a restored copy must not revive. `prefix` is a regular expression of what precedes them. With
 * `keepSessions`, the keys of sessions do not match, not even those that have ended since.
 */
export function keysNotToRevive(keepSessions: boolean, prefix = ''): RegExp {
  return new RegExp(`^${prefix}(?:${keepSessions ? begun : `${begun}|${ofSessions}`}):`)
}
