import { setImmediate, setTimeout } from 'node:timers/promises'
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf'
import {
  type OrderService,
  type WatchOrderRequest,
  WatchOrderRequestSchema,
  WatchOrderResponseSchema,
} from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { headerOf } from '../../base/request.ts'
import { toFailure } from '../../rpc/errors.ts'
import type { Call, CallLimit, StreamHandler, StreamMethod } from '../../rpc/methods.ts'
import { invalidField } from '../../shared/errors.ts'
import { withoutOws } from '../../shared/header-text.ts'
import { writeAll } from '../../wire/output.ts'
import { HttpCall } from '../exchange.ts'
import { inputFromRest, queryOf, restFromOutput } from './json.ts'
import { type RestCall, sendFailure, sendJson } from './serve.ts'

/** Serves an order's events: to a long poll as JSON, else as server-sent events. */
export async function serveEvents(watchOrder: StreamMethod, call: RestCall): Promise<void> {
  const serve = isLongPoll(headerOf(call.exchange.context, 'accept')) ? serveLongPoll : serveEventStream
  await serve(watchOrder, call)
}

async function serveLongPoll(watchOrder: StreamMethod, { input, exchange, invoker }: RestCall): Promise<void> {
  const { context, output } = exchange
  const queried = queryOf(exchange)
  try {
    const answer = await invoker.unary({
      name: watchOrder.name,
      schema: WatchOrderRequestSchema,
      handler: longPoll(watchOrder, queried('wait')),
      call: new HttpCall({ protocol: 'rest', request: context, answering: output.answering }),
      readInput: async () =>
        inputFromRest(WatchOrderRequestSchema, withAfter((await input(exchange)) as JsonObject, queried('after'))),
      write: pollAnswer,
    })
    sendJson(output, 200, {}, answer)
  } catch (thrown) {
    sendFailure(output, toFailure(thrown))
  }
}

/**
 * Serves an order's events as server-sent events: see `encodeEvent`. A client that comes back after the terminal event
 * gets 204, which makes an EventSource stop.
 */
async function serveEventStream(watchOrder: StreamMethod, { input, exchange, invoker }: RestCall): Promise<void> {
  const { context, output } = exchange
  const call = new HttpCall({ protocol: 'rest', request: context, answering: output.answering })
  const events = invoker.stream({
    name: watchOrder.name,
    schema: WatchOrderRequestSchema,
    handler: watchOrder,
    call,
    readInput: async () => inputFromRest(WatchOrderRequestSchema, await input(exchange)),
    write: encodeEvent,
  })
  try {
    // Until the first event, a failure can still be an HTTP status.
    await writeAll(events, output, eventStreamHeaders, call.signal)
    if (output.begun) output.end()
    else output.send({ status: 204, headers: { 'cache-control': 'no-store' } })
  } catch (thrown) {
    if (!output.begun) sendFailure(output, toFailure(thrown))
    // The headers are sent, so the stream ends. The client comes back with Last-Event-ID and then gets the error.
    else output.end()
  }
}

/** The headers of a stream of server-sent events. */
export const eventStreamHeaders: Readonly<Record<'content-type' | 'cache-control' | 'x-accel-buffering', string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  // Turns off the buffering of nginx.
  'x-accel-buffering': 'no',
}

/**
 * An order's event as a server-sent event (WHATWG HTML, 9.2).
 *
 * A transition is a message with its sequence as the id, so that a client that reconnects with Last-Event-ID misses
 * nothing. Heartbeats are events named `heartbeat`. An event named `reconnect` is the last of a stream that the server
 * ends although the order is still live.
 */
export function encodeEvent(event: MessageInitShape<typeof WatchOrderResponseSchema>): string {
  const data = JSON.stringify(restFromOutput(WatchOrderResponseSchema, event))
  const name = event.heartbeat ? 'event: heartbeat\n' : event.reconnect ? 'event: reconnect\n' : ''
  const id = name === '' ? `id: ${event.sequence}\n` : ''
  return `${name}${id}data: ${data}\n\n`
}

