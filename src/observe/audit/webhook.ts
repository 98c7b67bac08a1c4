import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditEvent, AuditSink, AuditWallet } from '../../base/audit.ts'
import type { Logger } from '../../base/log.ts'
import type { Tracing } from '../../base/tracing.ts'
import type { Store } from '../../store/store.ts'
import { DeliveryLine, type DeliveryOutcome, DeliveryQueue } from '../delivery.ts'
import { webhookRequest } from './webhook-form.ts'

/** Where events are delivered to. */
export interface WebhookTarget {
  /** An http or https address. It may contain a secret, so it is not shown. */
  readonly url: string
  /** Secrets that sign, as Standard Webhooks writes them. */
  readonly secrets: readonly string[]
}

/**
 * Most events that wait in memory to be stored, because events come faster than the store takes them, or it is away.
 */
const maxUnstored = 10_000

/** Events that are stored at a time. */
const storedAtOnce = 16

/** Most deliveries at a time, of new events and of those that are found in the store together. */
const maxDeliveries = 8

/** Time in ms that the receiver has to answer. */
const answerMs = 10_000

/** Time in ms between two looks for events that are due. */
const lookMs = 5_000

/** Time in ms between two log lines that say how many events were dropped. */
const droppedLineMs = 10_000

/** Time in ms after which a step of the store is tried again. */
const storeRetryMs = 1_000

/** What a {@link Webhook} works with. */
interface WebhookParts {
  readonly store: Store
  readonly log: Logger
  /** Absent if no traces are made. */
  readonly tracing: Tracing | undefined
}

/**
 * Delivers audit events to a webhook, each at least once, in no fixed order. An event is stored first and then
 * delivered, by any instance, until the receiver answers 2xx, for up to three days. No call waits for
 * it. What is lost: events of the moment before an instance was killed, and those beyond the
 * bounds; the log has their number.
 */
export class Webhook {
  readonly #target: WebhookTarget
  readonly #queue: WebhookQueue
  readonly #parts: WebhookParts
  readonly #line: DeliveryLine<AuditEvent>
  readonly #unstored: AuditEvent[] = []
  #storing: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout
  #dropped = 0
  #droppedTimer: NodeJS.Timeout | undefined

  constructor(target: WebhookTarget, parts: WebhookParts) {
    const { store, log } = parts
    this.#target = target
    this.#parts = parts
    this.#queue = new WebhookQueue(store)
    this.#line = new DeliveryLine({
      queue: this.#queue,
      atOnce: maxDeliveries,
      answerMs,
      send: (event, signal) => this.#send(event, signal),
      onRefused: ({ id, type }, status, waitMs) => {
        if (waitMs === undefined) {
          log.error('webhook refused an event for the last time; it is dropped', { id, type, status })
        } else log.warn('webhook refused an event', { id, type, status, retryInSeconds: waitMs / 1000 })
      },
      onAway: (because) => log.warn('webhook is away; events are kept and delivered later', { because }),
      onBack: () => log.info('webhook is back'),
    })
    this.#timer = setInterval(() => this.#line.look(), lookMs).unref()
    this.#line.look()
  }

  /** Takes an event, to store and deliver it. */
  readonly sink: AuditSink = (event) => {
    if (this.#unstored.length >= maxUnstored) {
      this.#drop(1)
      return
    }
    this.#unstored.push(event)
    this.#storing ??= this.#storeAll().finally(() => {
      this.#storing = undefined
    })
  }

  /** Stops delivering, and waits until all events are stored, for at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    clearInterval(this.#timer)
    const stored = Promise.all([this.#line.close(), this.#storing])
    await Promise.race([stored, sleep(graceMs, undefined, { ref: false })])
    if (this.#unstored.length > 0) this.#drop(this.#unstored.length)
    this.#tellDropped()
  }

  async #storeAll(): Promise<void> {
    while (this.#unstored.length > 0) {
      const events = this.#unstored.splice(0, storedAtOnce)
      const left = (await Promise.all(events.map((event) => this.#store(event)))).filter((event) => event !== undefined)
      if (left.length === 0) continue
      this.#unstored.unshift(...left)
      // The log says that the store is away.
      await sleep(storeRetryMs, undefined, { ref: false })
    }
  }

  /** Stores an event, and has it delivered. Resolves with the event if the store is away. */
  async #store(event: AuditEvent): Promise<AuditEvent | undefined> {
    const now = this.#line.takesNew
    try {
      const { delivery, dropped } = await this.#queue.add(event, now)
      if (dropped > 0) this.#drop(dropped)
      if (now) this.#line.deliver(delivery)
      return undefined
    } catch {
      return event
    }
  }

  async #send(event: AuditEvent, stopping: AbortSignal): Promise<DeliveryOutcome> {
    const { url, secrets } = this.#target
    const { tracing } = this.#parts
    const { headers, body } = webhookRequest(event, secrets, Date.now())
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(answerMs)])
    try {
      // A redirect is an answer like any other: what it leads to is not what the operator has set.
      const post = () =>
        fetch(url, {
          method: 'POST',
          headers: { ...headers, ...tracing?.headers() },
          body,
          signal,
          redirect: 'manual',
        })
      const response = await (tracing === undefined ? post() : tracing.background({ kind: 'webhook' }, post))
      await response.body?.cancel()
      const { status, ok } = response
      if (ok) return 'taken'
      return status >= 500 || status === 429 ? { away: `it answered ${status}` } : { refused: status }
    } catch (thrown) {
      return { away: failureOf(thrown) }
    }
  }

  #drop(count: number): void {
    this.#dropped += count
    this.#droppedTimer ??= setTimeout(() => this.#tellDropped(), droppedLineMs).unref()
  }

  #tellDropped(): void {
    clearTimeout(this.#droppedTimer)
    this.#droppedTimer = undefined
    if (this.#dropped > 0) this.#parts.log.error('audit events for the webhook were dropped', { count: this.#dropped })
    this.#dropped = 0
  }
}

/** Why a request failed, without the address, which can contain a secret. */
function failureOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'the request failed'
  if (thrown.name === 'TimeoutError') return `it did not answer within ${answerMs / 1000} seconds`
  const { code } = (thrown.cause ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : 'the request failed'
}

/** The subject of an event. */
interface Party {
  readonly userId: string
  readonly wallets: readonly AuditWallet[]
}

/** The audit events that the webhook has not taken yet. */
export class WebhookQueue extends DeliveryQueue<AuditEvent> {
  constructor(store: Store) {
    super(store, 'webhook')
  }

  /**
   * Drops the waiting events that concern a user or one of these wallets, or an order that such an event
   * names.
   */
  async forget(party: Party): Promise<void> {
    const affected = (await this.waiting()).filter((event) => concerns(event, party))
    const orders = new Set(affected.map(orderIn).filter((orderId) => orderId !== undefined))
    await this.drop((event) => concerns(event, party) || orders.has(orderIn(event) ?? ''))
  }
}

function concerns(event: AuditEvent, { userId, wallets }: Party): boolean {
  if ('userId' in event && event.userId === userId) return true
  if (!('address' in event)) return false
  return wallets.some(({ adapterId, address }) => adapterId === event.adapterId && address === event.address)
}

function orderIn(event: AuditEvent): string | undefined {
  return 'orderId' in event ? event.orderId : undefined
}
