import { BlockList, isIPv4 } from 'node:net'
import { networksOf, readAddress } from '../../base/networks.ts'
import type { RequestContext } from '../../base/request.ts'

/**
 * IPv4 addresses that are not public (RFC 6890): unrelated networks use the same ones, or none does. Those for documentation
 * (192.0.2.0/24 and the like) are left out: they occur on no real network, and tests use them as public ones.
 */
const specialIpv4 = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // behind a carrier's NAT
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // IETF protocols
  ['192.88.99.0', 24], // relays of 6to4
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['224.0.0.0', 3], // multicast, reserved, broadcast
] as const) {
  specialIpv4.addSubnet(network, prefix, 'ipv4')
}

/**
 * The IPv6 addresses that are given to networks (RFC 4291). Local ones and multicast are outside. Those for documentation
 * (2001:db8::/32) count, as in IPv4.
 */
const globalIpv6 = new BlockList()
globalIpv6.addSubnet('2000::', 3, 'ipv6')

/** Those of {@link globalIpv6} that a protocol has for itself. In a tunnel's, the first 56 bits do not name the client's network. */
const protocolIpv6 = new BlockList()
protocolIpv6.addSubnet('2001::', 23, 'ipv6') // IETF protocols, Teredo among them
protocolIpv6.addSubnet('2002::', 16, 'ipv6') // 6to4

/**
 * The network that a request comes from, for comparing: the IPv4 /24 or the IPv6 /56 of its address. `undefined` if that cannot be
 * told: the address is unknown or not a public one, or may be a proxy's ({@link RequestContext.behindUnknownProxy}).
 */
export function networkOfRequest({ ip, behindUnknownProxy }: RequestContext): string | undefined {
  return ip === undefined || behindUnknownProxy ? undefined : networkOfAddress(ip)
}

/** As {@link networkOfRequest}, for an address that somebody else saw. `undefined` also if it is not an address. */
export function networkOfAddress(ip: string): string | undefined {
  const address = readAddress(ip)
  if (address === undefined) return undefined
  if (isIPv4(address)) return specialIpv4.check(address) ? undefined : address.replace(/\d+$/, '0/24')
  if (!globalIpv6.check(address, 'ipv6') || protocolIpv6.check(address, 'ipv6')) return undefined
  return networksOf(address)[1]
}

/** Whether two networks are the same; `undefined` if that cannot be told: one is unknown, or their families differ. */
export function sameNetwork(a: string | undefined, b: string | undefined): boolean | undefined {
  if (a === undefined || b === undefined || a.includes(':') !== b.includes(':')) return undefined
  return a === b
}
