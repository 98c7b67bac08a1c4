import type { JsonObject } from '@bufbuild/protobuf'
import { WatchOrderRequestSchema } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { headerOf } from '../../base/request.ts'
import { toFailure } from '../../rpc/errors.ts'
import type { Invoker } from '../../rpc/invoke.ts'
import type { StreamMethod } from '../../rpc/methods.ts'
import { writeAll } from '../../wire/output.ts'
import { HttpCall } from '../http-call.ts'
import type { Exchange } from '../route.ts'
import { encodeEvent, eventStreamHeaders } from './event-stream.ts'
import { queryOf, type ReadJson } from './input.ts'
import { inputFromRest } from './json.ts'
import { isLongPoll, longPoll, pollAnswer, withAfter } from './long-poll.ts'
import { sendFailure, sendJson } from './serve.ts'

/** Serves an order's events: to a long poll as JSON, to everyone else as server-sent events. */
export async function serveEvents(
  watchOrder: StreamMethod,
  input: ReadJson,
  exchange: Exchange,
  invoker: Invoker,
): Promise<void> {
  const serve = isLongPoll(headerOf(exchange.context, 'accept')) ? serveLongPoll : serveEventStream
  await serve(watchOrder, input, exchange, invoker)
}

async function serveLongPoll(
  watchOrder: StreamMethod,
  input: ReadJson,
  exchange: Exchange,
  invoker: Invoker,
): Promise<void> {
  const { context, output } = exchange
  const queried = queryOf(exchange)
  try {
    const answer = await invoker.unary({
      name: watchOrder.name,
      schema: WatchOrderRequestSchema,
      handler: longPoll(watchOrder, queried('wait')),
      call: new HttpCall('rest', context, output.answering),
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
async function serveEventStream(
  watchOrder: StreamMethod,
  input: ReadJson,
  exchange: Exchange,
  invoker: Invoker,
): Promise<void> {
  const { context, output } = exchange
  const call = new HttpCall('rest', context, output.answering)
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
    // The headers are sent, so the stream just ends. The client comes back with Last-Event-ID and gets the error then.
    else output.end()
  }
}
