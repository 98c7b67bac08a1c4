import { type DesktopOrder, type OrderEvent, type OrderStatus, terminalStatuses } from '../../shared/orders.ts'
import type { OrderApi } from './api.ts'
import { callError } from './call.ts'
import { aborted, isPassing } from './errors.ts'
import { onceHidden, onWake, untilShown } from './page.ts'
import { pause } from './retry.ts'

/** Options of `watchOrder`. */
export interface WatchOrderOptions {
  /** Ends the watch, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
  /** Last sequence seen; the watch yields what came after it. Without it, the first event is the newest transition. */
  readonly afterSequence?: number | undefined
  /** Called with `true` when the stream opens and with `false` when it is lost, for a page to show. */
  readonly onConnection?: ((connected: boolean) => void) | undefined
}

/** Longest silence of a stream, in milliseconds, unless the client's options say otherwise. */
export const defaultHeartbeatTimeoutMs = 40_000

/**
 * Time after which a hidden page lets its stream go, in milliseconds. Over HTTP/1.1, browsers have six connections to a
 * host for all tabs: six hidden pages would hold them all.
 */
const hiddenMs = 5_000

/** Source of the streams of {@link watchOrder}. */
export interface WatchSource {
  readonly open: OrderApi['watchOrder']
  /** Longest silence of a stream before it is opened again, in milliseconds. */
  readonly heartbeatTimeoutMs: number
}

const terminal: ReadonlySet<OrderStatus> = new Set(terminalStatuses)

/** Whether the status is terminal: the order will not change any more. */
export function isTerminal(status: OrderStatus): boolean {
  return terminal.has(status)
}

/**
 * Yields an order's transitions, each once and in order, and ends after a terminal one.
 *
 * A lost stream is opened again from the last sequence seen: after growing waits if it failed, and at once when the
 * page becomes visible or the network returns, because a stream can die unnoticed. A page that stays hidden has none.
 * Rejects with ABORTED, and with errors that a retry cannot change, such as ORDER_NOT_FOUND and ORDER_TOKEN_INVALID.
 */
export async function* watchOrder(
  { open, heartbeatTimeoutMs }: WatchSource,
  { orderId, desktopToken }: DesktopOrder,
  { signal, afterSequence, onConnection }: WatchOrderOptions,
): AsyncGenerator<OrderEvent, void, undefined> {
  let sequence = afterSequence
  let failures = 0
  for (;;) {
    if (signal?.aborted) throw aborted(signal)
    const link = new Link(signal, heartbeatTimeoutMs)
    let retryAfterMs: number | undefined
    try {
      const request = { orderId, desktopToken, afterSequence: sequence }
      const onOpen = (): void => onConnection?.(true)
      const stream = open(request, { signal: link.signal, onOpen, heartbeatTimeoutMs })[Symbol.asyncIterator]()
      for (let received = 0; ; received++) {
        const { done, value } = await link.next(stream)
        if (done) break
        // The service sends a first message at once. Only a second one shows that the connection holds.
        if (received > 0) failures = 0
        if (value.reconnect) break
        if (value.heartbeat) continue
        // Without the fields that are for the watch itself.
        const { heartbeat, reconnect, ...event } = value
        sequence = event.sequence
        yield event
        if (isTerminal(event.status)) return
      }
    } catch (thrown) {
      const error = callError(thrown, signal)
      // A store that lost its last writes does not know the sequence any more: start without one.
      if (error.code === 'INVALID_REQUEST' && sequence !== undefined) sequence = undefined
      else if (!isPassing(error)) throw error
      retryAfterMs = error.retryAfterMs
    } finally {
      link.close()
    }
    if (link.letGo) {
      await untilShown(signal)
      continue
    }
    onConnection?.(false)
    if (!link.woken) await pause(failures++, retryAfterMs, signal)
  }
}

/**
 * The connection of one stream. Ends it when the caller aborts, when it is silent for too long, when the page wakes up,
 * and when the page stays hidden.
 */
class Link {
  readonly #controller = new AbortController()
  readonly #heartbeatTimeoutMs: number
  readonly #stops: readonly (() => void)[]
  readonly #end = (): void => this.#controller.abort()
  readonly signal: AbortSignal
  /** Whether the page woke up while the stream was open. */
  woken = false
  /** Whether the stream was ended because the page is hidden. */
  letGo = false

  constructor(caller: AbortSignal | undefined, heartbeatTimeoutMs: number) {
    this.#heartbeatTimeoutMs = heartbeatTimeoutMs
    this.signal = AbortSignal.any([this.#controller.signal, ...(caller === undefined ? [] : [caller])])
    const stopWaking = onWake(() => {
      this.woken = true
      this.#end()
    })
    const stopHiding = onceHidden(hiddenMs, () => {
      this.letGo = true
      this.#end()
    })
    this.#stops = [stopWaking, stopHiding]
  }

  /**
   * Waits for the next message. The timer runs only during the wait, so that the consumer of the events may be slow.
   */
  async next<T>(stream: AsyncIterator<T>): Promise<IteratorResult<T>> {
    const timer = setTimeout(this.#end, this.#heartbeatTimeoutMs)
    try {
      return await stream.next()
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    for (const stop of this.#stops) stop()
    this.#end()
  }
}
