import { createPrivateKey, createPublicKey, hash, type KeyObject, sign } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import type { Session } from '../../src/core/users/host.ts'
import { ed25519, nimiq } from '../../src/core/wallet/nimiq.ts'
import type { Proof, ProvenIdentity } from '../../src/core/wallet/wallet.ts'

const adapters = { ed25519, nimiq } as const

/** Names a wallet: two wallets of one key differ in their adapter. */
export function walletId({ adapterId, subject }: Pick<ProvenIdentity, 'adapterId' | 'subject'>): string {
  return `${adapterId}:${subject}`
}

/** A wallet whose key follows from a number. */
export class Wallet {
  readonly name: string
  /** See {@link walletId}. */
  readonly id: string
  readonly identity: ProvenIdentity
  /** How a people file names it. */
  readonly listedAs: string
  readonly #key: KeyObject

  constructor(number: number, adapterId: keyof typeof adapters = 'ed25519') {
    const keyName = `wallet ${number}`
    this.name = adapterId === 'ed25519' ? keyName : `${keyName} as ${adapterId}`
    const seed = hash('sha256', keyName, 'hex')
    this.#key = createPrivateKey({
      key: Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex'),
      format: 'der',
      type: 'pkcs8',
    })
    const publicKey = createPublicKey(this.#key).export({ format: 'der', type: 'spki' }).subarray(-32)
    const [publicKeyHex, address] = [publicKey.toString('hex'), adapters[adapterId].deriveAddress(publicKey)]
    this.identity = { adapterId, subject: publicKeyHex, publicKeyHex, address }
    this.id = walletId(this.identity)
    this.listedAs = `${adapterId}:${address}`
  }

  prove(message: string): Proof {
    const { adapterId, publicKeyHex } = this.identity
    const signed = adapters[adapterId as keyof typeof adapters].signedBytes(message)
    return { adapterId, publicKeyHex, signatureHex: sign(null, signed, this.#key).toString('hex') }
  }
}

/** Whether a session is one that a wallet signed in to. */
export function isOf(wallet: Wallet, { adapterId, subject = '' }: Session): boolean {
  return wallet.id === walletId({ adapterId, subject })
}

/** A computer with a key of its own, which follows from a number. */
export class ComputerKey {
  readonly computerKey: string
  readonly #key: KeyObject

  constructor(number: number) {
    const secret = Buffer.from(hash('sha256', `computer ${number}`, 'hex'), 'hex')
    const point = Buffer.from(p256.getPublicKey(secret, false))
    const [x, y] = [point.subarray(1, 33).toString('base64url'), point.subarray(33).toString('base64url')]
    this.#key = createPrivateKey({
      key: { kty: 'EC', crv: 'P-256', x, y, d: secret.toString('base64url') },
      format: 'jwk',
    })
    this.computerKey = createPublicKey(this.#key).export({ format: 'der', type: 'spki' }).toString('base64url')
  }

  /** The proof of possession for finalizing an order. */
  prove(orderId: string, desktopToken: string): string {
    const text = `countersign.v1 finalize\n${orderId}\n${hash('sha256', desktopToken, 'base64url')}`
    return sign('sha256', Buffer.from(text), { key: this.#key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  }
}
