import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { readEventStream } from '../../src/browser/client/event-stream.ts'
import { parseClaimUrl } from '../../src/browser/client/phone-orders.ts'
import type { ApprovedOrder, OrderChallenge, OrderEvent, RejectedOrder, StartedOrder } from '../../src/shared/orders.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
import type { Place, Scene } from './scene.ts'

/** A computer's key, of which the public half may be somebody else's. */
export interface ComputerKey {
  /** Base64url SPKI. */
  readonly publicKey: string
  readonly privateKey: KeyObject
}

export function newComputerKey(): ComputerKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64url'), privateKey }
}

/** The side that starts an order and is signed in: a victim's browser, or whatever the attacker calls from. */
export class Computer {
  readonly #scene: Scene
  readonly #place: Place
  readonly key: ComputerKey | undefined
  /** A session of its user, by a wallet on this computer. */
  #session: Promise<string> | undefined

  constructor(scene: Scene, place: Place, key?: ComputerKey) {
    this.#scene = scene
    this.#place = place
    this.key = key
  }

  /**
   * Starts a login order; where only the application's backend can, by opening the application's site. In the column for
   * adding wallets, an order for that, which has no title.
   */
  async start(displayTitle?: string): Promise<StartedOrder> {
    const computerKey = this.key?.publicKey
    const { backend, column } = this.#scene
    if (column === 'link') {
      return await this.#scene.call(this.#place, '/cross-device/start', { kind: 'link' }, await this.#signedIn())
    }
    if (backend !== undefined) return await backend.startFor(this.#place, computerKey)
    return await this.#scene.call(this.#place, '/cross-device/start', { kind: 'login', displayTitle, computerKey })
  }

  /** The newest event of an order. */
  async watch({ orderId, desktopToken }: StartedOrder): Promise<OrderEvent> {
    const response = await fetch(`${this.#scene.url}/api/auth/cross-device/events?orderId=${orderId}`, {
      headers: { origin: this.#scene.url, authorization: `Bearer ${desktopToken}` },
    })
    if (response.body === null) throw new Error('no events')
    for await (const { name, data } of readEventStream(response.body)) {
      if (name === 'message') return JSON.parse(data)
    }
    throw new Error('the stream ended without an event')
  }

  /**
   * Finalizes an order, with proof of the key if there is one. Resolves with the session token: the new one, or the one
   * of the user who has another wallet now.
   */
  async finalize({ orderId, desktopToken }: StartedOrder, returnCode?: string): Promise<string> {
    const computerProof = this.key === undefined ? undefined : proofOf(this.key, orderId, desktopToken)
    const body = { orderId, desktopToken, returnCode, computerProof }
    const own = this.#scene.column === 'link' ? await this.#signedIn() : undefined
    const { token } = await this.#scene.call(this.#place, '/cross-device/finalize', body, own)
    return own ?? token
  }

  #signedIn(): Promise<string> {
    this.#session ??= this.#scene.signIn(this.#place, makeWallet())
    return this.#session
  }
}

/** Proof of possession of a computer key for an order. */
export function proofOf({ privateKey }: ComputerKey, orderId: string, desktopToken: string): string {
  const subject = createHash('sha256').update(desktopToken).digest('base64url')
  const text = Buffer.from(`countersign.v1 finalize\n${orderId}\n${subject}`)
  return sign('sha256', text, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
}

/** The side that approves an order with a wallet: a victim's phone, or the attacker's. Holds one order. */
export class Phone {
  readonly #scene: Scene
  readonly #place: Place
  #order: { readonly orderId: string; readonly challengeToken: string } | undefined

  constructor(scene: Scene, place: Place) {
    this.#scene = scene
    this.#place = place
  }

  /** Opens what a QR code says. */
  async claim(claimUrl: string): Promise<void> {
    this.#order = await this.#scene.call(this.#place, '/cross-device/claim', parseClaimUrl(claimUrl))
  }

  /** Opens the link of a hand-over and taps "Continue". */
  async redeem(handoverUrl: string): Promise<void> {
    const ticket = new URL(handoverUrl).pathname.split('/').at(-1)
    this.#order = await this.#scene.call(this.#place, '/cross-device/redeem', { ticket })
  }

  async challenge(): Promise<OrderChallenge> {
    const { orderId, challengeToken } = this.#held
    const path = `/cross-device/challenge?orderId=${orderId}`
    return await this.#scene.call(this.#place, path, undefined, challengeToken)
  }

  async approve(
    wallet: Pick<TestWallet, 'publicKeyHex'>,
    signatureHex: string,
    choices: { readonly confirmationCode?: string | undefined; readonly rememberComputer?: boolean } = {},
  ): Promise<ApprovedOrder> {
    const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex }
    return await this.#scene.call(this.#place, '/cross-device/approve', { ...this.#held, proof, ...choices })
  }

  /** Rejects the order, or takes it back. */
  async reject(): Promise<RejectedOrder> {
    return await this.#scene.call(this.#place, '/cross-device/reject', this.#held)
  }

  /** Resolves with a link that continues the order elsewhere. */
  async handOver(): Promise<string> {
    return (await this.#scene.call(this.#place, '/cross-device/hand-over', this.#held)).handoverUrl
  }

  get #held() {
    if (this.#order === undefined) throw new Error('no order was claimed')
    const { orderId, challengeToken } = this.#order
    return { orderId, challengeToken }
  }
}
