/**
 * Key in the store under which an operator's command, which has no secret, asks for a new RSA key of the OpenID Connect
 * issuer. A running service makes it.
 */
export const rotationKey = 'oidc-rotate-key'
