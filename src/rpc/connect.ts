import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { type ConnectRouter, type ContextKey, createContextKey, type HandlerContext } from '@connectrpc/connect'
import { type RequestContext, readRequest } from '../request.ts'
import type { Call, Protocol } from './call.ts'
import { toConnectError } from './errors.ts'
import type { Invoker } from './invoke.ts'
import { isUnary, type Method } from './methods.ts'

/** What our own transport knows of a call that it passes to Connect. */
export interface HandedCall {
  readonly protocol: Protocol
  readonly request: RequestContext
  readonly signal: AbortSignal
  readonly timeoutMs: number | undefined
  /** Reads the request's message. Connect itself gets an empty one. */
  readonly readInput: () => Promise<MessageShape<DescMessage>>
}

/** Key under which our own transport passes what it knows of a call. Without it, Connect's own context is used. */
export const handedCallKey: ContextKey<HandedCall | undefined> = createContextKey<HandedCall | undefined>(undefined, {
  description: 'the call as the transport read it',
})

/** Registers RPCs with a Connect router. Each call then goes through the invoker. */
export function registerMethods(router: ConnectRouter, methods: readonly Method[], invoker: Invoker): void {
  for (const method of methods) {
    const { name } = method
    const schema = method.desc.input
    if (isUnary(method)) {
      router.rpc(method.desc, async (input, context) => {
        const { call, readInput } = callOf(context, input)
        context.responseHeader.set('cache-control', 'no-store')
        try {
          const reply = await invoker.unary({ name, schema, handler: method, call, readInput, write: (reply) => reply })
          copyHeaders(call.responseHeaders, context.responseHeader)
          return reply
        } catch (thrown) {
          throw toConnectError(thrown)
        }
      })
    } else {
      router.rpc(method.desc, async function* (input, context) {
        const { call, readInput } = callOf(context, input)
        context.responseHeader.set('cache-control', 'no-store')
        try {
          yield* invoker.stream({ name, schema, handler: method, call, readInput })
        } catch (thrown) {
          throw toConnectError(thrown)
        }
      })
    }
  }
}

function callOf(
  context: HandlerContext,
  input: MessageShape<DescMessage>,
): { readonly call: Call; readonly readInput: HandedCall['readInput'] } {
  const handed = context.values.get(handedCallKey)
  const responseHeaders = new Headers()
  if (handed !== undefined) return { call: { ...handed, responseHeaders }, readInput: handed.readInput }
  return {
    call: {
      protocol: context.protocolName as Protocol,
      request: requestOf(context),
      responseHeaders,
      signal: context.signal,
      timeoutMs: context.timeoutMs(),
    },
    readInput: async () => input,
  }
}

function requestOf(context: HandlerContext): RequestContext {
  const url = new URL(context.url)
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return readRequest({ headers: context.requestHeader, scheme, authority: url.host, remoteAddress: undefined }, 0)
}

function copyHeaders(from: Headers, to: Headers): void {
  for (const [name, value] of from) to.append(name, value)
}
