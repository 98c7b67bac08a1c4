import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { readRequest } from '../base/request.ts'
import type { Output } from '../wire/output.ts'
import { FetchBody } from './fetch-body.ts'
import type { Exchange } from './route.ts'

/** What a `Request` of the Fetch standard does not say of the client. */
export interface FetchClient {
  /**
   * IP address of the peer, as the server knows it. Limits count by it. Without it, the address is unknown unless a trusted proxy
   * wrote it (`trustProxy`), and no limit counts.
   */
  readonly remoteAddress?: string | undefined
}

/** Serves a `Request` of the Fetch standard. Rejects with a `TypeError` if `remoteAddress` is not an IP address. */
export type FetchHandler = (request: Request, client?: FetchClient) => Promise<Response>

/** The address that the server has told of its client. Text from a header could be anything. */
export function addressOf(client: FetchClient | undefined): string | undefined {
  const remoteAddress: unknown = client?.remoteAddress
  if (typeof remoteAddress !== 'string') return undefined
  if (isIP(remoteAddress) === 0) throw new TypeError('remoteAddress must be an IP address, without a port')
  return remoteAddress
}

/** Where a `Request` goes, and from whom it comes. */
interface Arrival {
  readonly url: URL
  readonly remoteAddress: string | undefined
  /** Number of proxies in front. */
  readonly trustedProxies: number
}

/** What the routes see of a `Request`. */
export function fetchExchange(request: Request, arrival: Arrival, output: Output): Exchange {
  const { url, remoteAddress, trustedProxies } = arrival
  const { method, headers } = request
  // Some frameworks make the URL of an address of their own, such as http://localhost:3000.
  const authority = headers.get('host') ?? url.host
  const raw = {
    // Not every server's headers are an instance of this realm's class.
    headers: { get: (name: string) => headers.get(name), toHeaders: () => new Headers(headers) },
    scheme: url.protocol === 'https:' ? 'https' : 'http',
    authority,
    remoteAddress,
  } as const
  const byName: IncomingHttpHeaders = Object.fromEntries(headers)
  return {
    method,
    path: url.pathname,
    query: url.search.slice(1),
    authority,
    headers: byName,
    body: new FetchBody(request),
    context: readRequest(raw, trustedProxies),
    output,
  }
}
