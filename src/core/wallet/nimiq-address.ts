import { blake2b } from '@noble/hashes/blake2.js'

/** Nimiq's base32: no I, O, W or Z, which are easily misread. */
const base32 = '0123456789ABCDEFGHJKLMNPQRSTUVXY'

/** The address of a key, in groups: by itself, for pages that check no signature. */
export function nimiqAddress(publicKey: Uint8Array): string {
  // A hash of bytes of any length looks like an address.
  if (publicKey.length !== 32) throw new TypeError(`a public key has 32 bytes, not ${publicKey.length}`)
  const text = encodeBase32(blake2b(publicKey, { dkLen: 32 }).subarray(0, 20))
  return grouped(`NQ${checkDigits(text)}${text}`)
}

/** An address in groups of four characters. */
export function grouped(address: string): string {
  return address.replace(/.{4}(?=.)/g, '$& ')
}

/** The two check digits of an IBAN (ISO 13616, ISO 7064 MOD 97-10) with country code NQ. */
export function checkDigits(text: string): string {
  let remainder = 0
  const digits = `${text}NQ00`
  for (let index = 0; index < digits.length; index++) {
    const code = digits.charCodeAt(index)
    // A is 10.
    const value = code < 0x41 ? code - 0x30 : code - 0x41 + 10
    remainder = (remainder * (value < 10 ? 10 : 100) + value) % 97
  }
  return String(98 - remainder).padStart(2, '0')
}

/**
 * Five bits per character, most significant first. The number of bytes is a multiple of five, so no bits are left over.
 */
function encodeBase32(bytes: Uint8Array): string {
  let text = ''
  let buffer = 0
  let bits = 0
  for (const byte of bytes) {
    buffer = ((buffer << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += base32.charAt((buffer >> bits) & 31)
    }
  }
  return text
}
