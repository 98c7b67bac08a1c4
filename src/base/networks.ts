import { isIP, SocketAddress } from 'node:net'

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
 * An address as it is compared, counted, kept and shown: one text for one host, whatever its spelling. IPv4 within IPv6
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

/** The widest network that can be one subscriber's: an IPv4 address, or an IPv6 /48. */
export function siteOf(address: string): string {
  return networksOf(address).at(-1) as string
}

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
