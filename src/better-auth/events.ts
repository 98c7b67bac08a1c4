import type { GenericEndpointContext } from '@better-auth/core'
import type { JsonObject } from '@bufbuild/protobuf'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { headerOf, type RequestContext } from '../base/request.ts'
import { encodeEvent, eventStreamHeaders } from '../http/rest/event-stream.ts'
import { withLastEventId } from '../http/rest/input.ts'
import { isLongPoll, longPoll, pollAnswer, withAfter } from '../http/rest/long-poll.ts'
import type { StreamHandler } from '../rpc/methods.ts'
import { callOf, fullName, invokerOf, readInput } from './call.ts'
import { apiError } from './failures.ts'

const { 'cache-control': cacheControl } = eventStreamHeaders

type WatchOrder = typeof OrderService.method.watchOrder
type WatchHandler = StreamHandler<WatchOrder['input'], WatchOrder['output']>

/**
 * An order's events as the REST interface sends them: to a long poll as JSON, to everyone else as server-sent events.
 * `queried` reads the request's query.
 */
export async function eventsResponse(
  ctx: GenericEndpointContext,
  request: RequestContext,
  watchOrder: WatchHandler,
  order: JsonObject,
  queried: (name: string) => string | undefined,
): Promise<Response> {
  // For answers other than the stream. The endpoint's `noStore` would overwrite `no-transform` on the stream.
  ctx.setHeader('cache-control', cacheControl)
  const resumed = withLastEventId(order, headerOf(request, 'last-event-id'))
  if (!isLongPoll(headerOf(request, 'accept'))) return await streamResponse(ctx, request, watchOrder, resumed)
  const rpc = OrderService.method.watchOrder
  try {
    const answer = await invokerOf(ctx).unary({
      name: fullName(rpc),
      schema: rpc.input,
      handler: longPoll(watchOrder, queried('wait')),
      call: callOf(ctx, request),
      readInput: () => readInput(rpc.input, withAfter(resumed, queried('after'))),
      write: pollAnswer,
    })
    return Response.json(answer, { headers: { 'cache-control': cacheControl } })
  } catch (thrown) {
    throw apiError(thrown)
  }
}

/** A failure before the first event is an HTTP error. A client that comes back after the terminal event gets 204. */
async function streamResponse(
  ctx: GenericEndpointContext,
  request: RequestContext,
  watchOrder: WatchHandler,
  order: JsonObject,
): Promise<Response> {
  const left = new AbortController()
  const call = callOf(ctx, request)
  const signal = AbortSignal.any([left.signal, call.signal])
  const rpc = OrderService.method.watchOrder
  const encoder = new TextEncoder()
  const events = invokerOf(ctx).stream({
    name: fullName(rpc),
    schema: rpc.input,
    handler: watchOrder,
    call: { ...call, signal },
    readInput: () => readInput(rpc.input, order),
    write: (event) => encoder.encode(encodeEvent(event)),
  })
  const first = await events.next().catch((thrown: unknown) => {
    throw apiError(thrown)
  })
  if (first.done) return new Response(null, { status: 204 })
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(first.value),
    async pull(controller) {
      try {
        const next = await events.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value)
      } catch {
        // The headers are sent, so the stream just ends. The client comes back with Last-Event-ID and gets the error
        // then.
        controller.close()
      }
    },
    async cancel() {
      left.abort()
      // A generator that waits at a yield does not see the signal, and would keep its watch forever.
      await events.return(undefined)
    },
  })
  return new Response(stream, { headers: eventStreamHeaders })
}
