import { generateKeyPairSync, sign } from 'node:crypto'

/** A wallet of the adapter ed25519: it signs a message's UTF-8 bytes as they are. */
export interface Wallet {
  readonly publicKey: Uint8Array
  /** The proof of a message, as the API takes it. */
  prove(message: string): { publicKeyHex: string; signatureHex: string; adapterId: string }
}

/** Makes wallets with keys of their own. */
export function makeWallets(count: number): Wallet[] {
  return Array.from({ length: count }, () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    // Without padding, the last 32 bytes of a SubjectPublicKeyInfo are the key (RFC 8410).
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
    const publicKeyHex = raw.toString('hex')
    return {
      publicKey: raw,
      prove: (message) => ({
        publicKeyHex,
        signatureHex: sign(null, Buffer.from(message), privateKey).toString('hex'),
        adapterId: 'ed25519',
      }),
    }
  })
}
