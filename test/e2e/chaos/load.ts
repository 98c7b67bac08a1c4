import { setTimeout as pause } from 'node:timers/promises'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import type { Caller } from './caller.ts'
import type { Ledger, NonceEntry, OrderCall, OrderEntry, WatchEntry } from './ledger.ts'

/** Longest time after which somebody else tries a nonce that was used, in milliseconds. */
const replayDelayMs = 1500

/** How many promises are checked at the same time at the end. */
const auditsAtOnce = 16

const instances = [0, 1]

/** Answers to a finalize which say that the order is over. */
const endingOutcomes: ReadonlySet<string> = new Set([
  'OK',
  'ORDER_REJECTED',
  'ORDER_CANCELLED',
  'ORDER_FINALIZED',
  'ORDER_EXPIRED',
])

/** An order with what its desktop and phone need to know. */
interface StartedOrder {
  readonly entry: OrderEntry
  readonly claimToken: string
  readonly desktopToken: string
  /** Resolves when both watches have ended. */
  readonly watched: Promise<unknown>
}

/** Users who sign in and approve orders, through two services on one store. Every answer goes into the ledger. */
export class Load {
  readonly #caller: Caller
  readonly #ledger: Ledger
  /** What users are doing. */
  readonly #running: Promise<void>[] = []
  /** Orders that wait for the end of the load. */
  readonly #patient: StartedOrder[] = []
  /** Checks of what was promised, for the end. */
  readonly #audits: (() => Promise<unknown>)[] = []
  readonly #stopping = new AbortController()
  /** Number of sign-ins and orders that came to their end so far. */
  readonly done = { signIns: 0, orders: 0 }

  constructor(caller: Caller, ledger: Ledger) {
    this.#caller = caller
    this.#ledger = ledger
  }

  /** Starts so many users who sign in, or take orders from their start to their end, over and over. */
  start(users: { readonly signIns: number; readonly orders: number }): void {
    for (let i = 0; i < users.signIns; i++) this.#keep(this.#repeat('signIns', () => this.#signIn(i)))
    for (let i = 0; i < users.orders; i++) this.#keep(this.#repeat('orders', () => this.#goThroughOrder(i)))
  }

  /** Starts orders that are watched from now on, and that end only when the load stops. */
  async startPatientOrders(count: number): Promise<void> {
    const orders = Array.from({ length: count }, (_, i) => this.#startOrder(i, 'login'))
    this.#patient.push(...(await Promise.all(orders)))
  }

  /** Lets everyone come to the end of what they are at, and the patient orders to theirs. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    // Sign-ins add to it until they have ended.
    while (this.#running.length > 0) await Promise.all(this.#running.splice(0))
    await Promise.all(this.#patient.map((order, i) => this.#cancel(i, order)))
    await Promise.all(this.#patient.map(({ watched }) => watched))
  }

  /**
   * Asks for everything that was promised: uses each nonce once more, and asks both instances for each session and for
   * the history of each order.
   */
  async audit(): Promise<void> {
    for (const [token, { known }] of this.#ledger.sessions) {
      this.#audits.push(async () => {
        for (const instance of instances) {
          const { outcome } = await this.#caller.call(instance, { path: '/session', bearer: token }, [], {})
          known[instance] = outcome === 'OK'
        }
      })
    }
    const auditors = Array.from({ length: auditsAtOnce }, async () => {
      for (let audit = this.#audits.pop(); audit !== undefined; audit = this.#audits.pop()) await audit()
    })
    await Promise.all(auditors)
  }

  /** Lets everyone stop, without waiting for it. */
  abandon(): void {
    this.#stopping.abort()
  }

