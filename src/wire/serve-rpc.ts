import type { IncomingHttpHeaders } from 'node:http'
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf'
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect'
import type { RequestContext } from '../base/request.ts'
import { toConnectError } from '../rpc/errors.ts'
import type { BidiInvocation, Invocation, Invoker, UnaryInvocation } from '../rpc/invoke.ts'
import {
  type AnyMethod,
  type BidiMethod,
  isBidi,
  isUnary,
  type Method,
  type StreamMethod,
  type UnaryMethod,
} from '../rpc/methods.ts'
import { type Codec, decodeInput } from '../rpc/read-input.ts'
import type { RequestBody } from './body.ts'
import { acceptedEncodings, compressed } from './compression.ts'
import { type Answer, HttpCall, type Output, type PlainHeaders, writeAll } from './output.ts'
import {
  contentTypeOf,
  type Deadline,
  endingOf,
  headersOf,
  inputBytes,
  inputStream,
  maxBytesOnTheWire,
  messageEnvelope,
  readDeadline,
  type Wire,
} from './wire.ts'

/** A call of an RPC as it arrived. */
export interface RpcExchange {
  readonly wire: Wire
  readonly headers: IncomingHttpHeaders
  readonly body: RequestBody
  readonly context: RequestContext
  readonly output: Output
}

/**
 * Serves a call of one of our RPCs, over Connect, gRPC or gRPC-Web. It answers as connect-node does, at a fraction of
 * the work: see bench/README.md. Differential tests hold the two together.
 */
export function serveRpc(method: AnyMethod, exchange: RpcExchange, invoker: Invoker): Promise<void> {
  if (!isUnary(method)) return serveStream(method, exchange, invoker)
  return exchange.wire.enveloped ? serveUnary(method, exchange, invoker) : serveConnectUnary(method, exchange, invoker)
}

