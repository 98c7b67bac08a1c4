import { lookup } from 'node:dns'
import { request } from 'node:https'
import { BlockList, isIP } from 'node:net'

/** Time in ms that a client has to answer. */
const answerMs = 2_500

/** Networks that no host on the internet is in (IANA's registries of special-purpose addresses), and multicast. */
const specialNetworks = {
  ipv4:
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
    '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
  // Public addresses are in 2000::/3, without the last four of these.
  ipv6: '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
} as const

/** In two lists, because one list would look an IPv4 address up as an IPv6 address, too. */
const special = { ipv4: new BlockList(), ipv6: new BlockList() }
for (const family of ['ipv4', 'ipv6'] as const) {
  for (const network of specialNetworks[family].split(' ')) {
    const [address = '', prefix] = network.split('/')
    special[family].addSubnet(address, Number(prefix), family)
  }
}

/** Whether an IP address is not public. */
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

/** Posts to any address, for a client in the service's own network. Resolves with the status of the answer. */
export async function postAnywhere({ url, headers, body }: OutgoingRequest): Promise<number> {
  const signal = AbortSignal.timeout(answerMs)
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
  await response.body?.cancel()
  return response.status
}

/**
 * Posts to a public address: https on port 443. The address is checked before the connection, so that a request reveals
 * nothing about the service's own network. Resolves with the status of the answer; redirects are not followed.
 */
export async function postToPublic({ url, headers, body }: OutgoingRequest): Promise<number> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol !== 'https:' || url.port !== '') throw new TypeError('only https on port 443 is called')
  if (isIP(host) !== 0 && isSpecialAddress(host)) throw specialAddress()
  const options = { method: 'POST', headers, lookup: publicLookup, signal: AbortSignal.timeout(answerMs) }
  return await new Promise((resolve, reject) => {
    const sent = request(url, options, (answer) => {
      answer.destroy()
      resolve(answer.statusCode ?? 0)
    })
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
