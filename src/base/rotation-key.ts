/**
 * Key in the store under which an operator's command, which has no secret, asks for a new RSA key of the OpenID Connect
 * issuer. A running service makes it.
 */
export const rotationKey = 'oidc-rotate-key'

/** Times of the issuer's keys, in ms. */
export const keyTimes = {
  /** How long a key is published before it signs: some applications keep the key set for so long. */
  publishMs: 1_800_000,
  /** Time between two looks of an instance for another RSA key, within which all instances publish one. */
  lookMs: 60_000,
}
