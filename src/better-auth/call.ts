import type { GenericEndpointContext } from '@better-auth/core'
import type { DescMessage, DescMethod, DescMethodUnary, JsonObject, JsonValue, MessageShape } from '@bufbuild/protobuf'
import type { StandardSchemaV1 } from 'better-auth'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { headerOf } from '../base/request.ts'
import { encodeEvent, eventStreamHeaders, isLongPoll, longPoll, pollAnswer, withAfter } from '../http/rest/events.ts'
import { inputFromRest, restFromOutput, withLastEventId } from '../http/rest/json.ts'
import { type Invocation, Invoker } from '../rpc/invoke.ts'
import type { Call, CallLimit, StreamHandler, UnaryHandler } from '../rpc/methods.ts'
import { CallEnded, reasons } from '../shared/errors.ts'
import { apiError } from './failures.ts'
import { requestOf } from './request.ts'

/**
 * The type of a body, for Better Auth and its client. It checks nothing: the rules in the RPC's schema are checked when
 * the message is read, and failures read as they do over REST.
 */
export function bodyOf<Body>(): StandardSchemaV1<Flat<Body>> {
  return {
    '~standard': {
      version: 1,
      vendor: 'countersign',
      validate: (value) => ({ value: value as Flat<Body> }),
    },
  }
}

/** The same without interfaces, whose fields Better Auth's client would not see. */
type Flat<T> = T extends object ? { [Field in keyof T]: T[Field] } : T

/** A call of an RPC, with the body of the endpoint's request. */
interface RpcCall<I extends DescMessage, O extends DescMessage> {
  readonly rpc: DescMethodUnary<I, O>
  readonly handler: UnaryHandler<I, O>
  readonly body: unknown
}

/** Serves an RPC as an endpoint of Better Auth. `Answer` is the shape that its output has as JSON. */
export async function answer<I extends DescMessage, O extends DescMessage, Answer>(
  ctx: GenericEndpointContext,
  { rpc, handler, body }: RpcCall<I, O>,
): Promise<Answer> {
  const call = callOf(ctx)
  const reply = await invoked(ctx, call, { name: fullName(rpc), schema: rpc.input, handler, body })
  const token = call.responseHeaders['set-auth-token']
  if (token !== undefined) exposeToken(ctx, token)
  return restFromOutput(rpc.output, reply) as Answer
}

/**
 * Carries out a call of an endpoint through the invoker, as every call, and turns its failure into Better Auth's
 * `APIError`.
 */
export async function invoked<I extends DescMessage, Reply>(
  ctx: GenericEndpointContext,
  call: Call,
  {
    body,
    ...method
  }: Pick<
    Invocation<{ readonly limit: CallLimit; handle(input: MessageShape<I>, call: Call): Promise<Reply> }, I>,
    'name' | 'schema' | 'handler'
  > & { readonly body: unknown },
): Promise<Reply> {
  try {
    return await invokerOf(ctx).unary({
      ...method,
      call,
      readInput: () => readInput(method.schema, body),
      write: (reply) => reply,
    })
  } catch (thrown) {
    throw apiError(thrown)
  }
}

/** The full name of an RPC, such as `countersign.v1.SignInService/IssueNonce`. */
function fullName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`
}

/**
 * An invoker without limits, because Better Auth has its own. Failures that are the server's fault go to Better Auth's
 * log.
 */
function invokerOf(ctx: GenericEndpointContext): Invoker {
  return new Invoker(undefined, ({ method, outcome }) => {
    if (outcome === 'ok' || outcome instanceof CallEnded || reasons[outcome.reason].level === 'info') return
    ctx.context.logger.error(`${method}: ${outcome.reason}: ${outcome.message}`, outcome.cause)
  })
}

/** Reads a message as REST does. No body counts as an empty one. */
function readInput<I extends DescMessage>(schema: I, body: unknown): MessageShape<I> {
  return inputFromRest(schema, (body ?? {}) as JsonValue)
}

/** The call as a handler of an RPC gets it. */
export function callOf(ctx: GenericEndpointContext): Call {
  const signal = ctx.request?.signal ?? new AbortController().signal
  return { protocol: 'better-auth', request: requestOf(ctx), responseHeaders: {}, signal }
}

/** Sets the token's header as Better Auth's bearer plugin does, also if the server does not have that plugin. */
function exposeToken(ctx: GenericEndpointContext, token: string): void {
  ctx.setHeader('set-auth-token', token)
  ctx.setHeader('access-control-expose-headers', 'set-auth-token')
}

const { 'cache-control': cacheControl } = eventStreamHeaders

type WatchOrder = typeof OrderService.method.watchOrder
type WatchHandler = StreamHandler<WatchOrder['input'], WatchOrder['output']>

/** A watch of an order. */
interface WatchCall {
  readonly watchOrder: WatchHandler
  readonly order: JsonObject
  /** Reads the request's query. */
  readonly queried: (name: string) => string | undefined
}

/** An order's events as the REST interface sends them: to a long poll as JSON, else as server-sent events. */
export async function eventsResponse(
  ctx: GenericEndpointContext,
  { watchOrder, order, queried }: WatchCall,
): Promise<Response> {
  const call = callOf(ctx)
  const { request } = call
  // For answers other than the stream. The endpoint's `noStore` would overwrite `no-transform` on the stream.
  ctx.setHeader('cache-control', cacheControl)
  const resumed = withLastEventId(order, headerOf(request, 'last-event-id'))
  if (!isLongPoll(headerOf(request, 'accept'))) return await streamResponse(ctx, call, { watchOrder, order: resumed })
  const rpc = OrderService.method.watchOrder
  try {
    const answer = await invokerOf(ctx).unary({
      name: fullName(rpc),
      schema: rpc.input,
      handler: longPoll(watchOrder, queried('wait')),
      call,
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
  call: Call,
  { watchOrder, order }: Pick<WatchCall, 'watchOrder' | 'order'>,
): Promise<Response> {
  const left = new AbortController()
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
