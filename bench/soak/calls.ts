import { Agent, type IncomingMessage, request } from 'node:http'
import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf'
import { type CallOptions, Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node'
import { OrderKind, OrderService, OrderStatusSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { ErrorInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { isTerminal } from '../../src/browser/client/order-watch.ts'
import type { OrderStatus } from '../../src/shared/orders.ts'
import { publicUrl } from '../servers.ts'

/** How calls are made. */
export const protocols = ['REST', 'Connect', 'gRPC'] as const
export type Protocol = (typeof protocols)[number]

/** A call that was not answered with success. */
export class CallFailed extends Error {
  /** A reason of the API, `cut` if there was no answer, or what else came instead of one. */
  readonly reason: string

  constructor(reason: string, message: string) {
    super(`${reason}: ${message}`)
    this.reason = reason
  }
}

/** Who calls. */
export interface Caller {
  /** The client's address, as a proxy would tell it. */
  readonly address: string
  /** Session token. */
  readonly token?: string
  readonly signal?: AbortSignal
}

/** What names an order to its desktop. */
export interface Holder {
  readonly orderId: string
  readonly desktopToken: string
}

/** One event of a watch. */
export interface WatchEvent {
  readonly sequence: number
  /** In lower case. */
  readonly status: string
  readonly heartbeat: boolean
  readonly reconnect: boolean
}

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession, signOut } = SessionService.method
const { startOrder, claimOrder, getOrderChallenge, approveOrder, rejectOrder, cancelOrder, finalizeOrder } =
  OrderService.method

/** The calls of the soak: the RPC and the path of its REST endpoint. */
const calls = {
  nonce: { rpc: issueNonce, path: '/wallet/nonce' },
  verify: { rpc: verifySignIn, path: '/wallet/verify' },
  session: { rpc: getCurrentSession, path: '/session' },
  signOut: { rpc: signOut, path: '/sign-out' },
  start: { rpc: startOrder, path: '/cross-device/start' },
  claim: { rpc: claimOrder, path: '/cross-device/claim' },
  challenge: { rpc: getOrderChallenge, path: '/cross-device/challenge' },
  approve: { rpc: approveOrder, path: '/cross-device/approve' },
  reject: { rpc: rejectOrder, path: '/cross-device/reject' },
  cancel: { rpc: cancelOrder, path: '/cross-device/cancel' },
  finalize: { rpc: finalizeOrder, path: '/cross-device/finalize' },
} as const
export type CallName = keyof typeof calls

/** The fields of answers that the soak reads; REST and the RPCs have the same names for them. */
export interface Answer {
  readonly nonceId: string
  readonly message: string
  readonly token: string
  readonly orderId: string
  readonly claimToken: string
  readonly desktopToken: string
  readonly returnCode: string
  readonly challengeToken: string
}

/** Fields of a request, as in the RPC's message. */
type Fields = Readonly<Record<string, unknown>>

/** The connections of clients to one instance. */
export class Clients implements Disposable {
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true })
  readonly #http2: Http2SessionManager
  readonly #transports: Readonly<Record<Exclude<Protocol, 'REST'>, Transport>>

  constructor(url: string) {
    this.#url = url
    this.#http2 = new Http2SessionManager(url)
    this.#transports = {
      Connect: createConnectTransport({ baseUrl: url, httpVersion: '1.1', nodeOptions: { agent: this.#agent } }),
      gRPC: createGrpcTransport({ baseUrl: url, sessionManager: this.#http2 }),
    }
  }

  /** Makes a call that answers once. Rejects with {@link CallFailed}. */
  async call(protocol: Protocol, name: CallName, fields: Fields, caller: Caller): Promise<Answer> {
    if (protocol === 'REST') return (await this.#rest(name, fields, caller)) as Answer
    const { rpc } = calls[name]
    const message = { ...fields, ...(fields.kind === undefined ? {} : { kind: OrderKind.LOGIN }) }
    try {
      const { signal } = caller
      const { message: answer } = await this.#transports[protocol].unary(
        rpc as typeof startOrder,
        signal,
        undefined,
        headersOf(caller),
        create(rpc.input as DescMessage, message as MessageInitShape<DescMessage>) as never,
      )
      return answer as unknown as Answer
    } catch (error) {
      throw failureOf(error, caller.signal)
    }
  }

  /**
   * Watches an order until the server ends the stream or the caller's signal aborts. Rejects with {@link CallFailed}.
   */
  async *watch(
    protocol: Protocol,
    { orderId, desktopToken }: Holder,
    afterSequence: number | undefined,
    caller: Caller,
  ): AsyncGenerator<WatchEvent, void, undefined> {
    const after = afterSequence === undefined ? {} : { afterSequence }
    try {
      if (protocol === 'REST') {
        yield* this.#events(orderId, afterSequence, { ...caller, token: desktopToken })
        return
      }
      const options: CallOptions = {
        headers: headersOf(caller),
        ...(caller.signal === undefined ? {} : { signal: caller.signal }),
      }
      const client = createClient(OrderService, this.#transports[protocol])
      for await (const event of client.watchOrder({ orderId, desktopToken, ...after }, options)) {
        const { sequence, status, heartbeat, reconnect } = event
        yield { sequence, status: OrderStatusSchema.value[status]?.localName.toLowerCase() ?? '', heartbeat, reconnect }
      }
    } catch (error) {
      throw failureOf(error, caller.signal)
    }
  }

  /** Ends all connections. */
  [Symbol.dispose](): void {
    this.#agent.destroy()
    this.#http2.abort()
  }

  async #rest(name: CallName, fields: Fields, caller: Caller): Promise<unknown> {
    const { path } = calls[name]
    const isRead = name === 'session' || name === 'challenge'
    const token = name === 'challenge' ? String(fields.challengeToken) : caller.token
    const query = name === 'challenge' ? `?orderId=${fields.orderId}` : ''
    const response = await this.#request(
      isRead ? 'GET' : 'POST',
      `${path}${query}`,
      { ...caller, ...(token === undefined ? {} : { token }) },
      isRead ? undefined : JSON.stringify(fields),
    )
    const text = await textOf(response)
    const json = parsed(text)
    if (response.statusCode === 200) return json
    throw new CallFailed(json?.code ?? `HTTP ${response.statusCode}`, json?.message ?? text.slice(0, 200))
  }

  async *#events(
    orderId: string,
    afterSequence: number | undefined,
    caller: Caller,
  ): AsyncGenerator<WatchEvent, void, undefined> {
    const headers = {
      accept: 'text/event-stream',
      ...(afterSequence === undefined ? {} : { 'last-event-id': String(afterSequence) }),
    }
    const path = `/cross-device/events?orderId=${orderId}`
    const response = await this.#request('GET', path, caller, undefined, headers)
    if (response.statusCode === 204) return void response.resume()
    if (response.statusCode !== 200) {
      const json = parsed(await textOf(response))
      throw new CallFailed(json?.code ?? `HTTP ${response.statusCode}`, json?.message ?? '')
    }
    let text = ''
    let last: WatchEvent | undefined
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = /^data: ?(.*)$/m.exec(block)?.[1]
        if (data === undefined) continue
        last = JSON.parse(data) as WatchEvent
        yield last
      }
    }
    // A stream that fails later than at its start just ends, and its client asks again, as an EventSource does.
    const isOver = last !== undefined && (last.reconnect || isTerminal(last.status as OrderStatus))
    if (!isOver) throw new CallFailed('cut', 'the stream ended before the order did')
  }

  #request(
    method: string,
    path: string,
    caller: Caller,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#url}/api/auth${path}`, {
        method,
        agent: this.#agent,
        headers: {
          ...headersOf(caller),
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(caller.signal === undefined ? {} : { signal: caller.signal }),
      })
      sent.once('response', resolve)
      sent.once('error', (error) => reject(failureOf(error, caller.signal)))
      sent.end(body)
    })
  }
}

