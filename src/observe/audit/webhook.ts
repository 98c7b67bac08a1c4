import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditEvent, AuditSink } from '../../base/audit.ts'
import type { Logger } from '../../base/log.ts'
import { Slots } from '../../base/timing/slots.ts'
import type { Tracing } from '../../base/tracing.ts'
import type { Store } from '../../store/store.ts'
import { webhookRequest } from './webhook-form.ts'
import { type WebhookDelivery, WebhookQueue } from './webhook-queue.ts'

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

/** Most stored events that wait in memory for a delivery to end. Further ones are found in the store. */
const maxReady = 1_000

/** Most deliveries at a time, of new events and of those that are found in the store together. */
const maxDeliveries = 8

/**
 * Events that are taken over at a time: they are delivered before another instance may take them, however slow the
 * receiver is.
 */
const claimedAtOnce = 5 * maxDeliveries

/** Time in ms that the receiver has to answer. */
const answerMs = 10_000

/** Time in ms between two looks for events that are due. */
const lookMs = 5_000

/**
 * Shortest and longest time in ms for which nothing is delivered after the receiver did not answer, or answered that it
 * cannot.
 */
const awayMs = { min: 1_000, max: 60_000 }

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
 * it. What is lost: events that an instance was told of in the moment before it was killed, and those beyond the
 * bounds; the log has their number.
 */
export class Webhook {
  readonly #target: WebhookTarget
  readonly #queue: WebhookQueue
  readonly #log: Logger
  readonly #tracing: Tracing | undefined
  readonly #stopping = new AbortController()
  readonly #unstored: AuditEvent[] = []
  readonly #slots = new Slots(maxDeliveries)
  /**
   * Number of stored events that wait for a delivery to end. If this instance ends before, another one delivers them.
   */
  #ready = 0
  #storing: Promise<void> | undefined
  /** Deliveries of new events. */
  readonly #deliveries = new Set<Promise<void>>()
  #looking: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout
  /** Failures of the receiver in a row. */
  #failures = 0
  #awayUntil = 0
  #dropped = 0
  #droppedTimer: NodeJS.Timeout | undefined

  constructor(target: WebhookTarget, { store, log, tracing }: WebhookParts) {
    this.#tracing = tracing
    this.#target = target
    this.#queue = new WebhookQueue(store)
    this.#log = log
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
    this.#look()
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
    this.#stopping.abort()
    const stored = Promise.all([this.#storing, this.#looking, ...this.#deliveries])
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
    const now = !this.#isAway() && this.#ready < maxReady && !this.#stopping.signal.aborted
    try {
      const { delivery, dropped } = await this.#queue.add(event, now)
      if (dropped > 0) this.#drop(dropped)
      if (now) this.#deliverReady(delivery)
      return undefined
    } catch {
      return event
    }
  }

  /** Delivers a new event once there is a place for it, unless this instance stops. */
  #deliverReady(delivery: WebhookDelivery): void {
    this.#ready++
    const deliver = (): Promise<void> => {
      this.#ready--
      return this.#deliver(delivery)
    }
    const delivering = this.#slots
      .run(deliver, this.#stopping.signal)
      .catch(() => {})
      .finally(() => this.#deliveries.delete(delivering))
    this.#deliveries.add(delivering)
  }

  /** Delivers an event, and notes in the store how that went. */
  async #deliver(delivery: WebhookDelivery): Promise<void> {
    // It has waited for so long that another instance could deliver it, too. The next look finds it.
    if (!this.#queue.isHeld(delivery, answerMs)) return
    const answer = this.#isAway() ? 'away' : await this.#send(delivery.event)
    try {
      if (answer === 'taken') await this.#queue.done(delivery)
      else if (answer === 'away') await this.#queue.putBack(delivery, 0)
      else await this.#refused(delivery, answer)
    } catch {
      // The store is away, which the log says. Once the time for the delivery is over, the event is delivered again.
    }
  }

  async #refused(delivery: WebhookDelivery, status: number): Promise<void> {
    const { id, type } = delivery.event
    const waitMs = await this.#queue.refused(delivery)
    if (waitMs === undefined) {
      this.#log.error('webhook refused an event for the last time; it is dropped', { id, type, status })
    } else this.#log.warn('webhook refused an event', { id, type, status, retryInSeconds: waitMs / 1000 })
  }

  /**
   * Sends an event. Resolves with the status of the answer if the receiver refuses it, and that may be because of the
   * event.
   */
  async #send(event: AuditEvent): Promise<'taken' | 'away' | number> {
    const { url, secrets } = this.#target
    const { headers, body } = webhookRequest(event, secrets, Date.now())
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(answerMs)])
    try {
      // A redirect is an answer like any other: what it leads to is not what the operator has set.
      const post = () =>
        fetch(url, {
          method: 'POST',
          headers: { ...headers, ...this.#tracing?.headers() },
          body,
          signal,
          redirect: 'manual',
        })
      const response = await (this.#tracing === undefined
        ? post()
        : this.#tracing.background({ kind: 'webhook' }, post))
      await response.body?.cancel()
      const { status, ok } = response
      if (!ok && (status >= 500 || status === 429)) return this.#wentAway(`it answered ${status}`)
      this.#cameBack()
      return ok ? 'taken' : status
    } catch (thrown) {
      return this.#stopping.signal.aborted ? 'away' : this.#wentAway(failureOf(thrown))
    }
  }

  #isAway(): boolean {
    return performance.now() < this.#awayUntil
  }

  #wentAway(because: string): 'away' {
    const waitMs = Math.min(awayMs.max, awayMs.min * 2 ** this.#failures)
    // Deliveries that were under way beside the first one that failed say nothing new.
    if (!this.#isAway()) {
      if (this.#failures === 0) this.#log.warn('webhook is away; events are kept and delivered later', { because })
      this.#failures++
      this.#awayUntil = performance.now() + waitMs
      setTimeout(() => this.#look(), waitMs + 1).unref()
    }
    return 'away'
  }

  #cameBack(): void {
    if (this.#failures > 0) this.#log.info('webhook is back')
    this.#failures = 0
    this.#awayUntil = 0
  }

  /** Looks for events that are due: those that other instances left, and those whose delivery failed. */
  #look(): void {
    if (this.#stopping.signal.aborted || this.#isAway()) return
    this.#looking ??= this.#deliverDue().finally(() => {
      this.#looking = undefined
    })
  }

  async #deliverDue(): Promise<void> {
    try {
      let claimed: number
      do {
        // Read once for all that is due: with a read for each few of them, a long line would be read over and over
        // again.
        const due = await this.#queue.due()
        claimed = 0
        while (due.length > 0 && !this.#isAway() && !this.#stopping.signal.aborted) {
          // One at first, if it is not known whether the receiver is back.
          const deliveries = await this.#queue.claim(due.splice(0, this.#failures > 0 ? 1 : claimedAtOnce))
          claimed += deliveries.length
          // Also when this instance stops: they are then put back, for another one.
          await Promise.all(deliveries.map((delivery) => this.#slots.run(() => this.#deliver(delivery))))
        }
      } while (claimed > 0 && !this.#isAway() && !this.#stopping.signal.aborted)
    } catch {
      // The store is away, which the log says. The next look comes.
    }
  }

  #drop(count: number): void {
    this.#dropped += count
    this.#droppedTimer ??= setTimeout(() => this.#tellDropped(), droppedLineMs).unref()
  }

  #tellDropped(): void {
    clearTimeout(this.#droppedTimer)
    this.#droppedTimer = undefined
    if (this.#dropped > 0) this.#log.error('audit events for the webhook were dropped', { count: this.#dropped })
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
