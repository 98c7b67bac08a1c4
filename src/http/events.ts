import { once } from 'node:events'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { WatchOrderRequestSchema, type WatchOrderResponseSchema } from '../../gen/countersign/v1/order_service_pb.ts'
import type { RequestContext } from '../request.ts'
import type { FailureObserver } from '../rpc/connect-errors.ts'
import { toFailure } from '../rpc/connect-errors.ts'
import type { OrderHandlers } from '../rpc/order-service.ts'
import { encodeEvent, eventStreamHeaders } from './event-stream.ts'
import { clientGone, type NodeRequest, type NodeResponse } from './node-request.ts'
import { orderQuery, sendFailure } from './rest.ts'
import { messageFromRest } from './rest-json.ts'

type Event = MessageInitShape<typeof WatchOrderResponseSchema>

const watchInput = orderQuery('desktopToken')

/**
 * Serves an order's events as server-sent events: see `encodeEvent`. A client that comes back after the terminal one gets 204,
 * which tells an EventSource to stop.
 */
export async function serveEvents(
  watchOrder: OrderHandlers['watchOrder'],
  request: NodeRequest,
  response: NodeResponse,
  context: RequestContext,
  observe: FailureObserver,
): Promise<void> {
  const signal = clientGone(response)
  try {
    const lastEventId = request.headers['last-event-id']
    const message = messageFromRest(WatchOrderRequestSchema, {
      ...watchInput(request),
      ...(lastEventId === undefined || lastEventId === '' ? {} : { afterSequence: String(lastEventId) }),
    })
    const call = { request: context, responseHeaders: new Headers(), signal }
    const events = watchOrder(message as Parameters<typeof watchOrder>[0], call)
    // There is always a first event at once; until it is there, a refusal can still be told by the status.
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
    const failure = toFailure(thrown)
    if (!response.headersSent) return sendFailure(response, failure, observe)
    // A stream that was going on just ends; the client comes back with Last-Event-ID, and then hears why.
    if (!signal.aborted) observe(failure)
    response.end()
  }
}

async function writeEvent(response: NodeResponse, event: Event, signal: AbortSignal): Promise<void> {
  // The two classes' write() differ in their other parameters, which TypeScript cannot call through a union.
  const more = (response as { write(text: string): boolean }).write(encodeEvent(event))
  if (!more) await once(response, 'drain', { signal })
}
