import { type ComputerKey, proofOf } from '../relay/devices.ts'
import { type RestAnswer, rest } from '../support/rest.ts'

/** What a desktop starts an order with. */
export interface DesktopOptions {
  /** Default: the service's own origin and nothing else. */
  readonly headers?: Record<string, string>
  readonly key?: ComputerKey
}

/** A desktop that speaks REST and has no screen: what its user would type, the test passes. */
export class Desktop {
  readonly #url: string
  readonly #key: ComputerKey | undefined
  /** The answer to the start. */
  readonly order: Readonly<Record<'orderId' | 'claimUrl' | 'claimToken' | 'desktopToken' | 'confirmationCode', string>>

  private constructor(url: string, key: ComputerKey | undefined, order: Desktop['order']) {
    this.#url = url
    this.#key = key
    this.order = order
  }

  /** Starts an order. Throws unless the service does. */
  static async start(url: string, order: object = { kind: 'login' }, options: DesktopOptions = {}): Promise<Desktop> {
    const { key, headers } = options
    const body = { ...order, ...(key === undefined ? {} : { computerKey: key.publicKey }) }
    const { status, json } = await rest(url, '/cross-device/start', body, headers)
    if (status !== 200) throw new Error(JSON.stringify(json))
    return new Desktop(url, key, json)
  }

  async finalize(returnCode?: string): Promise<RestAnswer> {
    const { orderId, desktopToken } = this.order
    const computerProof = this.#key === undefined ? undefined : proofOf(this.#key, orderId, desktopToken)
    return await rest(this.#url, '/cross-device/finalize', { orderId, desktopToken, returnCode, computerProof })
  }

  async cancel(): Promise<RestAnswer> {
    const { orderId, desktopToken } = this.order
    return await rest(this.#url, '/cross-device/cancel', { orderId, desktopToken })
  }

  /** Whether a session token is good for anything. */
  async isSignedIn(token: string): Promise<boolean> {
    const { status, json } = await rest(this.#url, '/session', undefined, { authorization: `Bearer ${token}` })
    return status === 200 && json.session !== undefined
  }
}
