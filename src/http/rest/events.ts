import { WatchOrderRequestSchema } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { toFailure } from '../../rpc/errors.ts'
import type { Invoker } from '../../rpc/invoke.ts'
import type { StreamMethod } from '../../rpc/methods.ts'
import { HttpCall } from '../http-call.ts'
import { ResponseOutput, writeAll } from '../output.ts'
import type { Exchange } from '../route.ts'
import { encodeEvent, eventStreamHeaders } from './event-stream.ts'
import type { ReadJson } from './input.ts'
import { inputFromRest } from './json.ts'
import { sendFailure } from './serve.ts'

/**
 * Serves an order's events as server-sent events: see `encodeEvent`. A client that comes back after the terminal event
 * gets 204, which makes an EventSource stop.
 */
export async function serveEvents(
  watchOrder: StreamMethod,
  input: ReadJson,
  exchange: Exchange,
  invoker: Invoker,
): Promise<void> {
  const { response, context } = exchange
  const output = new ResponseOutput(response)
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
    if (!output.begun) sendFailure(response, toFailure(thrown))
    // The headers are sent, so the stream just ends. The client comes back with Last-Event-ID and gets the error then.
    else output.end()
  }
}
