import { blake2b } from '@noble/hashes/blake2.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { type Ed25519Adapter, ed25519Adapter, utf8Bytes } from './ed25519.ts'

/** Nimiq's base32: no I, O, W or Z, which are easily misread. */
const base32 = '0123456789ABCDEFGHJKLMNPQRSTUVXY'
const addressForm = /^NQ[0-9]{2}[0-9A-HJ-NP-VXY]{32}$/i
const messagePrefix = '\x16Nimiq Signed Message:\n'

/**
 * Nimiq wallets.
 *
 * A wallet signs the SHA-256 of `\x16Nimiq Signed Message:\n`, the message's length in UTF-8 bytes as decimal text, and
 * the message. An address is the first 20 bytes of the key's BLAKE2b-256 in Nimiq's base32 behind `NQ` and two check
 * digits.
 *
 * What Ed25519 is given to sign is that digest and nothing else. So a raw Ed25519 signature over the 32 bytes of a
 * digest, made with any program, is a Nimiq wallet's signature over the message. That lies in Nimiq's scheme and
 * cannot be told apart here. Two things follow. An application compares the adapter and the address (or the subject),
 * never the public key alone: the key of an identity may be one that its holder uses elsewhere. And a service that lets
 * its users sign raw 32-byte values with an Ed25519 key lends out the Nimiq wallet of that key.
 *
 * Source: the Nimiq documentation on signed messages and addresses, and @nimiq/core, with which both agree.
 */
export const nimiq: Ed25519Adapter = ed25519Adapter({
  id: 'nimiq',
  displayName: 'Nimiq',

  signedBytes(message) {
    const { length } = utf8Bytes(message)
    return sha256(utf8Bytes(`${messagePrefix}${length}${message}`))
  },

  deriveAddress(publicKey) {
    // A hash of bytes of any length looks like an address.
    if (publicKey.length !== 32) throw new TypeError(`a public key has 32 bytes, not ${publicKey.length}`)
    const text = encodeBase32(blake2b(publicKey, { dkLen: 32 }).subarray(0, 20))
    return grouped(`NQ${checkDigits(text)}${text}`)
  },

  readAddress(text) {
    const compact = text.replaceAll(' ', '')
    // Tested before the case changes: other alphabets have letters whose upper case is an ASCII letter.
    if (!addressForm.test(compact)) return undefined
    const address = compact.toUpperCase()
    // Compared as text, because 00, 01 and 99 leave the same remainder as 97, 98 and 02, so an address would have two
    // forms.
    return address.slice(2, 4) === checkDigits(address.slice(4)) ? grouped(address) : undefined
  },
})

/** An address in groups of four characters. */
function grouped(address: string): string {
  return address.replace(/.{4}(?=.)/g, '$& ')
}

/**
 * Wallets and tools that sign the message's UTF-8 bytes as they are (Ed25519 without context or pre-hash, RFC 8032
 * §5.1). Addresses are those of {@link nimiq}: the two differ in their framing only.
 */
export const ed25519: Ed25519Adapter = ed25519Adapter({
  id: 'ed25519',
  displayName: 'Ed25519',
  signedBytes: (message) => utf8Bytes(message),
  deriveAddress: nimiq.deriveAddress,
  readAddress: nimiq.readAddress,
})

/** The two check digits of an IBAN (ISO 13616, ISO 7064 MOD 97-10) with country code NQ. */
function checkDigits(text: string): string {
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