  #keep(activity: Promise<void>): void {
    // `stop` rejects with a failure. A test that has failed already does not wait for it.
    activity.catch(() => undefined)
    this.#running.push(activity)
  }

  async #repeat(what: 'signIns' | 'orders', once: () => Promise<void>): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await once()
      this.done[what]++
      await pause(5 + Math.random() * 20)
    }
  }

  /** Issues a nonce and uses it on both instances at once, and once more a little later. */
  async #signIn(i: number): Promise<void> {
    const { unmade } = this.#ledger
    const { json, ...issued } = await this.#caller.call(i, { path: '/wallet/nonce', body: {} }, unmade, {})
    if (issued.outcome !== 'OK') return
    const entry: NonceEntry = { nonceId: json.nonceId, issued, uses: [] }
    this.#ledger.nonces.push(entry)
    const body = proofOf(makeWallet(), json)
    const use = (instance: number) => this.#caller.call(instance, { path: '/wallet/verify', body }, entry.uses, {})
    const replay = async (): Promise<void> => {
      await pause(Math.random() * replayDelayMs)
      await use(i + 1)
    }
    this.#keep(replay())
    await Promise.all([use(0), use(1)])
    this.#audits.push(() => use(i))
  }

  async #goThroughOrder(i: number): Promise<void> {
    const order = await this.#startOrder(i, Math.random() < 0.7 ? 'login' : 'sign')
    if (Math.random() < 0.1) await this.#cancel(i, order)
    else await this.#claimAndDecide(i, order)
    await order.watched
  }

  async #startOrder(i: number, kind: 'login' | 'sign'): Promise<StartedOrder> {
    const { unmade, orders } = this.#ledger
    const { json, ...started } = await this.#caller.call(i, { path: '/cross-device/start', body: { kind } }, unmade, {})
    const { orderId, claimToken, desktopToken } = json
    const watches: WatchEntry[] = instances.map(() => ({ seen: [], failures: [] }))
    const entry: OrderEntry = { orderId, started, calls: [], watches, histories: [] }
    orders.push(entry)
    const watched = Promise.all(
      watches.map((watch, instance) => this.#caller.watch(instance, { orderId, desktopToken }, watch)),
    )
    for (const instance of instances) {
      this.#audits.push(async () => {
        entry.histories[instance] = await this.#caller.history(instance, { orderId, desktopToken })
      })
    }
    return { entry, claimToken, desktopToken, watched }
  }

  /** Two phones want the order. The one that gets it approves, while somebody else may want something else. */
  async #claimAndDecide(i: number, order: StartedOrder): Promise<void> {
    const { claimToken, desktopToken } = order
    const claims = await Promise.all(
      instances.map((instance) => this.#callAs(order, 'claim', instance, { claimToken, claimKey: newClaimKey() })),
    )
    const claimed = claims.find(({ outcome }) => outcome === 'OK')
    if (claimed !== undefined) await this.#decide(i, order, claimed.json.challengeToken)
    const finalizes = await Promise.all(
      instances.map((instance) => this.#callAs(order, 'finalize', instance, { desktopToken })),
    )
    if (!finalizes.some(({ outcome }) => endingOutcomes.has(outcome))) await this.#cancel(i, order)
  }

  async #decide(i: number, order: StartedOrder, challengeToken: string): Promise<void> {
    const { orderId, calls } = order.entry
    const path = `/cross-device/challenge?orderId=${orderId}`
    const read = await this.#caller.call(i, { path, bearer: challengeToken }, calls, { call: 'challenge' })
    if (read.outcome !== 'OK') return
    const { nonceId: _none, ...proof } = proofOf(makeWallet(), { nonceId: '', message: read.json.message })
    const approve = (instance: number) => this.#callAs(order, 'approve', instance, { challengeToken, proof })
    const others = [
      () => approve(i + 1),
      () => this.#callAs(order, 'reject', i + 1, { challengeToken }),
      () => this.#cancel(i + 1, order),
    ]
    await Promise.all([approve(i), others[Math.floor(Math.random() * others.length)]!()])
  }

  async #cancel(i: number, order: StartedOrder): Promise<void> {
    await this.#callAs(order, 'cancel', i, { desktopToken: order.desktopToken })
  }

  #callAs({ entry: { orderId, calls } }: StartedOrder, call: OrderCall, instance: number, input: object) {
    return this.#caller.call(instance, { path: `/cross-device/${call}`, body: { orderId, ...input } }, calls, { call })
  }
}

function newClaimKey(): string {
  return crypto.getRandomValues(Buffer.alloc(32)).toString('base64url')
}