/** A call of gRPC or gRPC-Web that answers once. */
async function serveUnary(method: UnaryMethod, exchange: RpcExchange, invoker: Invoker): Promise<void> {
  const { wire, output } = exchange
  const invocation = unaryInvocationOf(method, exchange)
  try {
    const message = await invoker.unary(invocation)
    const encoded = compressed(message, acceptedBy(exchange))
    const { bytes, encoding } = encoded instanceof Promise ? await encoded : encoded
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
async function serveConnectUnary(method: UnaryMethod, exchange: RpcExchange, invoker: Invoker): Promise<void> {
  const { wire, output } = exchange
  const invocation = unaryInvocationOf(method, exchange)
  let answer: Answer
  let message: string | Uint8Array
  try {
    message = await invoker.unary(invocation)
    answer = { status: 200, head: unaryHeads[wire.codec], headers: invocation.call.ownHeaders }
  } catch (thrown) {
    const error = toConnectError(thrown)
    message = errorToJsonBytes(error, undefined)
    const headers = {
      'content-type': 'application/json',
      ...noStore,
      ...acceptedEncodings(thrown, headersOf(wire).accept),
      ...Object.fromEntries(error.metadata),
    }
    answer = { status: codeToHttpStatus(error.code), headers }
    exchange.body.drop()
  }
  const encoded = compressed(message, acceptedBy(exchange))
  const { bytes, encoding } = encoded instanceof Promise ? await encoded : encoded
  const { status, head, headers } = answer
  const all = encoding === undefined ? headers : { ...headers, 'content-encoding': encoding }
  output.send({ status, head, headers: all, body: bytes })
}

/** A call that answers with a stream. Its messages are small and are not compressed. */
async function serveStream(method: StreamMethod | BidiMethod, exchange: RpcExchange, invoker: Invoker): Promise<void> {
  const { wire, output } = exchange
  const written = writerOf(method.desc.output, wire.codec)
  const write = (reply: MessageInitShape<DescMessage>): Buffer => messageEnvelope(wire, written(reply), false)
  const invocation = isBidi(method) ? bidiInvocationOf(method, exchange) : invocationOf(method, exchange)
  try {
    const pieces =
      'readInputs' in invocation ? invoker.bidi({ ...invocation, write }) : invoker.stream({ ...invocation, write })
    await writeAll(pieces, output, streamHeadOf(wire), invocation.call.signal)
    if (!output.begun) output.begin(streamHeadOf(wire))
    const { body, trailers } = endingOf(wire, undefined)
    output.end(body, trailers)
  } catch (thrown) {
    if (!output.begun) return refuse(exchange, thrown)
    const { body, trailers } = endingOf(wire, toConnectError(thrown))
    output.end(body, trailers)
  }
}

/** Answers a failure of a call whose messages are in envelopes, before any message. */
function refuse(exchange: RpcExchange, thrown: unknown): void {
  const { wire, output } = exchange
  const { body, trailers } = endingOf(wire, toConnectError(thrown))
  // What the client goes on to send is read and dropped, so that the stream can end.
  exchange.body.drop()
  const headers = { ...headOf(wire), ...acceptedEncodings(thrown, headersOf(wire).accept) }
  output.send({ status: 200, headers, body, trailers })
}

/** What the invoker needs to know of a call. */
function invocationOf<M extends Method>(
  method: M,
  exchange: RpcExchange,
): Invocation<M, DescMessage> & { readonly call: HttpCall } {
  const { deadline, call } = callOf(exchange)
  return {
    name: method.name,
    schema: method.desc.input,
    handler: method,
    call,
    readInput: () => readInput(method.desc.input, exchange, deadline),
  }
}

/** The same of a call that answers once. Made as one object, because there is one for nearly every call. */
function unaryInvocationOf(
  method: UnaryMethod,
  exchange: RpcExchange,
): UnaryInvocation<DescMessage, MessageInitShape<DescMessage>, string | Uint8Array> & { readonly call: HttpCall } {
  const { input, output } = method.desc
  const { deadline, call } = callOf(exchange)
  return {
    name: method.name,
    schema: input,
    handler: method,
    call,
    readInput: () => readInput(input, exchange, deadline),
    write: writerOf(output, exchange.wire.codec),
  }
}

/**
 * Longest time for which a bidirectional call is asked for its next request, from its beginning on, in milliseconds.
 * Then it ends as if the client had sent its last one. The port would cut the request off after 10 s, and other servers
 * would let it stay.
 */
const maxInputsMs = 5_000

/** The same of a bidirectional call. */
function bidiInvocationOf(
  method: BidiMethod,
  exchange: RpcExchange,
): Omit<BidiInvocation<DescMessage, DescMessage, unknown>, 'write'> {
  const { deadline, call } = callOf(exchange)
  return {
    name: method.name,
    schema: method.desc.input,
    handler: method,
    call,
    readInputs: (signal) =>
      readInputs(method.desc.input, exchange, deadline, AbortSignal.any([signal, AbortSignal.timeout(maxInputsMs)])),
  }
}

async function* readInputs<I extends DescMessage>(
  schema: I,
  { wire, headers, body }: RpcExchange,
  deadline: Deadline,
  signal: AbortSignal,
): AsyncGenerator<MessageShape<I>, void, undefined> {
  if (deadline.malformed !== undefined) throw deadline.malformed
  try {
    for await (const bytes of inputStream(wire, headers, body, signal)) yield decodeInput(schema, wire.codec, bytes)
  } finally {
    body.drop()
  }
}

function callOf({ wire, headers, context, output }: RpcExchange): {
  readonly deadline: Deadline
  readonly call: HttpCall
} {
  const deadline = readDeadline(wire, headers[headersOf(wire).timeout] as string | undefined)
  return { deadline, call: new HttpCall(wire.protocol, context, output.answering, deadline.timeoutMs) }
}

async function readInput<I extends DescMessage>(
  schema: I,
  { wire, headers, body }: RpcExchange,
  deadline: Deadline,
): Promise<MessageShape<I>> {
  if (deadline.malformed !== undefined) throw deadline.malformed
  const received = await body.read(maxBytesOnTheWire(wire))
  return decodeInput(schema, wire.codec, await inputBytes(wire, headers, received, body.decompressed))
}

/** Writes an RPC's messages. */
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

/** The headers of a stream of messages. Without the last one, nginx buffers responses. */
function streamHeadOf(wire: Wire): PlainHeaders {
  return { ...headOf(wire), 'x-accel-buffering': 'no' }
}

/** The compressions that the caller takes: those it names or, if it names none, its own. */
function acceptedBy({ wire, headers }: RpcExchange): string | undefined {
  const names = headersOf(wire)
  return (headers[names.accept] || headers[names.encoding]) as string | undefined
}