function headersOf({ address, token }: Caller): Record<string, string> {
  return {
    origin: publicUrl,
    'x-forwarded-for': address,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) text += chunk
  } catch (error) {
    throw failureOf(error)
  }
  return text
}

function parsed(text: string): { readonly code?: string; readonly message?: string } | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Network failures of every protocol are `cut`, and what the caller itself aborted is `aborted`. */
function failureOf(error: unknown, signal?: AbortSignal): CallFailed {
  if (error instanceof CallFailed) return error
  const known = error instanceof ConnectError ? error.findDetails(ErrorInfoSchema)[0]?.reason : undefined
  if (known !== undefined) return new CallFailed(known, String(error))
  if (signal?.aborted) return new CallFailed('aborted', String(error))
  if (!(error instanceof ConnectError)) return new CallFailed(isNetwork(error) ? 'cut' : 'failed', String(error))
  // connect-node makes codes of what becomes of a stream or its connection.
  const isCut = [Code.Unavailable, Code.Aborted, Code.Canceled].includes(error.code) || isNetwork(error.cause)
  return new CallFailed(isCut ? 'cut' : `code ${Code[error.code]}`, error.rawMessage)
}

/**
 * Codes of Node's network errors: ECONNRESET, ECONNREFUSED, EPIPE, ERR_STREAM_PREMATURE_CLOSE, ERR_HTTP2_STREAM_ERROR,
 * ...
 */
function isNetwork(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' && /^(E[A-Z]+|ERR_HTTP2_.*|ERR_STREAM_.*)$/.test(code)
}
