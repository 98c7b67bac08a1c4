import { isIP } from 'node:net'
import { parseOrigin } from './origin.ts'

/** What the domain knows of the request that it serves, whatever protocol brought it. */
export interface RequestContext {
  /**
   * The caller's origin, such as `https://app.example`: the Origin header, or without one the scheme and host that the
   * request was sent to. `undefined` when neither makes a valid origin.
   */
  readonly origin: string | undefined
  /** Where the origin was read from, for error messages. */
  readonly originSource: 'Origin header' | 'Host header' | 'X-Forwarded-Host header'
  /** The client's address; `undefined` when it cannot be known (a Unix socket, an in-memory call). */
  readonly ip: string | undefined
  /** The client's user agent, cut to 256 characters, control characters removed; empty when it sent none. */
  readonly userAgent: string
  /** The request's headers. */
  readonly headers: Headers
}

/** A request as the transport saw it. */
export interface RawRequest {
  readonly headers: Headers
  /** Scheme of the connection itself. */
  readonly scheme: 'http' | 'https'
  /** The Host header or the `:authority` of HTTP/2; empty when there is none. */
  readonly authority: string
  /** Address of the peer; `undefined` when the transport knows none. */
  readonly remoteAddress: string | undefined
}

const maxUserAgentLength = 256
const ipv4InIpv6 = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i

/**
 * Reads a request's context.
 *
 * `trustedProxies` is how many proxies stand in front, each of which appends to X-Forwarded-For, -Host and -Proto. With 0
 * these headers are ignored: anyone could have written them. Otherwise the entry that the outermost trusted proxy wrote
 * counts, the last but `trustedProxies - 1`; whatever stands before it came from outside.
 */
export function readRequest(raw: RawRequest, trustedProxies: number): RequestContext {
  const forwarded = (name: string): string | undefined => {
    if (trustedProxies === 0) return undefined
    const entries = raw.headers.get(name)?.split(',') ?? []
    return entries[Math.max(0, entries.length - trustedProxies)]?.trim() || undefined
  }
  // Some proxies add the client's port, and not everything that is written there is an address.
  const told = forwarded('x-forwarded-for')
    ?.replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
  const ip = told !== undefined && isIP(told) !== 0 ? told : raw.remoteAddress
  return {
    ...readOrigin(raw, forwarded),
    ip: ip?.replace(ipv4InIpv6, ''),
    userAgent: (raw.headers.get('user-agent') ?? '').replace(/\p{Cc}/gu, '').slice(0, maxUserAgentLength),
    headers: raw.headers,
  }
}

function readOrigin(
  raw: RawRequest,
  forwarded: (name: string) => string | undefined,
): Pick<RequestContext, 'origin' | 'originSource'> {
  const header = raw.headers.get('origin')
  if (header !== null) return { origin: parseOrigin(header), originSource: 'Origin header' }
  const forwardedHost = forwarded('x-forwarded-host')
  return {
    origin: parseOrigin(`${forwarded('x-forwarded-proto') ?? raw.scheme}://${forwardedHost ?? raw.authority}`),
    originSource: forwardedHost === undefined ? 'Host header' : 'X-Forwarded-Host header',
  }
}
