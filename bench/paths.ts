/** What clients ask for, over each protocol. A path needs nothing but a port, so the server may be that of another commit. */
import { create, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService, OrderStatus } from '../gen/server/countersign/v1/order_service_pb.ts'
import { betterAuth, type Client, nextWallet, type Protocol, protocols } from './clients.ts'
import { GrpcConnection, pathOf } from './grpc.ts'
import { type Http1Connection, Http1Pool, jsonOf, rpc } from './http1.ts'
import { orderProtocols } from './orders.ts'
import { inFlight, type Load } from './turns.ts'

/** How a turn loads the server. */
export interface TurnSize {
  readonly concurrency: number
  /** Turns are short because disturbances come and go: many short turns share them more evenly. */
  readonly turnMs: number
}

export interface Path {
  readonly name: string
  /** The version of HTTP that a floor has to speak. */
  readonly http: 'http' | 'http2'
  /** Connects to a server. Connections join `open`, which ends them. */
  connect(port: number, open: DisposableStack, size: TurnSize): Promise<Load>
}

/** Sessions that are checked, so that not all checks read one key. */
const sessionCount = 16
const watchedOrders = 40
const watchedAtOnce = 4

const { startOrder, claimOrder, getOrderChallenge, approveOrder, watchOrder } = OrderService.method

function pathOfClient(
  name: string,
  protocol: Protocol,
  callOf: (client: Client) => Promise<(worker: number) => Promise<unknown>>,
): Path {
  return {
    name: `${name}, ${protocol.name}`,
    http: protocol.http,
    async connect(port, open, { concurrency, turnMs }) {
      return inFlight(concurrency, turnMs, await callOf(protocol.connect(port, open)))
    },
  }
}

/** A sign-in is IssueNonce, a signature, and VerifySignIn. */
export const signInOver = (protocol: Protocol): Path =>
  pathOfClient('sign-in', protocol, async (client) => (worker) => client.signIn(worker))

/** As {@link signInOver}, with wallets of Ethereum: the nonce is for their account, and the text is a form. */
export const ethereumSignInOver = (protocol: Protocol): Path => ({
  ...pathOfClient('sign-in', protocol, async (client) => (worker) => client.signIn(worker, 'ethereum')),
  name: `sign-in, ${protocol.name}, Ethereum`,
})

/** A session check is GetCurrentSession with a bearer token. */
export const sessionCheckOver = (protocol: Protocol): Path =>
  pathOfClient('session check', protocol, async (client) => {
    const tokens: string[] = []
    while (tokens.length < sessionCount) tokens.push(await client.signIn(0))
    return (worker) => client.check(worker, tokens[worker % sessionCount] as string)
  })

/** A whole login order with a watcher, from its start to the end of the watch. */
export const orderPaths: readonly Path[] = orderProtocols.map((protocol) => ({
  name: `order, ${protocol.name}`,
  http: 'http',
  connect: async (port, open, { concurrency, turnMs }) => inFlight(concurrency, turnMs, protocol.connect(port, open)),
}))

/** The time from an approval to its event at a watcher. */
const approvalToEvent: Path = {
  name: 'approval to event, gRPC',
  http: 'http2',
  async connect(port, open) {
    const pool = open.use(new Http1Pool(port))
    return async (measured) => {
      using watching = new GrpcConnection(port)
      const orders = await startWatched(pool.of(0), watching)
      return await measured(async () => {
        const times: number[] = []
        const work = async (worker: number): Promise<void> => {
          for (let order = orders.pop(); order !== undefined; order = orders.pop()) {
            const startedAt = performance.now()
            await pool.of(worker).post(pathOf(approveOrder), 'application/json', order.body)
            await order.approved
            times.push(performance.now() - startedAt)
          }
        }
        await Promise.all(Array.from({ length: watchedAtOnce }, (_, worker) => work(worker)))
        return times
      })
    }
  },
}

/** Orders that wait for their approval, each with a watcher. `body` approves one. */
async function startWatched(connection: Http1Connection, watching: GrpcConnection) {
  const orders: { readonly body: string; readonly approved: Promise<void> }[] = []
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

/** All paths of the service. */
export const paths: readonly Path[] = [
  ...protocols.map((protocol) =>
    pathOfClient('IssueNonce', protocol, async (client) => (worker) => client.nonce(worker)),
  ),
  ...protocols.map(signInOver),
  ...protocols.map(ethereumSignInOver),
  ...protocols.map(sessionCheckOver),
  ...orderPaths,
  approvalToEvent,
]

/** The peer's own paths. */
export const peerPaths = { signIn: signInOver(betterAuth), sessionCheck: sessionCheckOver(betterAuth) }
