import { lookup } from 'node:dns'
import { request } from 'node:https'
import { BlockList, isIP } from 'node:net'

/** Time in ms that a client has to answer. */
const answerMs = 2_500

/** Longest answer in bytes that is read. */
const maxAnswer = 5 * 1024

/** Addresses that no host on the internet has (IANA's registries of special-purpose addresses), and multicast. */
// Two lists, because an address of IPv4 is looked up as one of IPv6, too.
const special = { ipv4: new BlockList(), ipv6: new BlockList() }
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  special.ipv4.addSubnet(network, prefix)
}
// All that is routed of IPv6 is in 2000::/3, from which these are taken out.
for (const [network, prefix] of [
  ['::', 3],
  ['4000::', 2],
  ['8000::', 1],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  special.ipv6.addSubnet(network, prefix, 'ipv6')
}

/** Whether an IP address is one that only a machine inside a network, or this one, can have. */
export function isSpecialAddress(address: string): boolean {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  return special[family].check(address, family)
}

/** A request to a client. Header values are texts. */
export interface OutgoingRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Posts to any address, for a client that the operator says is in the service's own network. */
export async function postAnywhere({ url, headers, body }: OutgoingRequest): Promise<Response> {
  return await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal: AbortSignal.timeout(answerMs) })
}

/**
 * Posts to a public address: https on port 443 of a host that is no special address. That is checked before the
 * connection, so that no one learns what answers inside this network. Redirects are answers as any other.
 */
export async function postToPublic({ url, headers, body }: OutgoingRequest): Promise<Response> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol !== 'https:' || url.port !== '') throw new TypeError('only https on port 443 is called')
  if (isIP(host) !== 0 && isSpecialAddress(host)) throw specialAddress()
  return await new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: 'POST', headers, lookup: publicLookup, signal: AbortSignal.timeout(answerMs) },
      (answer) => {
        const chunks: Buffer[] = []
        let length = 0
        answer.on('data', (chunk: Buffer) => {
          length += chunk.length
          if (length > maxAnswer) sent.destroy(new Error('the answer is too long'))
          else chunks.push(chunk)
        })
        answer.on('error', reject)
        answer.on('end', () => resolve(new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 500 })))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Looks a host up, and fails if one of its addresses is special. */
const publicLookup: typeof lookup = ((
  host: string,
  options: object,
  callback: (error: Error | null, ...found: unknown[]) => void,
) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error)
    if (found.some(({ address }) => isSpecialAddress(address))) return callback(specialAddress())
    if ((options as { all?: boolean }).all === true) return callback(null, found)
    const [first] = found
    return callback(null, first?.address, first?.family)
  })
}) as never

function specialAddress(): Error {
  return new Error('the host has an address inside this network; a client there needs "private_network": true')
}
