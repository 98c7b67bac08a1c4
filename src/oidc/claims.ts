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
  'sub',
  'iss',
  'aud',
  'amr',
  'acr',
  'auth_time',
  'sid',
  'cnf',
  'azp',
  'nonce',
  'events',
  'client_id',
  'scope',
  'exp',
  'iat',
  'nbf',
  'jti',
  'at_hash',
  'c_hash',
  's_hash',
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
