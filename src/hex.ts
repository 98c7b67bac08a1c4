export { bytesToHex } from '@noble/hashes/utils.js'

/** The value of each ASCII character that is a hex digit, in either case; -1 for all others. */
const digits = new Int8Array(128).fill(-1)
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16)
  digits[digit.charCodeAt(0)] = value
  digits[digit.toUpperCase().charCodeAt(0)] = value
}

/**
 * The bytes of hex text in either case; `undefined` if its length is odd or it has any other character.
 *
 * Made by hand, because every sign-in decodes a key and a signature: `Uint8Array.fromHex` takes memory outside V8's heap for each,
 * which costs three times as much, and `Buffer.from` takes some characters beyond ASCII for digits.
 */
export function hexToBytes(hex: string): Uint8Array | undefined {
  if (hex.length % 2 !== 0) return undefined
  const bytes = new Uint8Array(hex.length / 2)
  for (let index = 0; index < bytes.length; index++) {
    const high = digits[hex.charCodeAt(2 * index)] ?? -1
    const low = digits[hex.charCodeAt(2 * index + 1)] ?? -1
    if (high < 0 || low < 0) return undefined
    bytes[index] = (high << 4) | low
  }
  return bytes
}
