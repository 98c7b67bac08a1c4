import { createPrivateKey, createPublicKey, hash, type KeyObject, sign } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import { ed25519 } from '../../src/core/wallet/nimiq.ts'

/** A wallet of the `ed25519` adapter, whose key follows from a number. */
export class Wallet {
  readonly name: string
  /** Its subject, too. */
  readonly publicKeyHex: string
  readonly address: string
  readonly #key: KeyObject

  constructor(number: number) {
    this.name = `wallet ${number}`
    const seed = hash('sha256', this.name, 'hex')
    this.#key = createPrivateKey({
      key: Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex'),
      format: 'der',
      type: 'pkcs8',
    })
    this.publicKeyHex = createPublicKey(this.#key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
    this.address = ed25519.deriveAddress(Buffer.from(this.publicKeyHex, 'hex'))
  }

  prove(message: string): { publicKeyHex: string; signatureHex: string } {
    return {
      publicKeyHex: this.publicKeyHex,
      signatureHex: sign(null, Buffer.from(message), this.#key).toString('hex'),
    }
  }
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
