import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import type { SessionSchema } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'
import type { RateLimitGroup } from '../limits/limits.ts'

/** The protocol over which a call came. */
export type Protocol = 'connect' | 'grpc' | 'grpc-web' | 'rest' | 'better-auth'

/** The headers that a handler can send with its response. */
export interface ResponseHeaders {
  'set-cookie'?: string[]
  'set-auth-token'?: string
}

/** What a handler gets in addition to the request's message, over whatever protocol it came. */
export interface Call {
  readonly protocol: Protocol
  readonly request: RequestContext
  /** Headers to send with the response if the call succeeds. None of them is sent if it fails. */
  readonly responseHeaders: ResponseHeaders
  /** Aborts if the caller leaves, or once the call is over. */
  readonly signal: AbortSignal
  /** Time in ms for which the caller waits for the answer. Absent if the caller set no deadline. */
  readonly timeoutMs?: number | undefined
}

/** Sets cookies with the response. */
export function setCookies(call: Call, cookies: readonly string[]): void {
  if (cookies.length > 0)
    call.responseHeaders['set-cookie'] = [...(call.responseHeaders['set-cookie'] ?? []), ...cookies]
}

/** Sets a new session's cookie and its token, as the header `set-auth-token`, with the response. */
export function setSession(call: Call, issued: { readonly token: string; readonly cookies: readonly string[] }): void {
  setCookies(call, issued.cookies)
  call.responseHeaders['set-auth-token'] = issued.token
}

/** A session as the API shows it. */
export function sessionFields(session: Session, current: boolean): MessageInitShape<typeof SessionSchema> {
  const { createdAt, expiresAt, computerId: _computerId, ...rest } = session
  return { ...rest, createdAt: BigInt(createdAt), expiresAt: BigInt(expiresAt), current }
}

/** The allowance that a call counts on, which it shares with others; or none. There is no default: each RPC decides. */
export type CallLimit = RateLimitGroup | 'unlimited'

/** A call that answers once: the request's message in, the fields of the response's message out. */
export interface UnaryHandler<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly limit: CallLimit
  handle(input: MessageShape<I>, call: Call): Promise<MessageInitShape<O>>
}

/** A call that answers with a stream of messages. */
export interface StreamHandler<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly limit: CallLimit
  handle(input: MessageShape<I>, call: Call): AsyncGenerator<MessageInitShape<O>, void, undefined>
}

/** A call that answers a stream of messages with another one. */
export interface BidiHandler<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly limit: CallLimit
  /** `inputs` ends when the caller has sent all, or after the time for which a transport waits for more. */
  handle(inputs: AsyncIterable<MessageShape<I>>, call: Call): AsyncGenerator<MessageInitShape<O>, void, undefined>
}

type HandlerOf<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? UnaryHandler<I, O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? StreamHandler<I, O>
      : never

/** A handler and a limit for every RPC of a service: one that is left out is a compile error. */
export type ServiceHandlers<Service extends DescService> = {
  readonly [Name in keyof Service['method']]: HandlerOf<Service['method'][Name]>
}

/** A unary RPC with its handler. {@link ServiceHandlers} has checked that the two fit; here their types are erased. */
export interface UnaryMethod extends UnaryHandler {
  readonly name: string
  readonly desc: DescMethodUnary
}

/** A server-streaming RPC with its handler. */
export interface StreamMethod extends StreamHandler {
  readonly name: string
  readonly desc: DescMethodServerStreaming
}

/** An RPC with its handler. `name` is the full name, such as `countersign.v1.SignInService/IssueNonce`. */
export type Method = UnaryMethod | StreamMethod

/** A bidirectional RPC with its handler. */
export interface BidiMethod extends BidiHandler {
  readonly name: string
  readonly desc: DescMethodBiDiStreaming
}

/** An RPC of any kind. Those of package countersign.v1 are all a {@link Method}, which every transport can carry. */
export type AnyMethod = Method | BidiMethod

/** Joins the RPCs of a service with their handlers. */
export function methodsOf<Service extends DescService>(service: Service, handlers: ServiceHandlers<Service>): Method[] {
  const byName = handlers as Readonly<Record<string, UnaryHandler | StreamHandler>>
  return service.methods.map((desc) => {
    const handler = byName[desc.localName] as UnaryHandler | StreamHandler
    return { name: `${service.typeName}/${desc.name}`, desc, limit: handler.limit, handle: handler.handle } as Method
  })
}

/** Joins a bidirectional RPC with its handler. */
export function bidiMethod<I extends DescMessage, O extends DescMessage>(
  desc: DescMethodBiDiStreaming<I, O>,
  { limit, handle }: BidiHandler<I, O>,
): BidiMethod {
  return { name: `${desc.parent.typeName}/${desc.name}`, desc, limit, handle } as BidiMethod
}

/** Whether an RPC takes a stream of messages and answers with one. */
export function isBidi(method: AnyMethod): method is BidiMethod {
  return method.desc.methodKind === 'bidi_streaming'
}

/** Whether an RPC answers once. */
export function isUnary(method: AnyMethod): method is UnaryMethod {
  return method.desc.methodKind === 'unary'
}
