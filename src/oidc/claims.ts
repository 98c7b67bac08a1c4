import type { Session } from '../core/users/host.ts'

/** A wallet as it is told to clients. */
export type ClaimsWallet = Pick<Session, 'adapterId' | 'address' | 'publicKeyHex'>

/** Who claims are asked for. */
export interface ClaimsSubject {
  readonly userId: string
  /** The wallet that the user signed in with. */
  readonly wallet: ClaimsWallet
  readonly clientId: string
}

/** The application's claims of a user, such as `{ groups: ['staff'] }`. */
export type OwnClaims = (subject: ClaimsSubject) => Promise<Readonly<Record<string, unknown>>>

/** Whether an application cannot set a claim: the protocol's own, and names that every object of JavaScript has. */
export function isReservedClaim(name: string): boolean {
  return protocolClaims.has(name) || name in Object.prototype
}

const protocolClaims: ReadonlySet<string> = new Set([
  ...'iss sub aud exp nbf iat jti client_id scope cnf events'.split(' '),
  ...'amr acr auth_time azp nonce sid at_hash c_hash s_hash'.split(' '),
  'wallets',
])

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
