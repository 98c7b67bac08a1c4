import { sha256 } from '@noble/hashes/sha2.js'
import { type Ed25519Adapter, ed25519Adapter, utf8Bytes } from './ed25519.ts'
import { checkDigits, grouped, nimiqAddress } from './nimiq-address.ts'

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

  deriveAddress: nimiqAddress,

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
