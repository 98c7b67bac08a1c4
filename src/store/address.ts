/** The host and port of a server. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** Reads `host:port`, the port optional and an IPv6 host in brackets. Undefined if it is malformed. */
export function parseAddress(text: string, defaultPort: number): Address | undefined {
  const [, bracketed, name, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? name
  const port = digits === undefined ? defaultPort : Number(digits)
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}

/** Formats an address as `host:port`, an IPv6 host in brackets. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Reads percent-encoded `user:password`. Throws a URIError if the encoding is malformed. */
export function parseCredentials(text = ''): Record<'user' | 'password', string | undefined> {
  const [, user = '', password] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? []
  return {
    user: decodeURIComponent(user) || undefined,
    password: password === undefined ? undefined : decodeURIComponent(password),
  }
}
