/** The least that carries an order from its start to a session; bench/README.md says what it does and leaves out. */
import { createPublicKey, hash, randomBytes, verify } from 'node:crypto'
import type { FloorSteps } from './floor-steps.ts'

const orderMs = 300_000
const sessionMs = 7 * 24 * 3_600_000

interface StoredOrder {
  readonly status: string
  readonly message: string
  readonly publicKeyHex?: string
}

/** The last status of an order. */
const finalized = 'finalized'

/** What is sent of an order. */
type Fields = Readonly<Record<string, string>>

/** Orders that are kept under their id; tokens are its own name, so that none has to be found. */
export class FloorOrders {
  readonly #steps: FloorSteps

  constructor(steps: FloorSteps) {
    this.#steps = steps
  }

  async start(origin: string): Promise<Fields> {
    const orderId = randomBytes(16).toString('base64url')
    const [claimToken = '', desktopToken = ''] = [1, 2].map(() => randomBytes(32).toString('base64url'))
    const message = `Countersign requests authentication
Action: auth.login
Origin: ${origin}
Challenge ID: ${orderId}
Nonce: ${randomBytes(32).toString('base64url')}
Issued At: ${new Date().toISOString()}
Expires At: ${new Date(Date.now() + orderMs).toISOString()}`
    await this.#set(orderId, { status: 'created', message })
    return { orderId, claimToken, desktopToken, claimUrl: `${origin}/claim#${orderId}.${claimToken}` }
  }

  async claim({ orderId = '' }: Fields): Promise<Fields> {
    await this.#move(orderId, 'claimed')
    return { orderId, challengeToken: randomBytes(32).toString('base64url') }
  }

  async challenge({ orderId = '' }: Fields): Promise<Fields> {
    const { message } = await this.#move(orderId, 'waiting_user')
    return { message, action: 'auth.login', challengeId: orderId }
  }

  /** Throws an error if the proof does not hold. */
  async approve(orderId: string, { publicKeyHex = '', signatureHex = '' }: Fields): Promise<Fields> {
    const order = await this.#read(orderId)
    const rawKey = Buffer.from(publicKeyHex, 'hex')
    const key = createPublicKey({ key: rawKey, format: 'raw-public', asymmetricKeyType: 'ed25519' })
    if (!verify(null, Buffer.from(order.message), key, Buffer.from(signatureHex, 'hex'))) throw new Error('not signed')
    await this.#change(orderId, { ...order, publicKeyHex, status: 'approved' })
    return { orderId }
  }

  async finalize({ orderId = '' }: Fields): Promise<Fields> {
    const { publicKeyHex = '' } = await this.#move(orderId, finalized)
    const token = randomBytes(32).toString('base64url')
    const id = hash('sha256', token, 'base64url')
    await this.#steps.set(`session:${id}`, JSON.stringify({ id, userId: publicKeyHex, publicKeyHex }), sessionMs)
    return { orderId, token }
  }

  /** Tells the status of an order now and whenever it changes; the last one is followed by `onEnd`. */
  async watch(orderId: string, onStatus: (status: string) => void, onEnd: () => void): Promise<void> {
    const unwatch = await this.#steps.watch(orderId, (status) => {
      onStatus(status)
      if (status !== finalized) return
      unwatch()
      onEnd()
    })
    onStatus((await this.#read(orderId)).status)
  }

  async #read(orderId: string): Promise<StoredOrder> {
    const stored = await this.#steps.get(`order:${orderId}`)
    if (typeof stored !== 'string') throw new Error('there is no such order')
    return JSON.parse(stored)
  }

  async #set(orderId: string, order: StoredOrder): Promise<void> {
    await this.#steps.replace(`order:${orderId}`, JSON.stringify(order), orderMs)
  }

  async #change(orderId: string, order: StoredOrder): Promise<void> {
    // Commands of one connection are carried out in order.
    await Promise.all([this.#set(orderId, order), this.#steps.wake(orderId, order.status)])
  }

  async #move(orderId: string, status: string): Promise<StoredOrder> {
    const order = { ...(await this.#read(orderId)), status }
    await this.#change(orderId, order)
    return order
  }
}
