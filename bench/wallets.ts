import { generateKeyPairSync, sign } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { hashMessage } from 'viem'
import { publicKeyToAddress } from 'viem/accounts'

/** A wallet that proves messages. */
export interface Prover {
  /** The proof of a message, as the API takes it. */
  prove(message: string): { publicKeyHex: string; signatureHex: string; adapterId: string }
}

/** A wallet of the adapter ed25519: it signs a message's UTF-8 bytes as they are. */
export interface Wallet extends Prover {
  readonly publicKey: Uint8Array
}

/** A wallet of the adapter ethereum, which a request for a nonce names. */
export interface EthereumWallet extends Prover {
  readonly named: { readonly adapterId: string; readonly address: string; readonly chainId: string }
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

/** Makes wallets of the adapter ethereum, on chain 1, with keys of their own: about 0.5 ms each. */
export function makeEthereumWallets(count: number): EthereumWallet[] {
  return Array.from({ length: count }, () => {
    const secretKey = secp256k1.utils.randomSecretKey()
    const publicKey = Buffer.from(secp256k1.getPublicKey(secretKey, false)).toString('hex')
    const named = { adapterId: 'ethereum', address: publicKeyToAddress(`0x${publicKey}`), chainId: '1' }
    return {
      named,
      prove(message) {
        const digest = hashMessage(message, 'bytes')
        const [parity = 0, ...rs] = secp256k1.sign(digest, secretKey, { prehash: false, format: 'recovered' })
        return { ...named, publicKeyHex: '', signatureHex: Buffer.from([...rs, 27 + parity]).toString('hex') }
      },
    }
  })
}
