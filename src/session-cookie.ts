/** The session's cookie, whose name the server, its guards and its clients have to agree on. */

const plainName = 'countersign_session'

/**
 * Name of the cookie that holds the session's token. If people reach the service by https, the cookie is Secure and its name has
 * the prefix `__Host-` (RFC 6265bis, 4.1.3.2), so that no other host can set it.
 */
export function sessionCookieName(secure: boolean): string {
  return secure ? `__Host-${plainName}` : plainName
}
