import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService, OrderStatus } from '../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { enveloped, GrpcConnection, pathOf } from './grpc.ts'
import { inFlight } from './harness.ts'
import { Http1Connection, Http1Pool } from './http1.ts'
import { nextWallet } from './protocols.ts'
import { jsonOf, rpc } from './rpc.ts'

/**
 * The paths that two trees are compared on. They speak to a server over the network only, so that the server can be that of
 * another commit; what they send must be understood by both.
 */

/** What one round came to. */
export interface Round {
  readonly calls: number
  readonly ms: number
}

/** Loads the server for one round; `measured` wraps the part that counts. */
export type Load = (measured: (work: () => Promise<number>) => Promise<Round>) => Promise<Round>

export interface Path {
  readonly name: string
  /** Connects to a server. Connections join `open`, which ends them. */
  connect(port: number, open: DisposableStack): Promise<Load>
}

const concurrency = 16
/** The calls in flight are spread over them. */
const grpcConnections = 4
/** Short, because what disturbs a machine comes and goes: many short turns share it more evenly than a few long ones. */
const roundMs = 100
const watchedOrders = 40
const watchedAtOnce = 4

const { issueNonce, verifySignIn } = SignInService.method
const { startOrder, claimOrder, getOrderChallenge, approveOrder, finalizeOrder, watchOrder } = OrderService.method
const { getCurrentSession } = SessionService.method
const emptyMessage = new Uint8Array()

const signInGrpc = overGrpc('whole sign-in, gRPC', async (grpc) => {
  const challenge = fromBinary(issueNonce.output, await grpc.call(pathOf(issueNonce), emptyMessage))
  const proof = nextWallet().prove(challenge.message)
  const request = create(verifySignIn.input, { nonceId: challenge.nonceId, ...proof })
  await grpc.call(pathOf(verifySignIn), toBinary(verifySignIn.input, request))
})

const sessionCheckConnect: Path = {
  name: 'session check, Connect JSON',
  async connect(port, open) {
    const pool = open.use(new Http1Pool(port))
    const bearer = `authorization: Bearer ${await signIn(pool.of(0))}\r\n`
    return timed((worker) => pool.of(worker).post(pathOf(getCurrentSession), 'application/json', '{}', bearer))
  },
}

const sessionCheckGrpc: Path = {
  name: 'session check, gRPC',
  async connect(port, open) {
    using connection = await Http1Connection.open(port)
    const bearer = { authorization: `Bearer ${await signIn(connection)}` }
    const grpc = openGrpc(port, open)
    return timed((worker) => grpc(worker).call(pathOf(getCurrentSession), emptyMessage, bearer))
  },
}

