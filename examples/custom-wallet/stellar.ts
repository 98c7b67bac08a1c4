// Stellar wallets, by their key: docs/custom-wallet.md explains it; chains.test.ts signs in with it.
// npm install countersign @noble/hashes @scure/base
import { sha256 } from '@noble/hashes/sha2.js'
import { base32 } from '@scure/base'
import { signatureAdapter } from 'countersign'

/** Stellar wallets. Sources: SEP-53 (signed messages) and SEP-23 (addresses), both in stellar/stellar-protocol. */
export const stellar = signatureAdapter({
  id: 'stellar',
  displayName: 'Stellar',
  curve: 'ed25519',
  envelope: (text) => sha256(new TextEncoder().encode(`Stellar Signed Message:\n${text}`)),
  address: strkey,
  // The checksum and the unused forms of base32 are checked by writing the address again.
  readAddress: (text) =>
    /^G[A-Z2-7]{55}$/.test(text) && strkey(base32.decode(text).subarray(1, 33)) === text ? text : undefined,
})

/** A key as SEP-23 writes it: a version byte, the key and a checksum, 35 bytes in base32. */
function strkey(publicKey: Uint8Array): string {
  const body = [6 << 3, ...publicKey]
  const checksum = crc16(body)
  return base32.encode(Uint8Array.of(...body, checksum & 0xff, checksum >> 8))
}

/** CRC-16/XMODEM. */
function crc16(bytes: readonly number[]): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc
}
