import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import { type RequestContext, readRequest } from '../base/request.ts'
import { toConnectError } from './errors.ts'
import type { Invoker } from './invoke.ts'
import { type Call, isUnary, type Method, type Protocol, type ResponseHeaders } from './methods.ts'

/** Registers RPCs with an application's Connect router. All calls pass the invoker. */
export function registerMethods(router: ConnectRouter, methods: readonly Method[], invoker: Invoker): void {
  for (const method of methods) {
    const { name } = method
    const schema = method.desc.input
    if (isUnary(method)) {
      router.rpc(method.desc, async (input, context) => {
        const call = callOf(context)
        context.responseHeader.set('cache-control', 'no-store')
        try {
          const invocation = { name, schema, handler: method, call, readInput: () => input }
          const reply = await invoker.unary({ ...invocation, write: (reply) => reply })
          copyHeaders(call.responseHeaders, context.responseHeader)
          return reply
        } catch (thrown) {
          throw toConnectError(thrown)
        }
      })
    } else {
      router.rpc(method.desc, async function* (input, context) {
        const call = callOf(context)
        context.responseHeader.set('cache-control', 'no-store')
        try {
          const invocation = { name, schema, handler: method, call, readInput: () => input }
          for await (const reply of invoker.stream({ ...invocation, write: (reply) => reply })) {
            // Turns off the buffering of nginx. A failure before the first message is small and may be buffered.
            context.responseHeader.set('x-accel-buffering', 'no')
            yield reply
          }
        } catch (thrown) {
          throw toConnectError(thrown)
        }
      })
    }
  }
}

function callOf(context: HandlerContext): Call {
  return {
    protocol: context.protocolName as Protocol,
    request: requestOf(context),
    responseHeaders: {},
    signal: context.signal,
    timeoutMs: context.timeoutMs(),
  }
}

function requestOf(context: HandlerContext): RequestContext {
  const url = new URL(context.url)
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return readRequest({ headers: context.requestHeader, scheme, authority: url.host, remoteAddress: undefined }, 0)
}

function copyHeaders(from: ResponseHeaders, to: Headers): void {
  for (const [name, values] of Object.entries(from)) for (const value of [values].flat()) to.append(name, value)
}
