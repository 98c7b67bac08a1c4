import { setTimeout as sleep } from 'node:timers/promises'
import { hashToken } from '../base/token.ts'
import { type Deliverable, type Delivery, DeliveryQueue } from '../store/delivery-queue.ts'
import type { SharedParts } from './parts.ts'

/** A session that has ended, and a client that it was signed in at. */
export interface Logout extends Deliverable {
  readonly sessionId: string
  readonly userId: string
  readonly clientId: string
}

type BackChannelParts = Pick<SharedParts, 'store' | 'host' | 'apps' | 'loaded' | 'log'>

/** Sends a logout, in a token made anew. Rejects if the client does not accept it. */
type Send = (logout: Logout) => Promise<void>

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
  readonly #send: Send
  readonly #queue: DeliveryQueue<Logout>
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined

  constructor(parts: BackChannelParts, send: Send) {
    this.#parts = parts
    this.#send = send
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
    const { host, apps, store, loaded } = this.#parts
    const { clients } = loaded()
    for (const ended of await host.sessionClients.ended()) {
      const { id: sessionId, userId, app } = ended
      const lives = app === undefined ? host.findSession(sessionId) : apps.find(userId, app.connection)
      if ((await lives) !== undefined) continue
      for (const clientId of app === undefined ? await host.sessionClients.of(sessionId) : [app.clientId]) {
        if (clients.get(clientId)?.metadata.backchannel_logout_uri === undefined) continue
        const id = hashToken(`${sessionId}\n${clientId}`)
        await this.#queue.add({ id, time: store.now(), sessionId, userId, clientId }, false)
      }
      await host.sessionClients.forget(ended)
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
    try {
      await this.#send(delivery.event)
      await this.#queue.done(delivery)
    } catch (error) {
      const { log } = this.#parts
      const waitMs = await this.#queue.refused(delivery)
      const fields = {
        clientId: delivery.event.clientId,
        cause: error instanceof Error ? error.message : String(error),
      }
      if (waitMs === undefined) log.error('a client did not accept a logout for the last time; it is dropped', fields)
      else log.warn('a client did not accept a logout', { ...fields, retryInSeconds: waitMs / 1000 })
    }
  }
}
