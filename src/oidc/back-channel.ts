import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../base/log.ts'
import { hashToken } from '../base/token.ts'
import type { SessionClients } from '../core/users/session-clients.ts'
import { type Deliverable, type Delivery, DeliveryQueue } from '../store/delivery-queue.ts'
import type { Store } from '../store/store.ts'

/** A session that has ended, and a client that it was signed in at. */
export interface Logout extends Deliverable {
  readonly sessionId: string
  readonly userId: string
  readonly clientId: string
}

/** What a {@link BackChannel} works with. */
export interface BackChannelParts {
  readonly store: Store
  readonly sessionClients: SessionClients
  readonly isLive: (sessionId: string) => Promise<boolean>
  /** Whether a client has an address for logouts. */
  readonly isWanted: (clientId: string) => boolean
  /** Sends a logout, in a token made anew. Rejects if the client does not accept it. */
  readonly send: (logout: Logout) => Promise<void>
  readonly log: Logger
}

/** Time in ms between two looks for sessions that have ended. */
const lookMs = 1_000

/** Deliveries at a time. */
const atOnce = 8

/**
 * Sends clients the logouts of sessions (OpenID Connect Back-Channel Logout 1.0), each at least once, from any instance,
 * also after a restart. A logout that the client does not accept is sent again for three days.
 */
export class BackChannel {
  readonly #parts: BackChannelParts
  readonly #queue: DeliveryQueue<Logout>
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined

  constructor(parts: BackChannelParts) {
    this.#parts = parts
    this.#queue = new DeliveryQueue(parts.store, 'logout')
  }

  /** Begins, once the clients are known. */
  start(): void {
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
    this.#look()
  }

  /** Stops, and waits for what is on its way, for at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    clearInterval(this.#timer)
    await Promise.race([this.#looking, sleep(graceMs, undefined, { ref: false })])
  }

  #look(): void {
    this.#looking ??= this.#queueLogouts()
      .then(() => this.#deliverDue())
      // The store is away, which the log says. The next look comes.
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined
      })
  }

  async #queueLogouts(): Promise<void> {
    const { sessionClients, store, isLive, isWanted } = this.#parts
    for (const ended of await sessionClients.ended()) {
      if (await isLive(ended.id)) continue
      for (const clientId of (await sessionClients.of(ended.id)).filter(isWanted)) {
        const { id: sessionId, userId } = ended
        const id = hashToken(`${sessionId}\n${clientId}`)
        await this.#queue.add({ id, time: store.now(), sessionId, userId, clientId }, false)
      }
      await sessionClients.forget(ended)
    }
  }

  async #deliverDue(): Promise<void> {
    const due = await this.#queue.due()
    while (due.length > 0) {
      const deliveries = await this.#queue.claim(due.splice(0, atOnce))
      await Promise.all(deliveries.map((delivery) => this.#deliver(delivery)))
    }
  }

  async #deliver(delivery: Delivery<Logout>): Promise<void> {
    const { send, log } = this.#parts
    try {
      await send(delivery.event)
      await this.#queue.done(delivery)
    } catch (error) {
      const { clientId } = delivery.event
      const waitMs = await this.#queue.refused(delivery)
      const cause = error instanceof Error ? error.message : String(error)
      if (waitMs === undefined)
        log.error('a client did not accept a logout for the last time; it is dropped', { clientId, cause })
      else log.warn('a client did not accept a logout', { clientId, cause, retryInSeconds: waitMs / 1000 })
    }
  }
}
