import { setImmediate, setTimeout } from 'node:timers/promises'
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf'
import {
  WatchOrderRequestSchema,
  WatchOrderResponseSchema,
} from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { headerOf } from '../../base/request.ts'
import { toFailure } from '../../rpc/errors.ts'
import type { InvokedMethod, Invoker } from '../../rpc/invoke.ts'
import type { Call, StreamMethod } from '../../rpc/methods.ts'
import { invalidField } from '../../shared/errors.ts'
import { withoutOws } from '../../shared/header-text.ts'
import { type Output, writeAll } from '../../wire/output.ts'
import { HttpCall } from '../exchange.ts'
import { inputFromRest, queryOf, restFromOutput } from './json.ts'
import { type RestExchange, sendFailure, sendJson } from './serve.ts'

/** Serves an order's events over HTTP. */
export async function serveEvents(watchOrder: StreamMethod, { input, exchange, invoker }: RestExchange): Promise<void> {
  const { context, output } = exchange
  const call = new HttpCall({ protocol: 'rest', request: context, answering: output.answering })
  const order = async (): Promise<JsonObject> => (await input(exchange)) as JsonObject
  await sendEvents({ watchOrder, call, invoker, order, queried: queryOf(exchange) }, output).catch((thrown: unknown) =>
    sendFailure(output, toFailure(thrown)),
  )
}

/** A call for an order's events. */
export interface EventsCall {
  readonly watchOrder: StreamMethod
  readonly call: Call
  readonly invoker: Invoker
  /** Reads the JSON of the RPC's message. */
  readonly order: () => JsonObject | Promise<JsonObject>
  /** Reads a parameter of the query. */
  readonly queried: (name: string) => string | undefined
}

/**
 * Sends an order's events: to a long poll as JSON, else as server-sent events. Rejects with a failure before the first
 * event, which can still be an HTTP status.
 */
export async function sendEvents(events: EventsCall, output: Output): Promise<void> {
  const send = isLongPoll(headerOf(events.call.request, 'accept')) ? sendPolled : sendStream
  await send(events, output)
}

async function sendPolled({ watchOrder, call, invoker, order, queried }: EventsCall, output: Output): Promise<void> {
  const answer = await invoker.unary({
    method: longPoll(watchOrder, queried('wait')),
    call,
    readInput: async () => inputFromRest(WatchOrderRequestSchema, withAfter(await order(), queried('after'))),
    write: pollAnswer,
  })
  sendJson(output, 200, {}, answer)
}

/** A client that comes back after the terminal event gets 204, which makes an EventSource stop. */
async function sendStream({ watchOrder, call, invoker, order }: EventsCall, output: Output): Promise<void> {
  const events = invoker.stream({
    method: watchOrder,
    call,
    readInput: async () => inputFromRest(WatchOrderRequestSchema, await order()),
    write: encodeEvent,
  })
  try {
    await writeAll(events, output, eventStreamHeaders, call.signal)
    if (output.begun) output.end()
    else output.send({ status: 204, headers: { 'cache-control': 'no-store' } })
  } catch (thrown) {
    if (!output.begun) throw thrown
    // The headers are sent, so the stream ends. The client comes back with Last-Event-ID and then gets the error.
    output.end()
  }
}

/** The headers of a stream of server-sent events. */
const eventStreamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  // Turns off the buffering of nginx.
  'x-accel-buffering': 'no',
} as const

/**
 * An order's event as a server-sent event (WHATWG HTML, 9.2).
 *
 * A transition is a message with its sequence as the id, so that a client that reconnects with Last-Event-ID misses
 * nothing. Heartbeats are events named `heartbeat`. An event named `reconnect` is the last of a stream that the server
 * ends although the order is still live.
 */
function encodeEvent(event: MessageInitShape<typeof WatchOrderResponseSchema>): string {
  const data = JSON.stringify(restFromOutput(WatchOrderResponseSchema, event))
  const name = event.heartbeat ? 'event: heartbeat\n' : event.reconnect ? 'event: reconnect\n' : ''
  const id = name === '' ? `id: ${event.sequence}\n` : ''
  return `${name}${id}data: ${data}\n\n`
}

type WatchReply = MessageInitShape<typeof WatchOrderResponseSchema>

/** Longest wait of a poll for an event, in seconds, and the default. */
const maxWaitSeconds = 25

/**
 * Whether a request for an order's events is a long poll, for clients that cannot read streams and for proxies that
 * hold them back: its Accept header names `application/json`, and not `text/event-stream`. Any other request gets the
 * stream; wildcards name neither.
 */
function isLongPoll(accept: string | undefined): boolean {
  const types = (accept ?? '').split(',').map((range) => withoutOws(range.split(';', 1)[0] as string).toLowerCase())
  return types.includes('application/json') && !types.includes('text/event-stream')
}

/**
 * The input of a poll that continues after an event, with its sequence in `?after=`. INVALID_REQUEST for other text.
 */
function withAfter(order: JsonObject, after: string | undefined): JsonObject {
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
function longPoll(
  watchOrder: StreamMethod,
  wait: string | undefined,
): InvokedMethod<typeof WatchOrderRequestSchema, Promise<WatchReply[]>> {
  return {
    ...watchOrder,
    desc: { input: WatchOrderRequestSchema },
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

/** A poll's answer: events in the form of the stream's data. */
function pollAnswer(events: readonly WatchReply[]): JsonObject {
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
