import { BlockList, isIP, isIPv4 } from 'node:net'
import { networksOf, type RequestContext, readAddress } from './request.ts'

/**
 * The network that a request comes from, for comparing: the IPv4 /24 or the IPv6 /56 of its address. `undefined` if
 * that cannot be told: the address is unknown or not a public one, or may be a proxy's
 * ({@link RequestContext.behindUnknownProxy}).
 */
export function networkOfRequest({ ip, behindUnknownProxy }: RequestContext): string | undefined {
  return ip === undefined || behindUnknownProxy ? undefined : networkOfAddress(ip)
}

/**
 * As {@link networkOfRequest}, for an address that the application's backend names. `undefined` also if it is not an
 * address.
 */
export function networkOfAddress(ip: string): string | undefined {
  const address = readAddress(ip)
  if (address === undefined || isSpecialAddress(address)) return undefined
  return isIPv4(address) ? address.replace(/\d+$/, '0/24') : networksOf(address)[1]
}

/** Whether two networks are the same; `undefined` if that cannot be told: one is unknown, or their families differ. */
export function sameNetwork(a: string | undefined, b: string | undefined): boolean | undefined {
  if (a === undefined || b === undefined || a.includes(':') !== b.includes(':')) return undefined
  return a === b
}

/**
 * Networks without hosts of the internet (IANA's registries of special-purpose addresses), and multicast: unrelated
 * networks use the same ones, or none does. In a tunnel's (2001::/23, 2002::/16), an address does not name the network
 * of its host. Public IPv6 addresses are in 2000::/3.
 */
const special = {
  ipv4:
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.88.99.0/24 ' +
    '192.168.0.0/16 198.18.0.0/15 224.0.0.0/3',
  ipv6: '::/3 4000::/2 8000::/1 2001::/23 2002::/16',
} as const

/** Networks for documentation, which occur on no real network. Tests use them as public ones. */
const documentation = {
  ipv4: '192.0.2.0/24 198.51.100.0/24 203.0.113.0/24',
  ipv6: '2001:db8::/32 3fff::/20',
} as const

/** Whether an IP address is in a special network. Those for documentation count as public. */
export const isSpecialAddress = membership(special)

/** Whether an IP address is in a network for documentation. */
export const isDocumentationAddress = membership(documentation)

/** In two lists, because one list would look an IPv4 address up as an IPv6 address, too. */
function membership(networks: Readonly<Record<'ipv4' | 'ipv6', string>>): (address: string) => boolean {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const family of ['ipv4', 'ipv6'] as const) {
    for (const network of networks[family].split(' ')) {
      const [address = '', prefix] = network.split('/')
      lists[family].addSubnet(address, Number(prefix), family)
    }
  }
  return (address) => {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    return lists[family].check(address, family)
  }
}
