import { isIP, SocketAddress } from 'node:net'
import { bearerTokenOf, withoutOws } from '../shared/header-text.ts'
import { parseOrigin } from '../shared/origin.ts'
import { withoutForbidden } from '../shared/plain-line.ts'

/**
 * What the domain knows of a request, over any protocol. To change a part, use {@link withParts}: some may
 * be accessors, which a spread does not copy.
 */
export interface RequestContext {
  /**
   * The caller's origin, such as `https://app.example`: the Origin header or, without one, the scheme and host that the
   * request was sent to. `undefined` if that is not a valid origin.
   */
  readonly origin: string | undefined
  /** What the origin was read from, for error messages. */
  readonly originSource: 'Origin header' | 'Host header' | 'X-Forwarded-Host header' | 'field requester.origin'
  /**
   * The client's IP address as {@link readAddress} writes it; `undefined` if it is unknown (a Unix socket, an in-memory
   * call).
   */
  readonly ip: string | undefined
  /**
   * Whether `ip` may be the address of a proxy: a header that proxies write came (X-Forwarded-For and the like), but
   * `ip` was not read from it, because no proxy is trusted or because it has no address.
   */
  readonly behindUnknownProxy: boolean
  /** The client's user agent without control characters, cut to 256 characters. Empty if it sent none. */
  readonly userAgent: string
  /** The request's headers. */
  readonly headers: Headers
}

/** Headers as a transport has them. */
export interface RawHeaders {
  get(name: string): string | null
  toHeaders(): Headers
}

/** A request as the transport saw it. */
export interface RawRequest {
  readonly headers: Headers | RawHeaders
  /** Scheme of the connection itself. */
  readonly scheme: 'http' | 'https'
  /** The Host header or the `:authority` of HTTP/2. Empty if there is none. */
  readonly authority: string
  /** IP address of the peer; `undefined` if the transport does not know it. */
  readonly remoteAddress: string | undefined
}

const maxUserAgentLength = 256

/** Headers that proxies write. Any of them shows that the peer can be a proxy. */
const proxyHeaders = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-forwarded-host', 'x-forwarded-proto'] as const

/**
 * Reads a request's context.
 *
 * `trustedProxies` is the number of proxies in front, each of which appends to X-Forwarded-For, -Host and -Proto. With
 * 0, these headers are ignored, because anyone could have written them. Otherwise the entry of the outermost trusted
 * proxy counts: with 1 the last entry, with 2 the one before it. Entries before that came from outside.
 */
export function readRequest(raw: RawRequest, trustedProxies: number): RequestContext {
  return new ReadContext(raw, trustedProxies)
}

/** A user agent without control and text-direction characters, cut to 256 characters. */
export function cleanUserAgent(text: string): string {
  // The cut can leave half of a surrogate pair, which no JSON can carry.
  return withoutForbidden(text).slice(0, maxUserAgentLength).toWellFormed()
}

/**
 * A context that makes `Headers` of all headers, and looks for a proxy's, only for those who ask: most calls look at
 * one header or two.
 */
class ReadContext implements RequestContext {
  readonly origin: string | undefined
  readonly originSource: RequestContext['originSource']
  readonly ip: string | undefined
  readonly userAgent: string
  readonly #raw: Headers | RawHeaders
  readonly #trustedProxies: number
  #headers: Headers | undefined

  constructor(raw: RawRequest, trustedProxies: number) {
    const forwarded = (name: string): string | undefined => forwardedEntry(raw.headers, name, trustedProxies)
    const { origin, originSource } = readOrigin(raw, forwarded)
    this.origin = origin
    this.originSource = originSource
    this.ip = clientAddress(raw.headers, raw.remoteAddress, trustedProxies)
    this.userAgent = cleanUserAgent(raw.headers.get('user-agent') ?? '')
    this.#raw = raw.headers
    this.#trustedProxies = trustedProxies
  }

