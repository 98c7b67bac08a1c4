import { setTimeout as pause } from 'node:timers/promises'
import { readEventStream } from '../../../src/browser/client/event-stream.ts'
import { type RestAnswer, rest } from '../../support/rest.ts'
import { isRetryable } from './judge.ts'
import { type Answer, type Ledger, noteSession, type SeenEvent, type SessionAnswer } from './ledger.ts'

/** Origin of all callers. The services have to trust it. */
export const origin = 'https://app.example'

/** Pause of a caller before it comes again, in milliseconds. Shorter than Retry-After asks, to find more gaps. */
const retryPauseMs = 100

/** Time after which a caller that is always told to come again gives up, in milliseconds: nothing heals any more. */
const patienceMs = 60_000

/** An answer with what it contains. */
export interface FullAnswer extends SessionAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
  readonly json: any
}

/**
 * How a stream of events ended: `ended` after the last event of the order, `interrupted` before, or why there was none.
 */
type StreamEnd = 'ended' | 'interrupted' | Answer

const endsOfOrders: ReadonlySet<string> = new Set(['rejected', 'cancelled', 'finalized', 'expired'])

/** Calls two services as sensible clients do, and notes every answer in a ledger. */
export class Caller {
  readonly #urls: [string, string]
  readonly #ledger: Ledger

  constructor(urls: readonly [string, string], ledger: Ledger) {
    this.#urls = [...urls]
    this.#ledger = ledger
  }

  /** From now on, whatever is for an instance goes to another address. */
  replace(instance: 0 | 1, url: string): void {
    this.#urls[instance] = url
  }

  /**
   * Makes a call to an instance (an even number means the first one) until it is not told to come again. Notes each
   * answer, together with `details`.
   */
  async call<Details extends object>(
    instance: number,
    { path, body, bearer }: { path: string; body?: object; bearer?: string },
    notes: (SessionAnswer & Details)[],
    details: Details,
  ): Promise<FullAnswer> {
    const startedAt = performance.now()
    while (true) {
      const headers = { origin, ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) }
      const sentAt = performance.now()
      const received = await rest(this.#urlOf(instance), path, body, headers).catch(() => undefined)
      const answer: SessionAnswer = {
        sentAt,
        answeredAt: performance.now(),
        outcome: outcomeOf(received),
        ...(received?.status === 200 && received.json.token !== undefined ? { token: received.json.token } : {}),
      }
      notes.push({ ...answer, ...details })
      noteSession(this.#ledger, answer)
      if (!isRetryable(answer.outcome)) return { ...answer, json: received?.json }
      if (performance.now() - startedAt > patienceMs) throw new Error(`${path}: ${answer.outcome} for ${patienceMs} ms`)
      await pause(retryPauseMs * (0.5 + Math.random()))
    }
  }

  /** Watches an order from its first transition to its end, through as many streams as that takes. */
  async watch(
    instance: number,
    order: { readonly orderId: string; readonly desktopToken: string },
    { seen, failures }: { seen: SeenEvent[]; failures: Answer[] },
  ): Promise<void> {
    const startedAt = performance.now()
    let after = 0
    while (performance.now() - startedAt < patienceMs) {
      const end = await this.#watchOnce(instance, order, after, (event) => seen.push(event))
      if (end === 'ended') return
      if (end !== 'interrupted') failures.push(end)
      // As our own client does: a store that lost its last writes does not know the sequence any more.
      after = end !== 'interrupted' && end.outcome === 'INVALID_REQUEST' ? 0 : (seen.at(-1)?.sequence ?? 0)
      await pause(retryPauseMs * (0.5 + Math.random()))
    }
  }

  /** The statuses of an order's whole history, or undefined if the instance does not know the order. */
  async history(instance: number, order: { orderId: string; desktopToken: string }): Promise<string[] | undefined> {
    while (true) {
      const statuses: string[] = []
      // An order that is not over leaves its stream open.
      const signal = AbortSignal.timeout(2000)
      const end = await this.#watchOnce(instance, order, 0, ({ status }) => statuses.push(status), signal)
      if (end === 'ended' || statuses.length > 0) return statuses
      if (end !== 'interrupted' && !isRetryable(end.outcome)) return undefined
      await pause(retryPauseMs)
    }
  }

  async #watchOnce(
    instance: number,
    { orderId, desktopToken }: { orderId: string; desktopToken: string },
    after: number,
    onEvent: (event: SeenEvent) => void,
    signal?: AbortSignal,
  ): Promise<StreamEnd> {
    const sentAt = performance.now()
    const failed = (outcome: string): Answer => ({ sentAt, answeredAt: performance.now(), outcome })
    try {
      const response = await fetch(`${this.#urlOf(instance)}/api/auth/cross-device/events?orderId=${orderId}`, {
        headers: { origin, authorization: `Bearer ${desktopToken}`, 'last-event-id': String(after) },
        ...(signal && { signal }),
      })
      if (response.status === 204) return 'ended'
      if (response.status !== 200 || response.body === null) {
        return failed(((await response.json()) as { code: string }).code)
      }
      for await (const { name, data } of readEventStream(response.body)) {
        if (name !== 'message') continue
        const { sequence, status } = JSON.parse(data)
        onEvent({ sequence, status, receivedAt: performance.now() })
        if (endsOfOrders.has(status)) return 'ended'
      }
      return 'interrupted'
    } catch {
      return failed('NETWORK')
    }
  }

  #urlOf(instance: number): string {
    return this.#urls[instance % 2 === 0 ? 0 : 1]
  }
}

function outcomeOf(received: RestAnswer | undefined): string {
  if (received === undefined) return 'NETWORK'
  return received.status === 200 ? 'OK' : (received.json?.code ?? String(received.status))
}
