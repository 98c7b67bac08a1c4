import { once } from 'node:events'
import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  WatchOrderRequestSchema,
  type WatchOrderResponseSchema,
} from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { toFailure } from '../../rpc/errors.ts'
import type { Invoker } from '../../rpc/invoke.ts'
import type { StreamMethod } from '../../rpc/methods.ts'
import { clientGone, type NodeResponse } from '../node-request.ts'
import type { Exchange } from '../route.ts'
import { encodeEvent, eventStreamHeaders } from './event-stream.ts'
import type { ReadJson } from './input.ts'
import { inputFromRest } from './json.ts'
import { sendFailure } from './serve.ts'

type Event = MessageInitShape<typeof WatchOrderResponseSchema>

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
  const signal = clientGone(response)
  const events = invoker.stream({
    name: watchOrder.name,
    schema: WatchOrderRequestSchema,
    handler: watchOrder,
    call: { protocol: 'rest', request: context, responseHeaders: new Headers(), signal },
    readInput: async () => inputFromRest(WatchOrderRequestSchema, await input(exchange)),
  })
  try {
    // There is always a first event at once. Until then, a failure can still be an HTTP status.
    const first = await events.next()
    if (first.done) {
      response.statusCode = 204
      response.end()
      return
    }
    response.statusCode = 200
    for (const [name, value] of Object.entries(eventStreamHeaders)) response.setHeader(name, value)
    await writeEvent(response, first.value, signal)
    for await (const event of events) await writeEvent(response, event, signal)
    response.end()
  } catch (thrown) {
    if (!response.headersSent) return sendFailure(response, toFailure(thrown))
    // The headers are sent, so the stream just ends. The client comes back with Last-Event-ID and gets the error then.
    await events.return(undefined)
    response.end()
  }
}

async function writeEvent(response: NodeResponse, event: Event, signal: AbortSignal): Promise<void> {
  // The two classes' write() differ in their other parameters, which TypeScript cannot call through a union.
  const more = (response as { write(text: string): boolean }).write(encodeEvent(event))
  if (!more) await once(response, 'drain', { signal })
}
