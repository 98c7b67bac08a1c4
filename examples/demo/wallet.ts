import { createHash } from 'node:crypto'
import { KeyPair, PrivateKey } from '@nimiq/core'

/** A Nimiq wallet, made by Nimiq's own library. */
export interface Wallet {
  readonly publicKeyHex: string
  readonly address: string
  sign(message: string): string
}

/** Makes a fresh wallet. A real one keeps its key to itself and asks its owner before it signs. */
export function makeWallet(): Wallet {
  const pair = KeyPair.derive(PrivateKey.generate())
  return {
    publicKeyHex: pair.publicKey.toHex(),
    address: pair.toAddress().toUserFriendlyAddress(),
    sign(message) {
      const bytes = Buffer.from(message)
      const framed = createHash('sha256').update(`\x16Nimiq Signed Message:\n${bytes.length}`).update(bytes).digest()
      return pair.sign(framed).toHex()
    },
  }
}
