import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import { readRequest } from '../base/request.ts'
import { toConnectError } from './errors.ts'
import type { Invoker } from './invoke.ts'
import { type Call, isUnary, type Method, type Protocol, type ResponseHeaders } from './methods.ts'

/** Registers RPCs with an application's Connect router. All calls pass the invoker. */
export function registerMethods(router: ConnectRouter, methods: readonly Method[], invoker: Invoker): void {
  for (const method of methods) {
    if (isUnary(method)) {
      router.rpc(method.desc, async (input, context) => {
        const call = callOf(context)
        context.responseHeader.set('cache-control', 'no-store')
        try {
          const reply = await invoker.unary({ method, call, readInput: () => input, write: (reply) => reply })
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
          const replies = invoker.stream({ method, call, readInput: () => input, write: (reply) => reply })
          for await (const reply of replies) {
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

function callOf({ url, requestHeader: headers, protocolName, signal, timeoutMs }: HandlerContext): Call {
  const { protocol, host: authority } = new URL(url)
  const scheme = protocol === 'https:' ? 'https' : 'http'
  const request = readRequest({ headers, scheme, authority, remoteAddress: undefined }, 0)
  return { protocol: protocolName as Protocol, request, responseHeaders: {}, signal, timeoutMs: timeoutMs() }
}

function copyHeaders(from: ResponseHeaders, to: Headers): void {
  for (const [name, values] of Object.entries(from)) for (const value of [values].flat()) to.append(name, value)
}
