import { type ConnectRouter, createConnectRouter, createContextValues } from '@connectrpc/connect'
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from '@connectrpc/connect/protocol'
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node'
import { handedCallKey } from '../rpc/connect.ts'
import type { Method } from '../rpc/methods.ts'
import { decodeInput } from '../rpc/read-input.ts'
import { maxBodyBytes, readBody } from './node-request.ts'
import type { Exchange } from './route.ts'
import {
  envelopeBytes,
  headersOf,
  inputBytes,
  isKnownEncoding,
  knownEncodings,
  readDeadline,
  type Wire,
} from './wire.ts'

/** Serves RPCs by connect-node: all protocols, streams and compression. */
export class ConnectNode {
  readonly #handlers: ReadonlyMap<string, UniversalHandler>

  constructor(register: (router: ConnectRouter) => void) {
    const router = createConnectRouter({
      // No shutdownSignal: it would cut watches off before they can ask their watchers to come back.
      acceptCompression: [compressionGzip, compressionBrotli],
      readMaxBytes: maxBodyBytes,
    })
    register(router)
    this.#handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]))
  }

  /** The paths of all RPCs that were registered. */
  get paths(): readonly string[] {
    return [...this.#handlers.keys()]
  }

  /**
   * Serves a call of an RPC of ours. Its message is read here, so that one place says what is wrong with it; connect-node is
   * given an empty one, and negotiates and writes the answer.
   */
  async serve(method: Method, wire: Wire, exchange: Exchange): Promise<void> {
    const { request, response, context } = exchange
    const names = headersOf(wire)
    const schema = method.desc.input
    const values = createContextValues()
    const universal = universalRequestFromNodeRequest(request, response, undefined, values)
    const header = new Headers(universal.header)
    const encoding = header.get(names.encoding) ?? 'identity'
    if (isKnownEncoding(encoding)) {
      // A caller that compresses and names nothing else takes answers in its own compression.
      if (!header.get(names.accept)) header.set(names.accept, encoding)
    } else if (encoding !== 'identity') {
      // The call will be refused. All protocols ask the server to say then which compressions it knows.
      response.setHeader(names.accept, knownEncodings)
    }
    const timeout = header.get(names.timeout) ?? undefined
    header.delete(names.encoding)
    header.delete(names.timeout)
    // That of the body that is read here, not of the empty message in its place.
    header.delete('content-length')
    if (wire.base64) header.set('content-type', `application/grpc-web+${wire.codec}`)
    const body = readBody(request, maxBytesOnTheWire(wire))
    // Until it is asked for, nobody listens.
    body.catch(() => {})
    const deadline = readDeadline(wire, timeout)
    values.set(handedCallKey, {
      protocol: wire.protocol,
      request: context,
      signal: universal.signal,
      timeoutMs: deadline.timeoutMs,
      readInput: async () => {
        if (deadline.malformed !== undefined) throw deadline.malformed
        return decodeInput(schema, wire.codec, await inputBytes(wire, request.headers, await body))
      },
    })
    const answer = await this.#run({ ...universal, header, body: once(emptyInput(wire)) }, exchange.path)
    await universalResponseToNodeResponse(wire.base64 ? inBase64(answer, wire) : answer, response)
  }

  /** Serves a call of an RPC of somebody else's, such as the health check, as connect-node does. */
  async serveForeign({ request, response, path }: Exchange): Promise<void> {
    const answer = await this.#run(universalRequestFromNodeRequest(request, response, undefined, undefined), path)
    await universalResponseToNodeResponse(answer, response)
  }

  async #run(request: UniversalServerRequest, path: string): Promise<UniversalServerResponse> {
    const handler = this.#handlers.get(path)
    if (handler === undefined) throw new TypeError(`${path} is not registered`)
    return await handler(request)
  }
}

/** Largest body that can hold a message of {@link maxBodyBytes}, bytes. */
function maxBytesOnTheWire({ enveloped, base64 }: Wire): number {
  const maxBytes = enveloped ? maxBodyBytes + envelopeBytes : maxBodyBytes
  // Padding may come after each of several pieces.
  return base64 ? Math.ceil((maxBytes * 4) / 3) + 64 : maxBytes
}

function emptyInput({ codec, enveloped }: Wire): Uint8Array {
  const bytes = codec === 'json' ? Buffer.from('{}') : Buffer.alloc(0)
  if (!enveloped) return bytes
  const head = Buffer.alloc(envelopeBytes)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function inBase64(answer: UniversalServerResponse, { codec }: Wire): UniversalServerResponse {
  const header = new Headers(answer.header)
  header.set('content-type', `application/grpc-web-text+${codec}`)
  const { body } = answer
  return { ...answer, header, ...(body === undefined ? {} : { body: encoded(body) }) }
}

async function* encoded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) yield Buffer.from(Buffer.from(chunk).toString('base64'))
}
