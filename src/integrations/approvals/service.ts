import { parseObject } from '../../shared/json-object.ts'
import { type OrderStatus, orderStatuses } from '../../shared/orders.ts'
import { desktopOrderPaths, serviceOptionsPath } from '../../shared/rest-paths.ts'
import type { Fetcher } from '../backend/introspection.ts'
import { ApprovalError } from './error.ts'

/** A service's order as its REST interface starts it. */
export interface AskedOrder {
  readonly id: string
  readonly desktopToken: string
  /** Address of the page on which the user approves. */
  readonly url: string
  /** Epoch milliseconds, by the service's clock. */
  readonly expiresAt: number
}

/** The step that an order is at. */
export interface OrderStep {
  readonly sequence: number
  readonly status: OrderStatus
}

/** Names an order, with the token of its desktop. */
type Holder = Pick<AskedOrder, 'id' | 'desktopToken'>

/** Longest wait of a long poll, in seconds, which the service bounds at 25. */
const waitSeconds = 25

/** Longest time for an answer, in milliseconds, beside the wait of a long poll. */
const limitMs = 10_000

/** Most bytes of an answer. A proof artifact has at most some 50 KB. */
const maxAnswerBytes = 64 * 1024

/** Least time between the starts of two polls without news, in milliseconds: a service that stops answers at once. */
const pauseMs = 1000

/** The computer's part of orders, by REST. All calls reject with an {@link ApprovalError}. */
export class OrderCalls {
  readonly #root: string
  readonly #fetch: Fetcher

  constructor(root: string, fetcher: Fetcher) {
    this.#root = root
    this.#fetch = fetcher
  }

  /** The name that the service writes into the texts that wallets sign, if it says so. */
  async appName(): Promise<unknown> {
    return (await this.#call(serviceOptionsPath, {})).appName
  }

  /** Starts an order, for a holder of a start key. */
  async start(order: Readonly<Record<string, unknown>>, startKey: string): Promise<AskedOrder> {
    const answer = await this.#call(desktopOrderPaths.start, { body: order, bearer: startKey })
    const { orderId, desktopToken, approvalUrl, expiresAt } = answer
    // It becomes a key of the application's own store.
    if (
      typeof orderId !== 'string' ||
      !/^[\w-]{1,64}$/.test(orderId) ||
      typeof desktopToken !== 'string' ||
      typeof expiresAt !== 'number'
    ) {
      throw unexpected('no order')
    }
    if (typeof approvalUrl !== 'string' || !/^https?:\/\//.test(approvalUrl) || !URL.canParse(approvalUrl)) {
      throw unexpected('an order without an address to approve it at')
    }
    return { id: orderId, desktopToken, url: approvalUrl, expiresAt }
  }

  /**
   * Waits for a step of an order that is further than the last one, without it for the newest one. Rejects with the
   * signal's reason once it is aborted.
   */
  async nextStep({ id, desktopToken }: Holder, last: OrderStep | undefined, signal: AbortSignal): Promise<OrderStep> {
    for (let after = last?.sequence; ; ) {
      const query = new URLSearchParams({ orderId: id, wait: String(waitSeconds) })
      if (after !== undefined) query.set('after', String(after))
      const began = performance.now()
      const { events } = await this.#call(`${desktopOrderPaths.events}?${query}`, {
        bearer: desktopToken,
        signal,
        waitMs: waitSeconds * 1000,
      })
      if (!Array.isArray(events)) throw unexpected('no events')
      const step = events.length === 0 ? undefined : stepOf(events.at(-1))
      if (step !== undefined && isNews(step, last)) return step
      after = step?.sequence ?? after
      await pause(Math.max(0, pauseMs - (performance.now() - began)), signal)
    }
  }

  /** Finalizes an order once: the same key gets the same answer again. Resolves with the proof artifact. */
  async finalize({ id, desktopToken }: Holder, finalizeKey: string, signal: AbortSignal): Promise<unknown> {
    const body = { orderId: id, desktopToken, finalizeKey }
    const { proofArtifact } = await this.#call(desktopOrderPaths.finalize, { body, signal })
    return proofArtifact
  }

  async #call(path: string, { body, bearer, signal, waitMs = 0 }: Call): Promise<Readonly<Record<string, unknown>>> {
    const limit = AbortSignal.timeout(waitMs + limitMs)
    let response: Response
    let text: string
    try {
      response = await this.#fetch(this.#root + path, {
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        },
        // Keys and tokens go to no other address.
        redirect: 'manual',
        signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
      })
      text = await textOf(response)
    } catch (cause) {
      signal?.throwIfAborted()
      if (cause instanceof ApprovalError) throw cause
      throw new ApprovalError('SERVICE_UNAVAILABLE', 'The service did not answer', { cause })
    }
    return read(response.status, text)
  }
}

interface Call {
  /** JSON of a POST. Without it, the call is a GET. */
  readonly body?: Readonly<Record<string, unknown>>
  readonly bearer?: string
  readonly signal?: AbortSignal
  /** How long the service may wait before it answers, in milliseconds. */
  readonly waitMs?: number
}

function read(status: number, text: string): Readonly<Record<string, unknown>> {
  const answer = parseObject(text)
  const code = typeof answer?.code === 'string' ? answer.code : undefined
  if (status >= 500) {
    throw new ApprovalError('SERVICE_UNAVAILABLE', `The service cannot answer at the moment: HTTP ${status}`, { code })
  }
  if (status === 200 && answer !== undefined) return answer
  if (code === undefined) throw unexpected(`HTTP ${status}`)
  const why = typeof answer?.message === 'string' ? answer.message.replace(/\s+/g, ' ').slice(0, 500) : ''
  throw new ApprovalError('SERVICE_REFUSED', `The service refused: ${code} ${why}`.trimEnd(), { code })
}

/** The text of an answer of at most {@link maxAnswerBytes}. A longer one is not read to its end. */
async function textOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  // Leaving the loop cancels the rest of the answer.
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) throw unexpected(`more than ${maxAnswerBytes} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

function stepOf(event: unknown): OrderStep {
  const { sequence, status } = (event ?? {}) as Readonly<Record<string, unknown>>
  const known = orderStatuses.find((one) => one === status)
  if (typeof sequence !== 'number' || known === undefined) throw unexpected('an unknown event')
  return { sequence, status: known }
}

/** A service that repeats a step, or goes back, has said nothing for which to ask again at once. */
function isNews({ status }: OrderStep, last: OrderStep | undefined): boolean {
  return last === undefined || orderStatuses.indexOf(status) > orderStatuses.indexOf(last.status)
}

function unexpected(what: string): ApprovalError {
  return new ApprovalError('UNEXPECTED_ANSWER', `Not the answer of a Countersign service: ${what}; check url`)
}

/** Rejects with the signal's reason once it is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
