import type { DescMethodUnary, DescService, Message, MessageInitShape } from '@bufbuild/protobuf'
import { durationMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { InboxService } from '../../../gen/client/countersign/v1/inbox_service_pb.ts'
import { OrderKind, OrderService, OrderStatus } from '../../../gen/client/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../../gen/client/countersign/v1/session_service_pb.ts'
import { NoncePurpose, SignInService } from '../../../gen/client/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../../gen/client/countersign/v1/wallet_service_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../../gen/client/google/rpc/error_details_pb.ts'
import { given } from '../../shared/defined-fields.ts'
import { type EnumWords, enumWords } from '../../shared/enum-words.ts'
import type { SignInResult } from '../../shared/session.ts'
import type { ApiCall, ApiMethod, WatchMessage } from './api.ts'
import { defaultTimeoutMs, requireHttp } from './call.ts'
import { type ClientCallsOptions, type ClientParts, clientCalls } from './calls.ts'
import type { CountersignClient } from './client.ts'
import { aborted, type ClientErrorCode, CountersignClientError } from './errors.ts'
import type { RestOptions } from './rest-api.ts'
import { type SignInOptions, signIn } from './sign-in.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'

/** Options of {@link createCountersignClient}. Those that a call has too are its defaults. */
export interface CountersignClientOptions extends ClientCallsOptions {
  /**
   * Transport to the service: of `@connectrpc/connect-web` in pages, of `@connectrpc/connect-node` in Node.js. In a
   * page, its `fetch` must send `credentials: 'include'` for the session cookie to reach a service at another origin.
   */
  readonly transport: Transport
}

/** Makes a client over the generated clients. Throws a `TypeError` if `baseUrl` is not an http or https address. */
export function createCountersignClient(options: CountersignClientOptions): CountersignClient {
  requireHttp(options.baseUrl ?? '')
  const tokens = new TokenStore(options)
  return clientCalls({ ...connectApi(options.transport), tokens }, options)
}

/** Options of {@link signInWithWallet}. */
export interface SignInWithWalletOptions
  extends SignInOptions,
    TokenStoreOptions,
    Pick<RestOptions, 'baseUrl' | 'timeoutMs'> {}

/**
 * Signs in over the caller's own transport: nonce, wallet signature, verification. Call it in a user gesture, because
 * the wallet may open a window. Rejects with a `CountersignClientError`.
 */
export async function signInWithWallet(
  transport: Transport,
  options: SignInWithWalletOptions = {},
): Promise<SignInResult> {
  const { baseUrl = '', timeoutMs = defaultTimeoutMs } = options
  const service = plainCalls(SignInService, transport)
  return await signIn({ service, baseUrl, tokens: new TokenStore(options), timeoutMs }, options)
}

/** The coded error for anything that a generated client threw. `signal` is the call's. */
export function toClientError(thrown: unknown, signal: AbortSignal | undefined): CountersignClientError {
  if (thrown instanceof CountersignClientError) return thrown
  if (signal?.aborted) return aborted(signal)
  const error = ConnectError.from(thrown)
  const [info] = error.findDetails(ErrorInfoSchema).filter(({ domain }) => domain === 'countersign')
  if (info !== undefined) {
    const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay
    const retryAfterMs = delay === undefined ? undefined : durationMs(delay)
    const { tries_left: tries, adapter_id: adapterId, address } = info.metadata
    const triesLeft = tries === undefined ? undefined : Number(tries)
    const code = info.reason as ClientErrorCode
    return new CountersignClientError(code, error.rawMessage, {
      retryAfterMs,
      triesLeft,
      adapterId,
      address,
      cause: error,
    })
  }
  // Connect gives a cause if fetch or reading the body failed, and only a code if it read an answer that is not the
  // service's.
  if (silent.has(error.code) || (error.code === Code.Unknown && error.cause !== undefined)) {
    return new CountersignClientError('NETWORK', 'The service did not answer', { cause: error.cause ?? error })
  }
  return new CountersignClientError('UNEXPECTED_ANSWER', `Unexpected answer: ${error.rawMessage}`, {
    cause: error,
  })
}

/** Codes for proxies that do not reach the service (429, 502, 503, 504) and for calls that ran out of time. */
const silent: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Canceled, Code.Aborted])

/** The service's calls over its generated clients. */
function connectApi(transport: Transport): Omit<ClientParts, 'tokens'> {
  const signIn = plainCalls(SignInService, transport)
  const order = createClient(OrderService, transport)
  const { startOrder, ...orders } = plainCalls(OrderService, transport)
  return {
    signIn,
    order: {
      ...orders,
      startOrder: ({ kind, ...request }, call) => startOrder({ ...request, kind: kinds.numberOf(kind) }, call),
      async *watchOrder(request, { signal, onOpen }) {
        try {
          for await (const message of order.watchOrder({ ...request }, { signal, onHeader: onOpen })) {
            yield plain<WatchMessage>(message)
          }
        } catch (thrown) {
          throw toClientError(thrown, signal)
        }
      },
    },
    session: plainCalls(SessionService, transport),
    wallet: {
      ...plainCalls(WalletService, transport),
      issueLinkNonce: (request, call) => signIn.issueNonce({ ...request, purpose: NoncePurpose.LINK }, call),
    },
    inbox: plainCalls(InboxService, transport),
  }
}

/** The calls of a service that answer once, by their names. The type of an answer is the caller's, in REST's shape. */
type PlainCalls<Service extends DescService> = {
  [Name in keyof Service['method'] as Service['method'][Name] extends DescMethodUnary ? Name : never]: ApiMethod<
    MessageInitShape<Service['method'][Name]['input']>,
    never
  >
}

/** The calls of a generated client that answer once, each with a plain answer and the client's own errors. */
function plainCalls<Service extends DescService>(service: Service, transport: Transport): PlainCalls<Service> {
  const client: Readonly<Record<string, unknown>> = createClient(service, transport)
  const names = service.methods.filter(({ methodKind }) => methodKind === 'unary').map(({ localName }) => localName)
  return Object.fromEntries(names.map((name) => [name, plainly(client[name] as GeneratedMethod)])) as never
}

/** A call of a generated client. */
type GeneratedMethod = (request: object, call: { signal: AbortSignal; headers?: HeadersInit }) => Promise<Message>

/** A call of a generated client with a plain answer and the client's own errors. */
function plainly<Answer>(method: GeneratedMethod): ApiMethod<object, Answer> {
  return async (request, { signal, headers }: ApiCall) => {
    try {
      return plain<Answer>(await method(request, { signal, ...given({ headers }) }))
    } catch (thrown) {
      throw toClientError(thrown, signal)
    }
  }
}

const kinds = enumWords(OrderKind)

/** The enum fields of all messages, by their names. */
const enumFields: Readonly<Record<string, EnumWords>> = { kind: kinds, status: enumWords(OrderStatus) }

/** A message as a plain object in the shape of REST's JSON; `T` is the type of that shape. */
export function plain<T>(message: Message): T {
  const entries = Object.entries(message).filter(([name, value]) => !name.startsWith('$') && value !== undefined)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, enumFields[name]?.wordOf(value) ?? plainValue(value)]),
  ) as T
}

function plainValue(value: unknown): unknown {
  // Times: they fit in a number for the next 280,000 years.
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plainValue)
  return typeof value === 'object' && value !== null ? plain(value as Message) : value
}
