import type {
  DescMessage,
  DescMethod,
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
import type { CountersignError } from '../shared/errors.ts'

/** Protocol of a call. */
export type Protocol = 'connect' | 'grpc' | 'grpc-web' | 'rest' | 'better-auth'

/** Headers that a handler can send with its response. */
export interface ResponseHeaders {
  'set-cookie'?: string[]
  'set-auth-token'?: string
}

/** A call, apart from its message. The same for every protocol. */
export interface Call {
  readonly protocol: Protocol
  readonly request: RequestContext
  /** Headers of the response if the call succeeds. A failed call sends none of them. */
  readonly responseHeaders: ResponseHeaders
  /** Aborts when the caller leaves, and when the call is over. */
  readonly signal: AbortSignal
  /** Time in ms for which the caller waits. Absent without a deadline. */
  readonly timeoutMs?: number | undefined
  /** The failure that a handler answered as success because its caller allows for it. It is reported. */
  pardoned?: CountersignError
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

/** An object in which times are as the protos have them. A time that is absent stays absent. */
export function withTimes<T extends object, Name extends keyof T>(
  fields: T,
  ...times: readonly Name[]
): { [Field in keyof T]: Field extends Name ? Exclude<T[Field], number> | bigint : T[Field] } {
  const made: { -readonly [Field in keyof T]: unknown } = { ...fields }
  for (const name of times) if (fields[name] !== undefined) made[name] = BigInt(Number(fields[name]))
  return made as ReturnType<typeof withTimes<T, Name>>
}

/** A session as the API shows it. */
export function sessionFields(session: Session, current: boolean): MessageInitShape<typeof SessionSchema> {
  const { computerId: _computerId, subject: _subject, firstWallet: _firstWallet, ...shown } = session
  return { ...withTimes(shown, 'createdAt', 'expiresAt'), current }
}

/** Limit that a call counts towards, shared with other calls, or none. Required: each RPC has to choose. */
export type CallLimit = RateLimitGroup | 'unlimited'

/** Decides by a call's message, which is then read before it is counted. */
export type LimitOf<I extends DescMessage = DescMessage> = (input: MessageShape<I>) => CallLimit

/** A call that answers once: the request's message in, the fields of the response's message out. */
export interface UnaryHandler<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly limit: CallLimit | LimitOf<I>
  handle(input: MessageShape<I>, call: Call): Promise<MessageInitShape<O>>
}

/** A call that answers with a stream of messages. */
export interface StreamHandler<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly limit: CallLimit | LimitOf<I>
  handle(input: MessageShape<I>, call: Call): AsyncGenerator<MessageInitShape<O>, void, undefined>
}

type HandlerOf<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? UnaryHandler<I, O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? StreamHandler<I, O>
      : never

/** A handler whose calls count towards this limit. */
export function limited<Limit extends CallLimit | LimitOf<never>, Handle>(
  limit: Limit,
  handle: Handle,
): { readonly limit: Limit; handle: Handle } {
  return { limit, handle }
}

/** Handler and limit of every RPC of a service. A missing one is a compile error. */
export type ServiceHandlers<Service extends DescService> = {
  readonly [Name in keyof Service['method']]: HandlerOf<Service['method'][Name]>
}

/** A unary RPC with its handler. {@link ServiceHandlers} has checked that both fit; here the types are erased. */
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

/** Joins the RPCs of a service with their handlers. */
export function methodsOf<Service extends DescService>(service: Service, handlers: ServiceHandlers<Service>): Method[] {
  return service.methods.map(({ localName }) => methodOf(service, handlers, localName) as Method)
}

/** Joins one RPC of a service with its handler. */
export function methodOf<Service extends DescService, Name extends keyof Service['method'] & string>(
  service: Service,
  handlers: ServiceHandlers<Service>,
  name: Name,
): Service['method'][Name] extends DescMethodUnary ? UnaryMethod : StreamMethod {
  const desc = service.method[name] as DescMethod
  return { name: `${service.typeName}/${desc.name}`, desc, ...handlers[name] } as never
}

/** Whether an RPC answers once. */
export function isUnary(method: Method): method is UnaryMethod {
  return method.desc.methodKind === 'unary'
}