type WatchOrder = typeof OrderService.method.watchOrder
type WatchHandler = StreamHandler<WatchOrder['input'], WatchOrder['output']>
type WatchReply = MessageInitShape<WatchOrder['output']>

/** Longest wait of a poll for an event, in seconds, and the default. */
const maxWaitSeconds = 25

/**
 * Whether a request for an order's events is a long poll, for clients that cannot read streams and for proxies that
 * hold them back: its Accept header names `application/json`, and not `text/event-stream`. Any other request gets the
 * stream; wildcards name neither.
 */
export function isLongPoll(accept: string | undefined): boolean {
  const types = (accept ?? '').split(',').map((range) => withoutOws(range.split(';', 1)[0] as string).toLowerCase())
  return types.includes('application/json') && !types.includes('text/event-stream')
}

/**
 * The input of a poll that continues after an event, with its sequence in `?after=`. INVALID_REQUEST for other text.
 */
export function withAfter(order: JsonObject, after: string | undefined): JsonObject {
  if (after === undefined) return order
  if (/^\d{1,10}$/.test(after)) return { ...order, afterSequence: Number(after) }
  throw invalidField('after', 'after: must be the sequence of the last event')
}

/**
 * Answers a long poll from a watch of the order: with the events that the watch has at once, else with the first one
 * within `wait` seconds (0 to 25, default 25), else with none. The watch has the same cursor as the stream's, and
 * counts as a stream.
 *
 * Ends early, without an event, when the server stops, when the order is over, and when the caller leaves. Rejects with
 * INVALID_REQUEST if `wait` is out of bounds.
 */
export function longPoll(watchOrder: WatchHandler, wait: string | undefined): LongPollHandler {
  return {
    limit: watchOrder.limit,
    async handle(input, { protocol, request, responseHeaders, signal }) {
      const waitMs = waitMsOf(wait)
      const answered = new AbortController()
      const watch = AbortSignal.any([signal, answered.signal])
      const events = watchOrder.handle(input, { protocol, request, responseHeaders, signal: watch })
      const over = setTimeout(waitMs, undefined, { signal: answered.signal }).catch(() => undefined)
      try {
        return await take(events, over)
      } finally {
        answered.abort()
        // Not awaited: the watch ends after its present step, which a store that hangs holds up.
        events.return().catch(() => {})
      }
    },
  }
}

/** See {@link longPoll}. */
interface LongPollHandler {
  readonly limit: CallLimit
  handle(input: WatchOrderRequest, call: Call): Promise<WatchReply[]>
}

/** A poll's answer: events in the form of the stream's data. */
export function pollAnswer(events: readonly WatchReply[]): JsonObject {
  return { events: events.map((event) => restFromOutput(WatchOrderResponseSchema, event)) }
}

async function take(events: AsyncGenerator<WatchReply, void>, over: Promise<undefined>): Promise<WatchReply[]> {
  const taken: WatchReply[] = []
  // The first event comes from a read of the order, which is awaited even if `wait` is 0: a transition, else a
  // heartbeat.
  let result: IteratorResult<WatchReply, void> | undefined = await events.next()
  while (result !== undefined && !result.done && !result.value.reconnect) {
    if (!result.value.heartbeat) taken.push(result.value)
    const next = events.next()
    next.catch(() => {})
    // The events of one read come without a pause between them.
    result = await Promise.race([next, taken.length > 0 ? setImmediate(undefined) : over])
  }
  return taken
}

function waitMsOf(wait = String(maxWaitSeconds)): number {
  if (/^\d{1,2}$/.test(wait) && Number(wait) <= maxWaitSeconds) return Number(wait) * 1000
  throw invalidField('wait', `wait: must be a whole number of seconds from 0 to ${maxWaitSeconds}`)
}