export const paths: readonly Path[] = [
  overHttp1('IssueNonce, REST', (connection) => connection.post('/api/auth/wallet/nonce', 'application/json', '{}')),
  overHttp1('IssueNonce, Connect JSON', (connection) => connection.post(pathOf(issueNonce), 'application/json', '{}')),
  overHttp1('IssueNonce, Connect binary', (connection) =>
    connection.post(pathOf(issueNonce), 'application/proto', emptyMessage),
  ),
  overHttp1('IssueNonce, gRPC-Web', async (connection) => {
    const answer = await connection.post(pathOf(issueNonce), 'application/grpc-web+proto', enveloped(emptyMessage))
    // A failed call is a 200 too, which begins with the trailers.
    if (answer[0] !== 0) throw new Error(`gRPC-Web answered ${answer}`)
  }),
  overGrpc('IssueNonce, gRPC', (grpc) => grpc.call(pathOf(issueNonce), emptyMessage)),
  overHttp1('whole sign-in, REST', async (connection) => {
    const { nonceId, message } = await connection.postJson('/api/auth/wallet/nonce', {})
    await connection.postJson('/api/auth/wallet/verify', { nonceId, ...nextWallet().prove(message) })
  }),
  overHttp1('whole sign-in, Connect JSON', signIn),
  signInGrpc,
  sessionCheckConnect,
  sessionCheckGrpc,
  overHttp1('login order, start to finalize, Connect JSON', async (connection) => {
    const { orderId, claimToken, desktopToken } = await rpc(connection, startOrder, { kind: OrderKind.LOGIN })
    const { challengeToken } = await rpc(connection, claimOrder, { orderId, claimToken })
    const { message } = await rpc(connection, getOrderChallenge, { orderId, challengeToken })
    await rpc(connection, approveOrder, { orderId, challengeToken, proof: nextWallet().prove(message) })
    await rpc(connection, finalizeOrder, { orderId, desktopToken })
  }),
  {
    name: 'approval to event at a watcher, gRPC',
    async connect(port, open) {
      const pool = open.use(new Http1Pool(port))
      return async (measured) => {
        // The streams end with their connection.
        using watching = new GrpcConnection(port)
        const orders = await watchedOrdersOf(pool.of(0), watching)
        return await measured(async () => {
          let next = 0
          const work = async (worker: number): Promise<void> => {
            while (next < orders.length) {
              const { body, approved } = orders[next++] as WatchedOrder
              await pool.of(worker).post(pathOf(approveOrder), 'application/json', body)
              await approved
            }
          }
          await Promise.all(Array.from({ length: watchedAtOnce }, (_, worker) => work(worker)))
          return orders.length
        })
      }
    },
  },
]

function overHttp1(name: string, call: (connection: Http1Connection) => Promise<unknown>): Path {
  return {
    name,
    async connect(port, open) {
      const pool = open.use(new Http1Pool(port))
      return timed((worker) => call(pool.of(worker)))
    },
  }
}

function overGrpc(name: string, call: (connection: GrpcConnection) => Promise<unknown>): Path {
  return {
    name,
    async connect(port, open) {
      const grpc = openGrpc(port, open)
      return timed((worker) => call(grpc(worker)))
    },
  }
}

/** The connection of each of several workers. */
function openGrpc(port: number, open: DisposableStack): (worker: number) => GrpcConnection {
  const connections = Array.from({ length: grpcConnections }, () => open.use(new GrpcConnection(port)))
  return (worker) => connections[worker % grpcConnections] as GrpcConnection
}

/** Calls for the time of a round, several at once. */
function timed(call: (worker: number) => Promise<unknown>): Load {
  const load = inFlight(concurrency, call)
  return (measured) =>
    measured(async () => {
      const times: number[] = []
      await load(performance.now() + roundMs, times)
      return times.length
    })
}

async function signIn(connection: Http1Connection): Promise<string> {
  const { nonceId, message } = await rpc(connection, issueNonce, {})
  return (await rpc(connection, verifySignIn, { nonceId, ...nextWallet().prove(message) })).token
}

interface WatchedOrder {
  /** Request that approves the order. */
  readonly body: string
  /** Resolves when the watcher hears of the approval. */
  readonly approved: Promise<void>
}

async function watchedOrdersOf(connection: Http1Connection, watching: GrpcConnection): Promise<WatchedOrder[]> {
  const orders: WatchedOrder[] = []
  while (orders.length < watchedOrders) {
    const { orderId, claimToken, desktopToken } = await rpc(connection, startOrder, { kind: OrderKind.LOGIN })
    const { challengeToken } = await rpc(connection, claimOrder, { orderId, claimToken })
    const { message } = await rpc(connection, getOrderChallenge, { orderId, challengeToken })
    const started = Promise.withResolvers<void>()
    const approved = Promise.withResolvers<void>()
    const request = create(watchOrder.input, { orderId, desktopToken })
    watching.watch(watchOrder, toBinary(watchOrder.input, request), ({ status }) => {
      if (status === OrderStatus.WAITING_USER) started.resolve()
      if (status === OrderStatus.APPROVED) approved.resolve()
    })
    await started.promise
    const proof = nextWallet().prove(message)
    orders.push({ body: jsonOf(approveOrder, { orderId, challengeToken, proof }), approved: approved.promise })
  }
  return orders
}
