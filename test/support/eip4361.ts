import { isIPv6 } from 'node:net'

/** What a text of EIP-4361 says. */
export interface ReadForm {
  readonly domain: string
  readonly address: string
  readonly statement: string | undefined
  readonly uri: string
  readonly chainId: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime: string | undefined
  readonly notBefore: string | undefined
  readonly requestId: string | undefined
  readonly resources: readonly string[]
}

// RFC 3986, Appendix A.
const unreserved = 'A-Za-z0-9\\-._~'
const subDelims = "!$&'()*+,;="
const escaped = '%[0-9A-Fa-f]{2}'
const pchar = `(?:[${unreserved}${subDelims}:@]|${escaped})`
const scheme = '[A-Za-z][A-Za-z0-9+\\-.]*'
const regName = `(?:[${unreserved}${subDelims}]|${escaped})*`
const authority = `(?:(?:[${unreserved}${subDelims}:]|${escaped})*@)?(?:\\[[0-9A-Fa-f:.]+\\]|${regName})(?::[0-9]*)?`
const hierPart = `(?://${authority}(?:/${pchar}*)*|/(?:${pchar}+(?:/${pchar}*)*)?|${pchar}+(?:/${pchar}*)*|)`
const uri = `${scheme}:${hierPart}(?:\\?(?:${pchar}|[/?])*)?(?:#(?:${pchar}|[/?])*)?`
// RFC 3339, with its ranges; the days of a month are left to the caller.
const time =
  '[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)'
const zone = '(?:\\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])'
const dateTime = time + zone

/** The grammar of EIP-4361 in one expression, line by line as in its ABNF. */
const form = new RegExp(
  [
    `^(?:${scheme}://)?(?<domain>${authority}) wants you to sign in with your Ethereum account:\n`,
    `(?<address>0x[0-9A-Fa-f]{40})\n\n`,
    `(?:(?<statement>[${unreserved}${subDelims}:/?#\\[\\]@ ]+)\n)?\n`,
    `URI: (?<uri>${uri})\n`,
    `Version: 1\n`,
    `Chain ID: (?<chainId>[0-9]+)\n`,
    `Nonce: (?<nonce>[A-Za-z0-9]{8,})\n`,
    `Issued At: (?<issuedAt>${dateTime})`,
    `(?:\nExpiration Time: (?<expirationTime>${dateTime}))?`,
    `(?:\nNot Before: (?<notBefore>${dateTime}))?`,
    `(?:\nRequest ID: (?<requestId>${pchar}*))?`,
    `(?:\nResources:(?<resources>(?:\n- ${uri})*))?$`,
  ].join(''),
)

/**
 * Reads a text by the grammar of EIP-4361; `undefined` if it is none. Written from the standard for the tests, and
 * independent of the code that writes such texts. The checksum of the address is not looked at.
 */
export function readEip4361(text: string): ReadForm | undefined {
  const groups = form.exec(text)?.groups
  if (groups === undefined) return undefined
  const { domain = '', resources = '' } = groups
  const literal = /\[(.*)\]/.exec(domain)?.[1]
  if (domain === '' || (literal !== undefined && !isIPv6(literal))) return undefined
  for (const name of ['issuedAt', 'expirationTime', 'notBefore']) {
    const value = groups[name]
    if (value !== undefined && !isRealDay(value)) return undefined
  }
  return { ...groups, resources: resources.split('\n- ').slice(1) } as unknown as ReadForm
}

function isRealDay(dateTime: string): boolean {
  const day = dateTime.slice(0, 10)
  const parsed = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day)
}
