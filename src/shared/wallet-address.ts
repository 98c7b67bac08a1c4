/** The two ends of an address, without the chain of a contract wallet. */
export function shortAddress(address: string): string {
  const own = address.replace(/^.*:/, '')
  const groups = own.split(' ')
  const beginning = groups.length > 2 ? groups.slice(0, 2).join(' ') : own.slice(0, 6)
  return own.length < 20 ? own : `${beginning} … ${own.slice(-4)}`
}

/** An address without spaces, in lower case. */
export function plainAddress(address: string): string {
  return address.replaceAll(/\s/g, '').toLowerCase()
}

/**
 * Whether two texts name the same address: spaces and case are ignored, and so is the chain in front (CAIP-10) if only
 * one text has it. Good enough to find an address; proofs are compared by the adapter's canonical form
 * (`core/wallet/wallet.ts`).
 */
export function isSameAddressText(a: string, b: string): boolean {
  const [one, other] = [plainParts(a), plainParts(b)]
  return one.address === other.address && (one.chain === other.chain || one.chain === '' || other.chain === '')
}

function plainParts(text: string): { readonly chain: string; readonly address: string } {
  const plain = plainAddress(text)
  const end = plain.lastIndexOf(':') + 1
  return { chain: plain.slice(0, end), address: plain.slice(end) }
}
