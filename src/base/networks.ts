import { isIPv4 } from 'node:net'
import { networksOf, type RequestContext, readAddress } from './request.ts'
import { isSpecialAddress } from './special-networks.ts'

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
