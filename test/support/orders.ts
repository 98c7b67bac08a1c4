import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { createGrpcWebTransport } from '@connectrpc/connect-web'
import { OrderKind, OrderService, OrderStatusSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { readEventStream } from '../../src/browser/client/event-stream.ts'
import { rest } from './rest.ts'

/** A transition, as every protocol tells it. */
export interface Transition {
  readonly sequence: number
  readonly status: string
}

/** Names an order with the desktop's token. */
export interface Holder {
  readonly orderId: string
  readonly desktopToken: string
}

/** The calls of both sides over one protocol. A failure rejects. */
export interface OrderClient {
  start(
    kind: 'login' | 'sign',
    details?: Record<string, string>,
  ): Promise<Holder & { claimUrl: string; claimToken: string; confirmationCode: string }>
  claim(input: { orderId: string; claimToken: string }): Promise<{ challengeToken: string }>
  challenge(input: {
    orderId: string
    challengeToken: string
  }): Promise<{ message: string; confirmationCode?: string | undefined }>
  approve(input: {
    orderId: string
    challengeToken: string
    proof: { publicKeyHex: string; signatureHex: string; address?: string }
  }): Promise<{ ok: boolean }>
  finalize(holder: Holder): Promise<{
    redirectTo: string
    token?: string | undefined
    // biome-ignore lint/suspicious/noExplicitAny: the protocols' own shapes.
    session?: any
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    proofArtifact?: any
  }>
  /** Transitions only, without signs of life. */
  watch(holder: Holder, afterSequence?: number): AsyncIterable<Transition>
}

/** How to call orders over each protocol. */
export const orderClients: Record<string, (url: string) => OrderClient> = {
  REST: restClient,
  'Connect over HTTP/1.1': (url) => rpcClient(createConnectTransport({ baseUrl: url, httpVersion: '1.1' })),
  'Connect over HTTP/2': (url) => rpcClient(createConnectTransport({ baseUrl: url, httpVersion: '2' })),
  gRPC: (url) => rpcClient(createGrpcTransport({ baseUrl: url })),
  'gRPC-Web': (url) => rpcClient(createGrpcWebTransport({ baseUrl: url })),
}

function rpcClient(transport: Transport): OrderClient {
  const client = createClient(OrderService, transport)
  const kinds = { login: OrderKind.LOGIN, sign: OrderKind.SIGN }
  return {
    start: (kind, details = {}) => client.startOrder({ kind: kinds[kind], ...details }),
    claim: (input) => client.claimOrder(input),
    challenge: (input) => client.getOrderChallenge(input),
    approve: (input) => client.approveOrder(input),
    finalize: (holder) => client.finalizeOrder(holder),
    async *watch(holder, afterSequence) {
      const request = afterSequence === undefined ? holder : { ...holder, afterSequence }
      for await (const { heartbeat, sequence, status } of client.watchOrder(request)) {
        if (heartbeat) continue
        yield { sequence, status: OrderStatusSchema.value[status]!.localName.toLowerCase() }
      }
    },
  }
}

function restClient(url: string): OrderClient {
  const call = async (path: string, body?: object, headers?: Record<string, string>) => {
    const { status, json } = await rest(url, path, body, headers)
    if (status !== 200) throw new Error(`${status} ${json.code}: ${json.message}`)
    return json
  }
  return {
    start: (kind, details = {}) => call('/cross-device/start', { kind, ...details }),
    claim: ({ orderId, claimToken }) => call('/cross-device/claim', { orderId, claimToken }),
    challenge: ({ orderId, challengeToken }) =>
      call(`/cross-device/challenge?orderId=${orderId}`, undefined, { authorization: `Bearer ${challengeToken}` }),
    approve: (input) => call('/cross-device/approve', input),
    finalize: ({ orderId, desktopToken }) => call('/cross-device/finalize', { orderId, desktopToken }),
    async *watch({ orderId, desktopToken }, afterSequence) {
      const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
        headers: {
          authorization: `Bearer ${desktopToken}`,
          ...(afterSequence === undefined ? {} : { 'last-event-id': String(afterSequence) }),
        },
      })
      if (response.status === 204) return
      if (response.status !== 200 || response.body === null) throw new Error(await response.text())
      for await (const { name, data, lastEventId } of readEventStream(response.body)) {
        if (name !== 'message') continue
        const { sequence, status } = JSON.parse(data)
        if (lastEventId !== String(sequence)) throw new Error('the id is not the sequence')
        yield { sequence, status }
      }
    },
  }
}
