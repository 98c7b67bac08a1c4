import type { GenericEndpointContext } from '@better-auth/core'
import { WatchOrderRequestSchema } from '../../gen/countersign/v1/order_service_pb.ts'
import { encodeEvent, eventStreamHeaders } from '../http/event-stream.ts'
import type { RequestContext } from '../request.ts'
import type { OrderHandlers } from '../rpc/order-service.ts'
import { callOf, readMessage } from './call.ts'

/**
 * An order's events as server-sent events, as the REST interface sends them. A refusal is told before the stream begins;
 * after a terminal event there is nothing to come back for: 204.
 */
export async function eventsResponse(
  ctx: GenericEndpointContext,
  request: RequestContext,
  watchOrder: OrderHandlers['watchOrder'],
  input: Record<string, unknown>,
): Promise<Response> {
  const lastEventId = request.headers.get('last-event-id')
  const message = readMessage(WatchOrderRequestSchema, {
    ...input,
    ...(lastEventId ? { afterSequence: lastEventId } : {}),
  })
  const left = new AbortController()
  const call = callOf(ctx, request)
  const signal = AbortSignal.any([left.signal, call.signal])
  const events = watchOrder(message, { ...call, signal })
  const first = await events.next()
  if (first.done) return new Response(null, { status: 204 })
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(encodeEvent(first.value))),
    async pull(controller) {
      try {
        const next = await events.next()
        if (next.done) controller.close()
        else controller.enqueue(encoder.encode(encodeEvent(next.value)))
      } catch (thrown) {
        // A stream that was going on just ends; the client comes back with Last-Event-ID, and then hears why.
        if (!signal.aborted) ctx.context.logger.error('The events of an order ended', thrown)
        controller.close()
      }
    },
    async cancel() {
      left.abort()
      // A generator that stands at a yield does not hear of the signal, and would keep its watch for ever.
      await events.return(undefined)
    },
  })
  return new Response(stream, { headers: eventStreamHeaders })
}
