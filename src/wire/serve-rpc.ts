import {
  create,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf'
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect'
import { compressed, supportedEncodings } from './body.ts'
import type { Codec, WireCall, WireInvocation, WireMethod, WireStreamMethod, WireUnaryMethod } from './contract.ts'
import { type Answer, type Output, type PlainHeaders, writeAll } from './output.ts'
import {
  contentTypeOf,
  type Deadline,
  endingOf,
  headersOf,
  messageEnvelope,
  type RpcRequest,
  readDeadline,
  readMessage,
  type Wire,
} from './wire.ts'

/** A call of an RPC as it arrived, and the output of its answer. */
export interface RpcExchange<Call extends WireCall> extends RpcRequest {
  readonly output: Output
  /** Makes the server's own representation of the call. */
  readonly callOf: (timeoutMs: number | undefined) => Call
}

/**
 * Serves a call over Connect, gRPC or gRPC-Web. Answers are those of connect-node at a fraction of its work: see the
 * README of this folder. Differential tests compare both.
 */
export function serveRpc<Call extends WireCall>(method: WireMethod<Call>, exchange: RpcExchange<Call>): Promise<void> {
  if (method.kind !== 'unary') return serveStream(method, exchange)
  return exchange.wire.enveloped ? serveUnary(method, exchange) : serveConnectUnary(method, exchange)
}

/** A call of gRPC or gRPC-Web that answers once. */
async function serveUnary<Call extends WireCall>(method: WireUnaryMethod<Call>, exchange: RpcExchange<Call>) {
  const { wire, output } = exchange
  const invocation = unaryInvocationOf(method, exchange)
  try {
    const message = await method.invoke(invocation)
    const { bytes, encoding } = await compressed(message, acceptedBy(exchange))
    const { body, trailers } = endingOf(wire, undefined)
    const envelope = messageEnvelope(wire, bytes, encoding !== undefined)
    // Only if it is used: gRPC's C library (1.51, of Debian 12) fails on an answer that names one without need.
    const named = encoding === undefined ? {} : { [headersOf(wire).encoding]: encoding }
    output.send({
      status: 200,
      head: headOf(wire),
      headers: { ...named, ...invocation.call.ownHeaders },
      body: body === undefined ? envelope : Buffer.concat([envelope, body]),
      trailers,
    })
  } catch (thrown) {
    refuse(exchange, thrown)
  }
}

/** A call of Connect that answers once: the message is the body, and a failure is an HTTP status. */
async function serveConnectUnary<Call extends WireCall>(method: WireUnaryMethod<Call>, exchange: RpcExchange<Call>) {
  const { wire, output, refusals } = exchange
  const invocation = unaryInvocationOf(method, exchange)
  let answer: Answer
  let message: string | Uint8Array
  try {
    message = await method.invoke(invocation)
    answer = { status: 200, head: unaryHeads[wire.codec], headers: invocation.call.ownHeaders }
  } catch (thrown) {
    const error = refusals.toConnectError(thrown)
    message = errorToJsonBytes(error, undefined)
    const headers = {
      'content-type': 'application/json',
      ...noStore,
      ...acceptedEncodings(exchange, thrown),
      ...Object.fromEntries(error.metadata),
    }
    answer = { status: codeToHttpStatus(error.code), headers }
    exchange.body.drop()
  }
  const { bytes, encoding } = await compressed(message, acceptedBy(exchange))
  const { status, head, headers } = answer
  const all = encoding === undefined ? headers : { ...headers, 'content-encoding': encoding }
  output.send({ status, head, headers: all, body: bytes })
}

/** A call that answers with a stream. Its messages are small and are not compressed. */
async function serveStream<Call extends WireCall>(method: WireStreamMethod<Call>, exchange: RpcExchange<Call>) {
  const { wire, output, refusals } = exchange
  const written = writerOf(method.desc.output, wire.codec)
  const write = (reply: MessageInitShape<DescMessage>): Buffer => messageEnvelope(wire, written(reply), false)
  const deadline = readDeadline(exchange)
  const call = exchange.callOf(deadline.timeoutMs)
  try {
    const pieces = method.invoke({ call, readInput: () => readInput(method.desc.input, exchange, deadline), write })
    await writeAll(pieces, output, streamHeadOf(wire), call.signal)
    if (!output.begun) output.begin(streamHeadOf(wire))
    const { body, trailers } = endingOf(wire, undefined)
    output.end(body, trailers)
  } catch (thrown) {
    if (!output.begun) return refuse(exchange, thrown)
    const { body, trailers } = endingOf(wire, refusals.toConnectError(thrown))
    output.end(body, trailers)
  }
}

/** Answers a failure of a call whose messages are in envelopes, before any message. */
function refuse<Call extends WireCall>(exchange: RpcExchange<Call>, thrown: unknown): void {
  const { wire, output, refusals } = exchange
  const { body, trailers } = endingOf(wire, refusals.toConnectError(thrown))
  // The rest of the request is read and discarded, so that the stream can end.
  exchange.body.drop()
  const headers = { ...headOf(wire), ...acceptedEncodings(exchange, thrown) }
  output.send({ status: 200, headers, body, trailers })
}

/** The supported compressions, for a client whose compression was refused; each protocol requires them. */
function acceptedEncodings({ wire, refusals }: RpcRequest, thrown: unknown): PlainHeaders {
  return refusals.isUnknownEncoding(thrown) ? { [headersOf(wire).accept]: supportedEncodings } : {}
}

function unaryInvocationOf<Call extends WireCall>(
  { desc: { input, output } }: WireUnaryMethod<Call>,
  exchange: RpcExchange<Call>,
): WireInvocation<Call, string | Uint8Array> {
  const deadline = readDeadline(exchange)
  const call = exchange.callOf(deadline.timeoutMs)
  return { call, readInput: () => readInput(input, exchange, deadline), write: writerOf(output, exchange.wire.codec) }
}

async function readInput<I extends DescMessage>(
  schema: I,
  request: RpcRequest,
  { malformed }: Deadline,
): Promise<MessageShape<I>> {
  if (malformed !== undefined) throw malformed
  return decode(schema, request, await readMessage(request))
}

// Leaves out a byte order mark, as connect-node's reader does, and replaces invalid UTF-8 by U+FFFD.
const utf8 = new TextDecoder()

function decode<I extends DescMessage>(schema: I, { wire, refusals }: RpcRequest, bytes: Uint8Array): MessageShape<I> {
  try {
    // Not JSON.parse and fromJson, which would take the last of two values that have one name.
    return wire.codec === 'json'
      ? fromJsonString(schema, utf8.decode(bytes), { ignoreUnknownFields: true })
      : fromBinary(schema, bytes)
  } catch (cause) {
    throw refusals.undecodable(schema, cause)
  }
}

/** A function that encodes replies. */
function writerOf<O extends DescMessage>(schema: O, codec: Codec): (reply: MessageInitShape<O>) => string | Uint8Array {
  return (reply) => {
    const message = create(schema, reply)
    return codec === 'json' ? toJsonString(schema, message) : toBinary(schema, message)
  }
}

const noStore = { 'cache-control': 'no-store' } as const

/** The headers of a message of Connect's unary calls. */
const unaryHeads: Readonly<Record<Codec, PlainHeaders>> = {
  json: { 'content-type': 'application/json', ...noStore },
  proto: { 'content-type': 'application/proto', ...noStore },
}

/** The headers of messages in envelopes. */
function headOf(wire: Wire): PlainHeaders {
  return { 'content-type': contentTypeOf(wire), ...noStore }
}

/** The headers of a stream of messages; `x-accel-buffering` turns off the buffering of nginx. */
function streamHeadOf(wire: Wire): PlainHeaders {
  return { ...headOf(wire), 'x-accel-buffering': 'no' }
}

/** The compressions that the caller accepts: those it names, else the compression of its request. */
function acceptedBy({ wire, headers }: RpcRequest): string | undefined {
  const names = headersOf(wire)
  return (headers[names.accept] || headers[names.encoding]) as string | undefined
}
