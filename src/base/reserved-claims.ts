const protocolClaims: ReadonlySet<string> = new Set([
  ...'iss sub aud exp nbf iat jti client_id scope cnf events'.split(' '),
  ...'amr acr auth_time azp nonce sid at_hash c_hash s_hash'.split(' '),
  'wallets',
])

/** Whether an application cannot set a claim: the protocol's own, and names that every object of JavaScript has. */
export function isReservedClaim(name: string): boolean {
  return protocolClaims.has(name) || name in Object.prototype
}
