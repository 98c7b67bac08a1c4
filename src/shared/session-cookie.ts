const plainCookieName = 'countersign_session'

/**
 * Name of the session's cookie, whose value is no bearer token. If people reach the service by https, the cookie is
 * Secure and its name has the prefix `__Host-` (RFC 6265bis, 4.1.3.2), so that no other host can set it.
 */
export function sessionCookieName(secure: boolean): string {
  return secure ? `__Host-${plainCookieName}` : plainCookieName
}
