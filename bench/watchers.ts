import { setTimeout as pause } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService } from '../gen/server/countersign/v1/order_service_pb.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { pathOf, sharedConnections } from './grpc.ts'
import { Http1Pool, rpc } from './http1.ts'
import type { Ratios } from './ratios.ts'
import { type ServerProcess, startCountersign, startFloor, startPostgres } from './servers.ts'
import { formatMs, printTable } from './turns.ts'

const { startOrder, watchOrder } = OrderService.method
/** Streams that are opened at once. */
const openingAtOnce = 20
/** Orders have to outlive all that is measured while they are watched. */
const orderTtlSeconds = 600
/** The longest turn that the project promises while all watchers are told of a stop, ms. */
const promisedTurnMs = 50

interface WatchedOrder {
  readonly orderId: string
  readonly desktopToken: string
}

/** Ten thousand watchers over gRPC on one process: heap for each, and the longest turn of the event loop when it stops. */
export async function measureWatchers(core: number | undefined, short: boolean): Promise<Ratios> {
  const count = short ? 500 : 10_000
  await using redis = await RedisServer.start()
  await using postgres = await startPostgres()
  const own = await heapOfEach(await startCountersign(redis.url, { core, orderTtlSeconds }), count)
  const onPostgres = await heapOfEach(await startCountersign(postgres.url(), { core, orderTtlSeconds }), count)
  const floor = await heapOfEach(await startFloor('connect-node', redis.url, 'http2', core), count)
  const longestMs = own.stop.longestCpuMs
  const kib = ({ heap }: { heap: number }) => `${(heap / 1024).toFixed(1)} KiB`
  printTable(
    `${count} watchers over gRPC, 100 to a connection`,
    ['heap, each', 'longest turn at the stop, CPU'],
    [
      ['Countersign, Redis', kib(own), formatMs(longestMs)],
      ['Countersign, PostgreSQL', kib(onPostgres), formatMs(onPostgres.stop.longestCpuMs)],
      ['connect-node, bare', kib(floor), ''],
    ],
  )
  return {
    'watchers: heap of connect-node ÷ its heap, each': floor.heap / own.heap,
    'watchers, PostgreSQL: heap of Redis ÷ its heap, each': own.heap / onPostgres.heap,
    'watchers: 50 ms ÷ CPU of the longest turn at the stop': promisedTurnMs / longestMs,
  }
}

async function heapOfEach(server: ServerProcess, count: number) {
  await using started = server
  using connections = new DisposableStack()
  const connectionOf = sharedConnections(server.port, connections)
  // The floor knows no orders, and asks for none.
  const orders = await startOrders(server, count).catch(() => [])
  const watch = async (index: number): Promise<void> => {
    const message = toBinary(watchOrder.input, create(watchOrder.input, orders[index] ?? {}))
    await connectionOf(index).stream(pathOf(watchOrder), message, () => {})
  }
  // The first streams make room that the others use, too, so they do not count.
  const first = count / 10
  await eachOf(0, first, watch)
  const before = (await started.usage('memory')).heapUsed
  await eachOf(first, count, watch)
  await pause(1000)
  const after = (await started.usage('memory')).heapUsed
  return { heap: (after - before) / (count - first), stop: await started.stop() }
}

/** One order for each watcher. */
async function startOrders({ port }: ServerProcess, count: number): Promise<WatchedOrder[]> {
  using connections = new Http1Pool(port)
  const orders: WatchedOrder[] = []
  await eachOf(0, count, async (_, worker) => {
    const { orderId, desktopToken } = await rpc(connections.of(worker), startOrder, { kind: OrderKind.LOGIN })
    orders.push({ orderId, desktopToken })
  })
  return orders
}

/** Does something for each number, a few at once. */
async function eachOf(from: number, to: number, work: (index: number, worker: number) => Promise<void>): Promise<void> {
  let next = from
  const run = async (worker: number): Promise<void> => {
    while (next < to) await work(next++, worker)
  }
  await Promise.all(Array.from({ length: openingAtOnce }, (_, worker) => run(worker)))
}
