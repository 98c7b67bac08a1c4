import type { DescMethod } from '@bufbuild/protobuf'
import { OrderKind, OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { pathOf } from '../grpc.ts'
import { jsonOf } from '../rpc.ts'
import { makeWallets, type Wallet } from '../wallets.ts'
import { Connections, EventStream } from './connections.ts'

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession, signOut } = SessionService.method
const { startOrder, claimOrder, getOrderChallenge, approveOrder, finalizeOrder } = OrderService.method

/** One with a wallet, at an address. */
export interface Person {
  readonly wallet: Wallet
  /** Header lines of all their calls, as the proxy in front adds them. */
  readonly headers: string
}

/** What people do with a service. Calls go to its instances in turns, so that each of a person's calls meets another one. */
export class People implements Disposable {
  readonly #instances: readonly Connections[]
  #people = 0
  #calls = 0

  constructor(ports: readonly number[]) {
    this.#instances = ports.map((port) => new Connections(port))
  }

  /** Somebody who was not there before. */
  arrive(): Person {
    const number = this.#people++
    const [wallet] = makeWallets(1) as [Wallet]
    // IPv4, because limits count the networks around an IPv6 address, too.
    const address = `10.${(number >> 16) & 0xff}.${(number >> 8) & 0xff}.${number & 0xff}`
    return { wallet, headers: `x-forwarded-for: ${address}\r\n` }
  }

  /** Signs in, and returns the session's token. */
  async signIn({ wallet, headers }: Person): Promise<string> {
    const { nonceId, message } = await this.#call(issueNonce, '{}', headers)
    const proof = jsonOf(verifySignIn, { nonceId, ...wallet.prove(message) })
    return (await this.#call(verifySignIn, proof, headers)).token
  }

  /** Asks for a nonce and leaves. */
  async leaveNonce({ headers }: Person): Promise<void> {
    await this.#call(issueNonce, '{}', headers)
  }

  async check({ headers }: Person, token: string): Promise<void> {
    await this.#call(getCurrentSession, '{}', `${headers}authorization: Bearer ${token}\r\n`)
  }

  async signOut({ headers }: Person, token: string): Promise<void> {
    await this.#call(signOut, '{}', `${headers}authorization: Bearer ${token}\r\n`)
  }

  /** Starts an order at a computer, watched there. */
  async startOrder({ headers }: Person): Promise<StartedOrder> {
    const started = await this.#call(startOrder, jsonOf(startOrder, { kind: OrderKind.LOGIN }), headers)
    const watch = new EventStream(this.#next().port, started, headers)
    await watch.reached('created')
    return { ...started, watch }
  }

  /** Approves an order with the phone, and returns the token of the session at the computer. */
  async finishOrder({ wallet, headers }: Person, order: StartedOrder): Promise<string> {
    using watch = order.watch
    const { orderId, claimToken, desktopToken } = order
    const { challengeToken } = await this.#call(claimOrder, jsonOf(claimOrder, { orderId, claimToken }), headers)
    const asked = jsonOf(getOrderChallenge, { orderId, challengeToken })
    const { message } = await this.#call(getOrderChallenge, asked, headers)
    const approval = jsonOf(approveOrder, { orderId, challengeToken, proof: wallet.prove(message) })
    await Promise.all([watch.reached('approved'), this.#call(approveOrder, approval, headers)])
    const { token } = await this.#call(finalizeOrder, jsonOf(finalizeOrder, { orderId, desktopToken }), headers)
    await watch.ended
    return token
  }

  [Symbol.dispose](): void {
    for (const instance of this.#instances) instance[Symbol.dispose]()
  }

  // biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
  async #call(method: DescMethod, body: string, headers: string): Promise<any> {
    return await this.#next().postJson(pathOf(method), body, headers)
  }

  #next(): Connections {
    return this.#instances[this.#calls++ % this.#instances.length] as Connections
  }
}

/** An order that somebody watches. */
export interface StartedOrder {
  readonly orderId: string
  readonly claimToken: string
  readonly desktopToken: string
  readonly watch: EventStream
}
