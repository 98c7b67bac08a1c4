import { networksOf } from '../base/networks.ts'
import { hashToken } from '../base/token.ts'
import type { Store } from '../store/store.ts'
import { type Limits, mostInstances, networkShares, rateLimited } from './limits.ts'

/** What a caller is told to wait, in milliseconds, if others of its network are being let in. */
const retryAfterMs = 1_000

/** What is known of an order here. Times are epoch milliseconds by the store's clock. */
export interface OpenOrder {
  readonly orderId: string
  readonly expiresAt: number
  /** The desktop's. `ip` is empty if it is unknown; then nothing is counted. */
  readonly requester: { readonly ip: string }
}

/** The open orders of one network. */
interface OrdersOfNetwork {
  readonly set: string
  readonly most: number
}

/**
 * Limits the orders that are open at a time for the address of the requester and the networks around it, over all
 * instances that share a store. They are a set in the store, which an order is added to while it is stored and leaves
 * when it is over; the store itself lets it go at the end of its life.
 */
export class OpenOrders {
  readonly #limits: Limits
  readonly #store: Store
  /** How many orders of each set are being added here. */
  readonly #entering = new Map<string, number>()

  constructor(limits: Limits, store: Store) {
    this.#limits = limits
    this.#store = store
  }

  /**
   * Adds an order. Rejects with RATE_LIMITED, and the time until the first of its network ends, if that has too many;
   * then the order is not counted. If the store does not answer, nothing is counted.
   */
  async add(order: OpenOrder): Promise<void> {
    const member = memberOf(order)
    const life = { ttlMs: Math.max(1, order.expiresAt - this.#store.now()) }
    const surplus = await this.#entered(networksOfOrder(order, this.#limits), ({ set, most }) =>
      this.#store.addMember(set, member, life, most).catch(() => []),
    )
    if (surplus.length === 0) return
    this.remove(order)
    const ends = surplus.map((open) => Number(open.split('.', 1)[0]) - this.#store.now())
    throw rateLimited('open-orders', Math.max(1, ...ends))
  }

  /**
   * Counts an order out that is over. It is not waited for: at the end of its life the order counts no longer anyway.
   */
  remove(order: OpenOrder): void {
    const member = memberOf(order)
    for (const { set } of networksOfOrder(order, this.#limits)) {
      void this.#store.removeMember(set, member).catch(() => {})
    }
  }

  /**
   * Adds to several sets at once; resolves with the first surplus of each that has one. Few enough at a time that no
   * set grows to twice its bound: the store would drop orders that are open, to make room for those that are about to
   * be refused.
   */
  async #entered(
    networks: readonly OrdersOfNetwork[],
    enter: (network: OrdersOfNetwork) => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    const entering = this.#entering
    for (const { set, most } of networks) {
      const room = Math.max(1, Math.floor(most / mostInstances))
      if ((entering.get(set) ?? 0) >= room) throw rateLimited('open-orders', retryAfterMs)
    }
    for (const { set } of networks) entering.set(set, (entering.get(set) ?? 0) + 1)
    try {
      return (await Promise.all(networks.map(enter))).flatMap((surplus) => surplus.slice(0, 1))
    } finally {
      for (const { set } of networks) {
        const left = (entering.get(set) as number) - 1
        if (left > 0) entering.set(set, left)
        else entering.delete(set)
      }
    }
  }
}

function networksOfOrder({ requester: { ip } }: OpenOrder, limits: Limits): OrdersOfNetwork[] {
  if (ip === '') return []
  return networksOf(ip).map((network, width) => ({
    set: `open-orders:${hashToken(network)}`,
    most: limits['open-orders'] * (networkShares[width] as number),
  }))
}

/** Begins with the end, so that those who have to wait for it can be told. */
function memberOf({ orderId, expiresAt }: OpenOrder): string {
  return `${expiresAt}.${orderId}`
}
