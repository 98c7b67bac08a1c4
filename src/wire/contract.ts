import type { OutgoingHttpHeaders } from 'node:http'
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import type { ConnectError } from '@connectrpc/connect'

/** Encoding of messages. */
export type Codec = 'json' | 'proto'

/** An RPC with the function that carries out its calls, as the server behind this room supplies it. */
export type WireMethod<Call extends WireCall> = WireUnaryMethod<Call> | WireStreamMethod<Call>

/** An RPC that answers once. */
export interface WireUnaryMethod<Call extends WireCall> {
  readonly kind: 'unary'
  readonly desc: DescMethodUnary
  readonly invoke: <Written>(invocation: WireInvocation<Call, Written>) => Promise<Written>
}

/** An RPC that answers with a stream. */
export interface WireStreamMethod<Call extends WireCall> {
  readonly kind: 'stream'
  readonly desc: DescMethodServerStreaming
  readonly invoke: <Written>(invocation: WireInvocation<Call, Written>) => AsyncIterable<Written>
}

/** A call of an RPC: how its input is read and its replies are written. Both can fail, as a part of the call. */
export interface WireInvocation<Call extends WireCall, Written> {
  readonly call: Call
  /** Reads the message of the request. */
  readonly readInput: () => Promise<MessageShape<DescMessage>>
  readonly write: (reply: MessageInitShape<DescMessage>) => Written
}

/** A call as the server represents it; passed to `invoke` as it is. */
export interface WireCall {
  /** Aborts when the answer is closed. */
  readonly signal: AbortSignal
  /** Headers of the answer to a call that succeeds. */
  readonly ownHeaders: OutgoingHttpHeaders | undefined
}

/** The errors for requests that cannot be served. The server makes them, so they carry its reasons and texts. */
export interface Refusals {
  /** A body that does not fit its headers. `problem` completes "The body …". */
  readonly malformedBody: (problem: string, cause?: unknown) => Error
  /** A body that its sender broke off. */
  readonly endedEarly: (cause?: unknown) => Error
  /** Largest body of a request, and largest decompressed message, in bytes. */
  readonly maxBodyBytes: number
  /** A body or message of more than {@link maxBodyBytes}. */
  readonly bodyTooLarge: () => Error
  readonly malformedHeader: (name: string) => Error
  /** A message that does not decode as one of this schema. */
  readonly undecodable: (schema: DescMessage, cause: unknown) => Error
  /** A compression other than the supported ones, which are listed. */
  readonly unknownEncoding: (supported: string) => Error
  /** Whether an error is one of {@link unknownEncoding}, whose answer lists the supported compressions in a header. */
  readonly isUnknownEncoding: (thrown: unknown) => boolean
  /** Connect's form of any error that a call ends with. */
  readonly toConnectError: (thrown: unknown) => ConnectError
}
