import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Ed25519Framing } from '../../core/wallet/ed25519.ts'
import { ed25519, nimiq } from '../../core/wallet/nimiq.ts'
import { bytesToHex } from '../../shared/hex.ts'

/** A wallet that signs every text. For tests only: a real wallet asks its owner. */
export interface TestWallet {
  /** The id of the adapter that its proofs are for. */
  readonly adapterId: string
  /** Lower-case hex. Empty if the adapter knows wallets by their address only. */
  readonly publicKeyHex: string
  /** Canonical form. */
  readonly address: string
  /** Signs a message as this kind of wallet does; returns the signature in lower-case hex. */
  sign(message: string): string | Promise<string>
}

/** A {@link TestWallet} that signs with Ed25519, at once. */
export interface Ed25519TestWallet extends TestWallet {
  sign(message: string): string
}

/** A {@link TestWallet} in the form of the client's option `wallet`. */
export interface ClientTestWallet {
  readonly adapterId: string
  sign(message: string): Promise<{ readonly publicKeyHex: string; readonly signatureHex: string }>
}

/** The kind of wallet that {@link makeTestWallet} makes. */
export interface TestWalletOptions {
  /** Default nimiq. */
  readonly adapterId?: 'nimiq' | 'ed25519'
  /** What an adapter of your own was made of with `ed25519Adapter`, in place of `adapterId`. */
  readonly framing?: Ed25519Framing
  /** The private key: 32 bytes (RFC 8032 §5.1.5). Default: a new random one. */
  readonly secretKey?: Uint8Array
}

/** The prefix of the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410 §7). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Makes a wallet in memory that signs with Ed25519, as Nimiq wallets do unless the options say otherwise.
 *
 * @throws TypeError if `secretKey` does not have 32 bytes.
 */
export function makeTestWallet(options: TestWalletOptions = {}): Ed25519TestWallet {
  const { adapterId = 'nimiq', secretKey } = options
  const framing = options.framing ?? { nimiq, ed25519 }[adapterId]
  const privateKey = secretKey === undefined ? generateKeyPairSync('ed25519').privateKey : importKey(secretKey)
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const publicKey = new Uint8Array(Buffer.from(x, 'base64url'))
  return {
    adapterId: framing.id,
    publicKeyHex: bytesToHex(publicKey),
    address: framing.deriveAddress(publicKey),
    sign: (message) => sign(null, framing.signedBytes(message), privateKey).toString('hex'),
  }
}

/** Makes a test wallet one that the clients of `countersign/client` and their React component take as `wallet`. */
export function clientWallet(wallet: TestWallet): ClientTestWallet {
  const { adapterId, publicKeyHex } = wallet
  return {
    adapterId,
    sign: async (message) => ({ publicKeyHex, signatureHex: await wallet.sign(message) }),
  }
}

function importKey(secretKey: Uint8Array): KeyObject {
  if (secretKey.length !== 32) throw new TypeError(`a secret key has 32 bytes, not ${secretKey.length}`)
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, secretKey]), format: 'der', type: 'pkcs8' })
}
