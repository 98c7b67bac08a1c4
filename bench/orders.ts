import { create, type DescMethod, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService, OrderStatus } from '../gen/server/countersign/v1/order_service_pb.ts'
import { nextWallet } from './clients.ts'
import { GrpcConnection, pathOf } from './grpc.ts'
import { Http1Connection, Http1Pool } from './http1.ts'

const { startOrder, claimOrder, getOrderChallenge, approveOrder, finalizeOrder, watchOrder } = OrderService.method
/** Orders in flight over HTTP/2 share this many connections. */
const http2Connections = 4

/** Carries orders from start to session, each watched by its computer. */
export interface OrderProtocol {
  readonly name: string
  /** Connections join `open`, which ends them. */
  connect(port: number, open: DisposableStack): (worker: number) => Promise<unknown>
}

const rest: OrderProtocol = {
  name: 'REST, server-sent events',
  connect(port, open) {
    const pool = open.use(new Http1Pool(port))
    return async (worker) => {
      const connection = pool.of(worker)
      const { orderId, claimToken, desktopToken } = await connection.postJson('/api/auth/cross-device/start', {
        kind: 'login',
      })
      const approved = Promise.withResolvers<void>()
      const watched = Promise.withResolvers<void>()
      // One connection for each stream, as a browser has it.
      using watching = await Http1Connection.open(port)
      const path = `/api/auth/cross-device/events?orderId=${orderId}`
      const ended = watching.events(path, `authorization: Bearer ${desktopToken}\r\n`, (text) => {
        watched.resolve()
        if (text.includes('"approved"')) approved.resolve()
      })
      await watched.promise
      const { challengeToken } = await connection.postJson('/api/auth/cross-device/claim', { orderId, claimToken })
      const challenge = `/api/auth/cross-device/challenge?orderId=${orderId}`
      const answer = await connection.get(challenge, `authorization: Bearer ${challengeToken}\r\n`)
      const proof = nextWallet().prove(JSON.parse(answer.toString()).message)
      await connection.postJson('/api/auth/cross-device/approve', { orderId, challengeToken, proof })
      await approved.promise
      await connection.postJson('/api/auth/cross-device/finalize', { orderId, desktopToken })
      await ended
    }
  },
}

async function call<Method extends DescMethod>(
  connection: GrpcConnection,
  method: Method,
  message: MessageInitShape<Method['input']>,
) {
  const request = toBinary(method.input, create(method.input, message))
  return fromBinary(method.output as Method['output'], await connection.call(pathOf(method), request))
}

const grpc: OrderProtocol = {
  name: 'gRPC',
  connect(port, open) {
    const connections = Array.from({ length: http2Connections }, () => open.use(new GrpcConnection(port)))
    return async (worker) => {
      const connection = connections[worker % http2Connections] as GrpcConnection
      const { orderId, claimToken, desktopToken } = await call(connection, startOrder, { kind: OrderKind.LOGIN })
      const [watched, approved, ended] = [1, 2, 3].map(() => Promise.withResolvers<void>())
      const request = toBinary(watchOrder.input, create(watchOrder.input, { orderId, desktopToken }))
      connection.watch(watchOrder, request, ({ status }) => {
        watched?.resolve()
        if (status === OrderStatus.APPROVED) approved?.resolve()
        if (status === OrderStatus.FINALIZED) ended?.resolve()
      })
      await watched?.promise
      const { challengeToken } = await call(connection, claimOrder, { orderId, claimToken })
      const { message } = await call(connection, getOrderChallenge, { orderId, challengeToken })
      await call(connection, approveOrder, { orderId, challengeToken, proof: nextWallet().prove(message) })
      await approved?.promise
      await call(connection, finalizeOrder, { orderId, desktopToken })
      await ended?.promise
    }
  },
}

/** REST with server-sent events, and gRPC with a stream. */
export const orderProtocols: readonly OrderProtocol[] = [rest, grpc]
