import type { AddressInfo } from 'node:net'

/** Prints the address of a server that listens. */
export function sayWhere(address: AddressInfo | string | null): void {
  if (typeof address === 'object') console.log(`http://localhost:${address?.port}`)
}