  get behindUnknownProxy(): boolean {
    if (forwardedAddress(this.#raw, this.#trustedProxies) !== undefined) return false
    return proxyHeaderOf(this) !== undefined
  }

  get headers(): Headers {
    this.#headers ??= this.#raw instanceof Headers ? this.#raw : this.#raw.toHeaders()
    return this.#headers
  }

  header(name: string): string | null {
    return this.#raw.get(name)
  }
}

/** The same request with some parts changed. */
export function withParts(request: RequestContext, parts: Partial<RequestContext>): RequestContext {
  const { origin, originSource, ip, behindUnknownProxy, userAgent, headers } = request
  return { origin, originSource, ip, behindUnknownProxy, userAgent, headers, ...parts }
}

/** The client's IP address, read as by {@link readRequest}; `undefined` if it is unknown. */
export function clientAddress(
  headers: Pick<Headers, 'get'>,
  remoteAddress: string | undefined,
  trustedProxies: number,
): string | undefined {
  return forwardedAddress(headers, trustedProxies) ?? (remoteAddress && readAddress(remoteAddress))
}

/** The client's IP address as the outermost trusted proxy wrote it; `undefined` if that wrote none. */
function forwardedAddress(headers: Pick<Headers, 'get'>, trustedProxies: number): string | undefined {
  // Some proxies add the client's port, and some write other things than addresses.
  const forwarded = forwardedEntry(headers, 'x-forwarded-for', trustedProxies)
    ?.replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
  return forwarded && readAddress(forwarded)
}

/** The entry of a forwarding header that the outermost trusted proxy wrote. */
function forwardedEntry(headers: Pick<Headers, 'get'>, name: string, trustedProxies: number): string | undefined {
  if (trustedProxies === 0) return undefined
  const entries = headers.get(name)?.split(',') ?? []
  return withoutOws(entries[Math.max(0, entries.length - trustedProxies)] ?? '') || undefined
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

/** One header of a request; `undefined` if it has none of that name. */
export function headerOf(request: RequestContext, name: string): string | undefined {
  return (request instanceof ReadContext ? request.header(name) : request.headers.get(name)) ?? undefined
}

/** Name of a header in a request that only proxies write, in lower case; `undefined` if there is none. */
export function proxyHeaderOf(request: RequestContext): string | undefined {
  for (const name of proxyHeaders) if (headerOf(request, name) !== undefined) return name
  return undefined
}

/** The token of an `Authorization: Bearer` header (RFC 6750); `undefined` if there is none. */
export function bearerToken(request: RequestContext): string | undefined {
  return bearerTokenOf(headerOf(request, 'authorization'))
}

/**
 * Beginnings, in groups of 16 bits, of IPv6 addresses that stand for an IPv4 host. The other 32 bits are its address.
 * 6to4 (2002::/16) and Teredo (2001::/32) are left out: an IPv4 address is a part of them, but they name a network
 * behind it.
 */
const embeddings: ReadonlySet<string> = new Set([
  '0:0:0:0:0:ffff', // IPv4-mapped (RFC 4291, 2.5.5.2)
  '0:0:0:0:0:0', // IPv4-compatible (RFC 4291, 2.5.5.1)
  '0:0:0:0:ffff:0', // IPv4-translated (RFC 2765, 2.1)
  '64:ff9b:0:0:0:0', // translated with the well-known prefix (RFC 6052, 2.1)
])

/**
 * An address as it is compared, counted, kept and shown: one text for one host, in any spelling. IPv4 within IPv6
 * is the IPv4 address; any other IPv6 address has its canonical text (RFC 5952), without a zone. `undefined` if it is
 * not an address.
 */
export function readAddress(text: string): string | undefined {
  const family = isIP(text)
  if (family !== 6) return family === 4 ? text : undefined
  const { address } = new SocketAddress({ address: text.replace(/%.*/, ''), family: 'ipv6' })
  const groups = groupsOf(address)
  const [high, low] = groups.slice(6) as [number, number]
  // `::` and `::1` are no IPv4 hosts.
  if (high === 0 || !embeddings.has(written(groups.slice(0, 6)))) return address
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/**
 * The networks that an address counts in, narrowest first: an IPv4 address alone; of an IPv6 address its /64, its /56
 * and its /48, because providers hand out all of these to one subscriber, and some a /48 to anyone who asks. Takes what
 * {@link readAddress} returns.
 */
export function networksOf(address: string): readonly [string, ...string[]] {
  if (!address.includes(':')) return [address]
  const groups = groupsOf(address)
  const site = written(groups.slice(0, 3))
  const subnet = groups[3] as number
  return [`${site}:${subnet.toString(16)}::/64`, `${site}:${(subnet & 0xff00).toString(16)}::/56`, `${site}::/48`]
}

/** What counts as one client: an IPv4 address, or an IPv6 /64, which is the least that a subscriber has. */
export function networkOf(address: string): string {
  return networksOf(address)[0]
}

/**
 * The widest network that can be one subscriber's: an IPv4 address, or an IPv6 /48. Clients of unknown address are one
 * such network together.
 */
export function siteOf(address: string | undefined): string {
  return address === undefined ? unknownNetwork : (networksOf(address).at(-1) as string)
}

/** Stands for the network of clients whose address is unknown. */
export const unknownNetwork = 'unknown'

/** The eight groups of a valid IPv6 address without a zone. */
function groupsOf(address: string): number[] {
  const inHex = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number)
    return written([a * 256 + b, c * 256 + d])
  })
  const [head, tail] = inHex.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const [before = [], after = []] = [head, tail]
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16))
}

function written(groups: readonly number[]): string {
  return groups.map((group) => group.toString(16)).join(':')
}
