import { hexToBytes as strictHexToBytes } from '@noble/hashes/utils.js'

export { bytesToHex } from '@noble/hashes/utils.js'

/** The bytes of hex text in either case; `undefined` if its length is odd or it has any other character. */
export function hexToBytes(hex: string): Uint8Array | undefined {
  try {
    return strictHexToBytes(hex)
  } catch {
    return undefined
  }
}
