import type { GenericEndpointContext } from '@better-auth/core'
import type { DescMessage, DescMethod, DescMethodUnary, JsonValue, MessageShape } from '@bufbuild/protobuf'
import type { StandardSchemaV1 } from 'better-auth'
import type { RequestContext } from '../base/request.ts'
import { inputFromRest, restFromOutput } from '../http/rest/json.ts'
import { type Invocation, Invoker } from '../rpc/invoke.ts'
import type { Call, CallLimit, UnaryHandler } from '../rpc/methods.ts'
import { CallEnded, reasons } from '../shared/errors.ts'
import { apiError } from './failures.ts'

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
export async function answer<I extends DescMessage, O extends DescMessage, Answer>(
  ctx: GenericEndpointContext,
  request: RequestContext,
  rpc: DescMethodUnary<I, O>,
  handler: UnaryHandler<I, O>,
  body: unknown,
): Promise<Answer> {
  const call = callOf(ctx, request)
  const reply = await invoked(ctx, call, { name: fullName(rpc), schema: rpc.input, handler }, body)
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
  method: Pick<
    Invocation<{ readonly limit: CallLimit; handle(input: MessageShape<I>, call: Call): Promise<Reply> }, I>,
    'name' | 'schema' | 'handler'
  >,
  body: unknown,
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
export function fullName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`
}

/**
 * An invoker without limits, because Better Auth has its own. Failures that are the server's fault go to Better Auth's
 * log.
 */
export function invokerOf(ctx: GenericEndpointContext): Invoker {
  return new Invoker(undefined, ({ method, outcome }) => {
    if (outcome === 'ok' || outcome instanceof CallEnded || reasons[outcome.reason].level === 'info') return
    ctx.context.logger.error(`${method}: ${outcome.reason}: ${outcome.message}`, outcome.cause)
  })
}

/** Reads a message as REST does. No body counts as an empty one. */
export function readInput<I extends DescMessage>(schema: I, body: unknown): MessageShape<I> {
  return inputFromRest(schema, (body ?? {}) as JsonValue)
}

/** The call as a handler of an RPC gets it. */
export function callOf(ctx: GenericEndpointContext, request: RequestContext): Call {
  const signal = ctx.request?.signal ?? new AbortController().signal
  return { protocol: 'better-auth', request, responseHeaders: {}, signal }
}

/** Sets the token's header as Better Auth's bearer plugin does, also if the server does not have that plugin. */
function exposeToken(ctx: GenericEndpointContext, token: string): void {
  ctx.setHeader('set-auth-token', token)
  ctx.setHeader('access-control-expose-headers', 'set-auth-token')
}
