import type { GenericEndpointContext } from '@better-auth/core'
import type { DescMessage, JsonValue, MessageShape } from '@bufbuild/protobuf'
import type { StandardSchemaV1 } from 'better-auth'
import { HttpCall } from '../http/exchange.ts'
import { FetchOutput } from '../http/fetch.ts'
import { type EventsCall, sendEvents } from '../http/rest/events.ts'
import { inputFromRest, restFromOutput } from '../http/rest/json.ts'
import { type InvokedMethod, Invoker } from '../rpc/invoke.ts'
import type { Call, UnaryMethod } from '../rpc/methods.ts'
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

/** Serves an RPC as an endpoint of Better Auth. `Answer` is the shape that its output has as JSON. */
export async function answer<Answer>(ctx: GenericEndpointContext, method: UnaryMethod, body: unknown): Promise<Answer> {
  const call = callOf(ctx)
  const reply = await invoked(ctx, call, method, body)
  const token = call.responseHeaders['set-auth-token']
  if (token !== undefined) exposeToken(ctx, token)
  return restFromOutput(method.desc.output, reply) as Answer
}

/**
 * Carries out a call of an endpoint through the invoker, as every call, and turns its failure into Better Auth's
 * `APIError`. Reads the message as REST does; no body counts as an empty one.
 */
export async function invoked<I extends DescMessage, Reply>(
  ctx: GenericEndpointContext,
  call: Call,
  method: InvokedMethod<I, Promise<Reply>>,
  body: unknown,
): Promise<Reply> {
  const readInput = (): MessageShape<I> => inputFromRest(method.desc.input, (body ?? {}) as JsonValue)
  try {
    return await invokerOf(ctx).unary({ method, call, readInput, write: (reply) => reply })
  } catch (thrown) {
    throw apiError(thrown)
  }
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

/** A watch of an order. */
type EventsWatch = Omit<EventsCall, 'call' | 'invoker'>

/** An order's events as the REST interface sends them. */
export async function eventsResponse(ctx: GenericEndpointContext, watch: EventsWatch): Promise<Response> {
  const { request, signal } = callOf(ctx)
  // The endpoint's `noStore` would overwrite `no-transform` on the stream.
  ctx.setHeader('cache-control', 'no-store, no-transform')
  const output = new FetchOutput({ method: 'GET', signal })
  const call = new HttpCall({ protocol: 'better-auth', request, answering: output.answering })
  const sent = sendEvents({ ...watch, call, invoker: invokerOf(ctx) }, output)
  try {
    return await Promise.race([output.response, sent.then(() => output.response)])
  } catch (thrown) {
    throw apiError(thrown)
  }
}
