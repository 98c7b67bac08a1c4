import { hexToBytes as decode } from '@noble/hashes/utils.js'

export { bytesToHex } from '@noble/hashes/utils.js'

/** The bytes that hex text, in either case, stands for; `undefined` when it has an odd length or any other character. */
export function hexToBytes(hex: string): Uint8Array | undefined {
  return hex.length % 2 === 0 && !/[^0-9a-f]/i.test(hex) ? decode(hex) : undefined
}
