import { create, type DescMessage, type MessageInitShape, toBinary, toJsonString } from '@bufbuild/protobuf'
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect'
import { toConnectError } from '../rpc/errors.ts'
import type { Invoker } from '../rpc/invoke.ts'
import type { UnaryMethod } from '../rpc/methods.ts'
import { type Codec, decodeInput } from '../rpc/read-input.ts'
import { compressed } from './compression.ts'
import { clientGone, type NodeRequest, readBody, send } from './node-request.ts'
import type { Exchange } from './route.ts'
import { readDeadline, type Wire } from './wire.ts'

/**
 * Whether the lean path below can serve a call: a plain one of the Connect protocol, as browsers and simple clients make it.
 * Compressed bodies and all other protocols go to connect-node.
 */
export function isLean(wire: Wire, request: NodeRequest): boolean {
  return (
    wire.protocol === 'connect' && !wire.enveloped && (request.headers['content-encoding'] ?? 'identity') === 'identity'
  )
}

/**
 * Serves a unary RPC of the Connect protocol straight from node:http. It answers as connect-node does, at a fraction of the
 * work: see bench/README.md. A differential test holds the two together.
 */
export async function serveConnectUnary(
  method: UnaryMethod,
  wire: Wire,
  exchange: Exchange,
  invoker: Invoker,
): Promise<void> {
  const { request, response, context } = exchange
  const headers = new Headers()
  const deadline = readDeadline(wire, header(request, 'connect-timeout-ms'))
  let status = 200
  let body: string | Uint8Array
  try {
    body = await invoker.unary({
      name: method.name,
      schema: method.desc.input,
      handler: method,
      write: (reply) => encoded(method.desc.output, wire.codec, reply),
      call: {
        protocol: 'connect',
        request: context,
        responseHeaders: headers,
        signal: clientGone(response),
        timeoutMs: deadline.timeoutMs,
      },
      readInput: async () => {
        if (deadline.malformed !== undefined) throw deadline.malformed
        return decodeInput(method.desc.input, wire.codec, await readBody(request))
      },
    })
    headers.set('content-type', `application/${wire.codec}`)
  } catch (thrown) {
    const error = toConnectError(thrown)
    status = codeToHttpStatus(error.code)
    body = errorToJsonBytes(error, undefined)
    for (const [name, value] of error.metadata) headers.set(name, value)
    headers.set('content-type', 'application/json')
  }
  headers.set('cache-control', 'no-store')
  const { bytes, encoding } = await compressed(body, header(request, 'accept-encoding'))
  if (encoding !== undefined) headers.set('content-encoding', encoding)
  send(response, status, headers, bytes)
}

function encoded<O extends DescMessage>(schema: O, codec: Codec, reply: MessageInitShape<O>): string | Uint8Array {
  const output = create(schema, reply)
  return codec === 'json' ? toJsonString(schema, output) : toBinary(schema, output)
}

function header(request: NodeRequest, name: string): string | undefined {
  const value = request.headers[name]
  return value === undefined ? undefined : String(value)
}
