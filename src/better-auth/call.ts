import type { GenericEndpointContext } from '@better-auth/core'
import type { DescMessage, DescMethodUnary, JsonValue, MessageShape } from '@bufbuild/protobuf'
import type { StandardSchemaV1 } from 'better-auth'
import { messageFromRest, restFromMessage } from '../http/rest-json.ts'
import type { RequestContext } from '../request.ts'
import type { Call } from '../rpc/call.ts'
import type { UnaryHandler } from '../rpc/methods.ts'
import { apiError } from './failures.ts'

/**
 * The type of a body, for Better Auth and its client. It checks nothing: the message's own rules in the schema do, when it is
 * read, and refuse in the words that REST uses.
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
  method: DescMethodUnary<I, O>,
  handler: UnaryHandler<I, O>,
  input: unknown,
): Promise<Answer> {
  return await answering(ctx, async () => {
    const message = readMessage(method.input, input)
    const call = callOf(ctx, request)
    const reply = await handler(message, call)
    const token = call.responseHeaders.get('set-auth-token')
    if (token !== null) exposeToken(ctx, token)
    return restFromMessage(method.output, reply) as Answer
  })
}

/** Runs a step of an endpoint and makes what it throws Better Auth's own kind of error. */
export async function answering<T>(ctx: GenericEndpointContext, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (thrown) {
    throw apiError(ctx, thrown)
  }
}

/** Reads a message as REST does; no input at all is as good as an empty one. */
export function readMessage<Schema extends DescMessage>(schema: Schema, input: unknown): MessageShape<Schema> {
  return messageFromRest(schema, (input ?? {}) as JsonValue) as MessageShape<Schema>
}

/** What a handler of an RPC gets. */
export function callOf(ctx: GenericEndpointContext, request: RequestContext): Call {
  const signal = ctx.request?.signal ?? new AbortController().signal
  return { request, responseHeaders: new Headers(), signal }
}

/** Better Auth's bearer plugin does the same where it is in use; the token is to be had without it, too. */
function exposeToken(ctx: GenericEndpointContext, token: string): void {
  ctx.setHeader('set-auth-token', token)
  ctx.setHeader('access-control-expose-headers', 'set-auth-token')
}
