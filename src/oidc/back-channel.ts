import { setTimeout as sleep } from 'node:timers/promises'
import { hashToken } from '../base/token.ts'
import { type Deliverable, DeliveryLine, type DeliveryOutcome, DeliveryQueue } from '../observe/delivery.ts'
import type { ConnectedApps } from './connected-apps.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import type { SessionClients } from './session-ends.ts'

/** A session that has ended, or a client's connection to it, and a client that it was signed in at. */
export interface Logout extends Deliverable {
  readonly sessionId: string
  readonly userId: string
  readonly clientId: string
}

interface BackChannelParts extends Pick<IssuerParts, 'store' | 'host' | 'log'> {
  readonly apps: ConnectedApps
  readonly sessionClients: SessionClients
  readonly loaded: () => Loaded
}

/** Sends a logout, in a token made anew. Resolves with what the client answers. */
type Send = (logout: Logout) => Promise<DeliveryOutcome>

/** Queue of a client's logouts, and their way to it. */
interface ClientLine {
  readonly queue: DeliveryQueue<Logout>
  readonly line: DeliveryLine<Logout>
}

/** Time in ms between two looks for sessions that have ended. */
const lookMs = 1_000

/** Time in ms between two looks for logouts that another instance left, or that a client refused. */
const leftMs = 5_000

/** Deliveries to a client at a time. */
const atOnce = 4

/** Longest time in ms from making a token to the end of its delivery. */
const sendMs = 10_000

/**
 * Sends clients the logouts of sessions (OpenID Connect Back-Channel Logout 1.0), each at least once, from any
 * instance, also after a restart. Each client has a queue of its own, which pauses while the client does not answer. A
 * logout is kept for three days.
 */
export class BackChannel {
  readonly #parts: BackChannelParts
  readonly #send: Send
  readonly #lines = new Map<string, ClientLine>()
  readonly #timers: NodeJS.Timeout[] = []
  #looking: Promise<void> | undefined

  constructor(parts: BackChannelParts, send: Send) {
    this.#parts = parts
    this.#send = send
  }

  /** Begins, once the clients are known. */
  start(): void {
    this.#timers.push(
      setInterval(() => this.#look(), lookMs).unref(),
      setInterval(() => this.#lookForLeft(), leftMs).unref(),
    )
    this.#look()
    this.#lookForLeft()
  }

  /** Stops, and waits for what is on its way, for at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    const closed = [...this.#lines.values()].map(({ line }) => line.close())
    await Promise.race([Promise.all([this.#looking, ...closed]), sleep(graceMs, undefined, { ref: false })])
  }

  #look(): void {
    this.#looking ??= this.#queueLogouts()
      // The store is away, which the log says. The next look comes.
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined
      })
  }

  #lookForLeft(): void {
    for (const [clientId, { metadata }] of this.#parts.loaded().clients) {
      if (metadata.backchannel_logout_uri !== undefined) this.#lineOf(clientId).line.look()
    }
  }

  async #queueLogouts(): Promise<void> {
    const { host, apps, sessionClients, store, loaded } = this.#parts
    const { clients } = loaded()
    for (const ended of await sessionClients.ended()) {
      const { id: sessionId, userId, app } = ended
      const lives = app === undefined ? host.hasSession(sessionId) : apps.find(userId, app)
      if (await lives) continue
      const ids = app === undefined ? (await sessionClients.of(sessionId)).keys() : [app.clientId]
      for (const clientId of ids) {
        if (clients.get(clientId)?.metadata.backchannel_logout_uri === undefined) continue
        const id = hashToken(`${sessionId}\n${clientId}`)
        const { queue, line } = this.#lineOf(clientId)
        await queue.add({ id, time: store.now(), sessionId, userId, clientId }, false)
        line.look()
      }
      await sessionClients.forget(ended)
    }
  }

  #lineOf(clientId: string): ClientLine {
    const known = this.#lines.get(clientId)
    if (known !== undefined) return known
    const { store, log } = this.#parts
    const queue = new DeliveryQueue<Logout>(store, 'logout', hashToken(clientId))
    const line = new DeliveryLine({
      queue,
      atOnce,
      answerMs: sendMs,
      send: this.#send,
      onRefused: (_logout, status, waitMs) => {
        const fields = { clientId, status }
        if (waitMs === undefined) log.error('a client refused a logout for the last time; it is dropped', fields)
        else log.warn('a client refused a logout', { ...fields, retryInSeconds: waitMs / 1000 })
      },
      onAway: (because) =>
        log.warn('a client does not answer; its logouts are kept, and sent later', { clientId, because }),
      onBack: () => log.info('a client answers again, and gets its logouts', { clientId }),
    })
    this.#lines.set(clientId, { queue, line })
    return { queue, line }
  }
}
