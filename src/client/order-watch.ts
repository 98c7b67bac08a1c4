import type { WatchOrderRequest, WatchOrderResponse } from '../../gen/client/countersign/v1/order_service_pb.ts'
import { toClientError } from './connect.ts'
import { aborted, isPassing } from './errors.ts'
import { onWake } from './page.ts'
import { plain } from './plain.ts'
import { pause } from './retry.ts'
import type { DesktopOrder, OrderEvent, OrderStatus } from './types.ts'

/** How an order is watched. */
export interface WatchOrderOptions {
  /** Ends the watch: it rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
  /** The last sequence seen, to go on from there. Without it, the first event is the newest transition. */
  readonly afterSequence?: number | undefined
  /** Told when the stream opens (true) and when it is lost (false), for a page to show. */
  readonly onConnection?: ((connected: boolean) => void) | undefined
}

/** What {@link watchOrder} works with. */
export interface WatchSource {
  readonly open: (
    request: Pick<WatchOrderRequest, 'orderId' | 'desktopToken' | 'afterSequence'>,
    call: { readonly signal: AbortSignal; readonly onHeader: () => void },
  ) => AsyncIterable<WatchOrderResponse>
  /** Silence after which a stream is taken for dead, milliseconds. */
  readonly silenceMs: number
}

const terminal: ReadonlySet<OrderStatus> = new Set(['finalized', 'rejected', 'cancelled', 'expired'])

/** Whether nothing more happens to an order with this status. */
export function isTerminal(status: OrderStatus): boolean {
  return terminal.has(status)
}

/**
 * Yields what happens to an order, each transition once and in order, and ends after a terminal one.
 *
 * A stream that is lost is opened again from the last sequence seen: with growing waits when it fails, and at once when the
 * page becomes visible or the network returns, since a stream may have died unseen. Rejects with ABORTED, and with what no
 * retry can change, such as ORDER_NOT_FOUND and ORDER_TOKEN_INVALID.
 */
export async function* watchOrder(
  { open, silenceMs }: WatchSource,
  { orderId, desktopToken }: DesktopOrder,
  { signal, afterSequence, onConnection }: WatchOrderOptions,
): AsyncGenerator<OrderEvent, void, undefined> {
  let sequence = afterSequence
  let failures = 0
  for (;;) {
    if (signal?.aborted) throw aborted(signal)
    const link = new Link(signal, silenceMs)
    let retryAfterMs: number | undefined
    try {
      const request = { orderId, desktopToken, afterSequence: sequence }
      const onHeader = (): void => onConnection?.(true)
      const stream = open(request, { signal: link.signal, onHeader })[Symbol.asyncIterator]()
      for (let heard = 0; ; heard++) {
        const { done, value } = await link.hear(stream.next())
        if (done) break
        // A first message always comes. A stream that is more than that is a connection that holds.
        if (heard > 0) failures = 0
        if (value.reconnect) break
        if (value.heartbeat) continue
        sequence = value.sequence
        const event = toEvent(value)
        yield event
        if (isTerminal(event.status)) return
      }
    } catch (thrown) {
      const error = toClientError(thrown, signal)
      // A store that lost its last writes does not know the sequence any more: begin anew.
      if (error.code === 'INVALID_REQUEST' && sequence !== undefined) sequence = undefined
      else if (!isPassing(error)) throw error
      retryAfterMs = error.retryAfterMs
    } finally {
      link.close()
    }
    onConnection?.(false)
    if (!link.woken) await pause(failures++, retryAfterMs, signal)
  }
}

function toEvent(message: WatchOrderResponse): OrderEvent {
  const { sequence, status, kind, at, redirectTo } = plain<OrderEvent>(message)
  return { sequence, status, kind, at, ...(redirectTo === undefined ? {} : { redirectTo }) }
}

/** The life of one stream: ends it when the caller aborts, when nothing is heard for too long, and when the page wakes up. */
class Link {
  readonly #controller = new AbortController()
  readonly #silenceMs: number
  readonly #caller: AbortSignal | undefined
  readonly #stopListening: () => void
  readonly #end = (): void => this.#controller.abort()
  /** Whether the page woke up while the stream was open. */
  woken = false

  constructor(caller: AbortSignal | undefined, silenceMs: number) {
    this.#caller = caller
    this.#silenceMs = silenceMs
    caller?.addEventListener('abort', this.#end)
    this.#stopListening = onWake(() => {
      this.woken = true
      this.#end()
    })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Waits for the next sign of life. The clock runs only meanwhile: whoever takes the events may take its time. */
  async hear<T>(next: Promise<T>): Promise<T> {
    const timer = setTimeout(this.#end, this.#silenceMs)
    try {
      return await next
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    this.#caller?.removeEventListener('abort', this.#end)
    this.#stopListening()
    this.#end()
  }
}
