import { base58 } from '@scure/base'
import nacl from 'tweetnacl'

/** A Solana wallet made with tweetnacl, which signs bytes and knows nothing of this project. */
export interface SolanaWallet {
  readonly publicKey: Uint8Array
  readonly publicKeyHex: string
  readonly address: string
  /** The signature in hex, over text as UTF-8 or over bytes. */
  sign(message: string | Uint8Array): string
}

export function makeSolanaWallet(seed: Uint8Array = nacl.randomBytes(32)): SolanaWallet {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(seed)
  return {
    publicKey,
    publicKeyHex: Buffer.from(publicKey).toString('hex'),
    address: base58.encode(publicKey),
    sign(message) {
      const bytes = typeof message === 'string' ? new TextEncoder().encode(message) : message
      return Buffer.from(nacl.sign.detached(bytes, secretKey)).toString('hex')
    },
  }
}
