import type { People } from '../core/users/people.ts'

/** The claims that each scope gives. */
export const claimsOfScopes = {
  openid: ['sub', 'amr', 'auth_time'],
  profile: ['preferred_username', 'name', 'nickname'],
  wallet: ['wallets'],
  email: ['email', 'email_verified'],
  groups: ['groups', 'role', 'roles'],
} as const satisfies Record<string, readonly string[]>

/** The scopes of the issuer. Without e-mail addresses, `email` is not offered. */
export const issuerScopes: readonly string[] = [...Object.keys(claimsOfScopes), 'offline_access']

/** Names of claims in a people file that no scope has. */
export function furtherClaims(people: People): readonly string[] {
  const known: ReadonlySet<string> = new Set(Object.values(claimsOfScopes).flat())
  return [...people.claimNames].filter((name) => !known.has(name))
}

/** Whether any person has an e-mail address. */
export function haveEmail(people: People): boolean {
  return people.claimNames.has('email')
}
