/** Scheme, host and port; no user, path, query or fragment. Other schemes than http are those of app shells. */
const originShape = /^([a-z][a-z0-9+.-]{0,31}):\/\/([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:\d{1,5})?$/i

/**
 * The canonical form of an origin (RFC 6454): lower case, without a default port. `undefined` for anything else,
 * including `null`, which browsers send for documents without an origin.
 */
export function parseOrigin(text: string): string | undefined {
  const scheme = originShape.exec(text)?.[1]
  if (scheme === undefined) return undefined
  if (!/^https?$/i.test(scheme)) return text.toLowerCase()
  return URL.parse(text)?.origin
}

/** Whether a host, as URLs spell it, is one that only the machine itself can reach. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
