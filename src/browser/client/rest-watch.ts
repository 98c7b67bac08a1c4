import type { OrderEvent } from '../../shared/orders.ts'
import { desktopOrderPaths } from '../../shared/rest-paths.ts'
import type { OrderApi, WatchCall, WatchMessage, WatchRequest } from './api.ts'
import { CountersignClientError } from './errors.ts'
import { readEventStream } from './event-stream.ts'
import { Stopwatch } from './page.ts'
import { bearer, type Rest } from './rest-api.ts'

/** Longest time for which the service holds a poll, in seconds. */
const longestPoll = 25

/** Time for the answer to a poll, beyond the time for which the service holds it, in milliseconds. */
const answerMs = 15_000

/**
 * Watches orders over REST: by server-sent events, or by long polls if streams cannot be read. They cannot if responses
 * have no body to read from, as in React Native, or if the first event does not arrive within an eighth of the longest
 * silence, as behind a proxy that holds answers back until they are complete. Once a poll was answered, the next
 * watches poll, too.
 */
export function restWatch({ open, call }: Rest): OrderApi['watchOrder'] {
  let isReadable = true

  return async function* watchOrder(request, options) {
    // A stream that ends is opened again by the caller, as with the other protocols.
    if (isReadable && (yield* stream(request, options))) return
    yield* poll(request, options)
  }

  /** Yields what arrives on a stream. Returns whether one could be read. */
  async function* stream(
    { orderId, desktopToken, afterSequence }: WatchRequest,
    { signal, onOpen, heartbeatTimeoutMs }: WatchCall,
  ): AsyncGenerator<WatchMessage, boolean> {
    const own = new AbortController()
    // The service sends the first event at once.
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      own.abort()
    }, heartbeatTimeoutMs / 8)
    try {
      const cursor = afterSequence === undefined ? {} : { 'last-event-id': String(afterSequence) }
      const response = await open(desktopOrderPaths.events, {
        query: { orderId },
        headers: { authorization: bearer(desktopToken), ...cursor },
        signal: AbortSignal.any([signal, own.signal]),
      })
      // The order has ended, and nothing is new.
      if (response.status === 204) return true
      if (!response.body) return false
      let isFirst = true
      for await (const { name, data } of readEventStream(response.body)) {
        clearTimeout(timer)
        if (isFirst) onOpen()
        isFirst = false
        if (eventNames.has(name)) yield parse(data)
      }
      return true
    } catch (thrown) {
      if (isLate && !signal.aborted) return false
      throw thrown
    } finally {
      clearTimeout(timer)
      own.abort()
    }
  }

  /** Yields the answers of one poll after another, until one comes too early: then the caller makes a pause. */
  async function* poll(
    { orderId, desktopToken, afterSequence }: WatchRequest,
    { signal, onOpen, heartbeatTimeoutMs }: WatchCall,
  ): AsyncGenerator<WatchMessage, void> {
    // Each answer is a sign of life, so it has to come before the caller takes the silence for an outage.
    const wait = Math.min(longestPoll, Math.max(1, Math.floor(heartbeatTimeoutMs / 1600)))
    for (let [after, isFirst] = [afterSequence, true]; ; isFirst = false) {
      const asked = new Stopwatch()
      const { events } = await call<{ readonly events: readonly OrderEvent[] }>(desktopOrderPaths.events, {
        query: { orderId, wait: String(wait), ...(after === undefined ? {} : { after: String(after) }) },
        headers: { accept: 'application/json', authorization: bearer(desktopToken) },
        signal,
        timeoutMs: wait * 1000 + answerMs,
      })
      isReadable = false
      if (isFirst) onOpen()
      for (const event of events) {
        after = event.sequence
        yield event
      }
      // The order has ended, or the service is about to.
      if (events.length === 0 && asked.elapsedMs < wait * 500) return
      if (events.length === 0) yield { heartbeat: true }
    }
  }
}

/** Event names under which a watch sends its responses. A newer service may send others. */
const eventNames: ReadonlySet<string> = new Set(['message', 'heartbeat', 'reconnect'])

function parse(data: string): WatchMessage {
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw new CountersignClientError('UNEXPECTED_ANSWER', 'An event of the order is not JSON', { cause })
  }
}
