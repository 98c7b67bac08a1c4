import { lookup } from 'node:dns'
import { request } from 'node:https'
import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDocumentationAddress, isSpecialAddress } from '../base/special-networks.ts'
import { hashToken } from '../base/token.ts'
import { type Deliverable, DeliveryLine, type DeliveryOutcome, DeliveryQueue } from '../observe/delivery.ts'
import type { SharedParts } from './parts.ts'

/** A session that has ended, or a client's connection to it, and a client that it was signed in at. */
export interface Logout extends Deliverable {
  readonly sessionId: string
  readonly userId: string
  readonly clientId: string
}

type BackChannelParts = Pick<SharedParts, 'store' | 'host' | 'apps' | 'sessionClients' | 'loaded' | 'log'>

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
 * instance, also after a restart. Each client has a line of its own, with a pause if it does not answer. A logout is
 * kept for three days.
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
      const lives = app === undefined ? host.hasSession(sessionId) : apps.find(userId, app.connection)
      if (await lives) continue
      for (const clientId of app === undefined ? await sessionClients.of(sessionId) : [app.clientId]) {
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

/** Time in ms that a client has to answer. */
const answerMs = 2_500

/** Whether no client on the internet can be at an IP address. */
export function isUnreachable(address: string): boolean {
  return isSpecialAddress(address) || isDocumentationAddress(address)
}

/** A request to a client. Header values are texts. */
export interface OutgoingRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Posts to any address, for a client in the service's own network. Resolves with the status of the answer. */
export async function postAnywhere({ url, headers, body }: OutgoingRequest): Promise<number> {
  const signal = AbortSignal.timeout(answerMs)
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
  await response.body?.cancel()
  return response.status
}

/**
 * Posts to a public address: https on port 443. The address is checked before the connection, so that a request reveals
 * nothing about the service's own network. Resolves with the status of the answer; redirects are not followed.
 */
export async function postToPublic({ url, headers, body }: OutgoingRequest): Promise<number> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol !== 'https:' || url.port !== '') throw new TypeError('only https on port 443 is called')
  if (isIP(host) !== 0 && isUnreachable(host)) throw specialAddress()
  const options = { method: 'POST', headers, lookup: publicLookup, signal: AbortSignal.timeout(answerMs) }
  return await new Promise((resolve, reject) => {
    const sent = request(url, options, (answer) => {
      answer.destroy()
      resolve(answer.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Looks a host up, and fails if one of its addresses is special. */
const publicLookup: typeof lookup = ((
  host: string,
  options: object,
  callback: (error: Error | null, ...found: unknown[]) => void,
) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error)
    if (found.some(({ address }) => isUnreachable(address))) return callback(specialAddress())
    if ((options as { all?: boolean }).all === true) return callback(null, found)
    const [first] = found
    return callback(null, first?.address, first?.family)
  })
}) as never

function specialAddress(): Error {
  return new Error('the host has an address inside this network; a client there needs "private_network": true')
}
