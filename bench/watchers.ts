import { setTimeout as pause } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService } from '../gen/server/countersign/v1/order_service_pb.ts'
import { pathOf, sharedConnections, streamsPerConnection } from './grpc.ts'
import { formatMs, printTable, type Times } from './harness.ts'
import { Http1Connection, Http1Pool } from './http1.ts'
import { type PoliteCall, PoliteClient } from './polite-client.ts'
import type { LoopTurns } from './probe.ts'
import { rpc } from './rpc.ts'
import { pin, type ServerProcess, startCountersign, startFloor } from './servers.ts'

const { startOrder, watchOrder } = OrderService.method
const watcherCount = 10_000
/** Streams that are opened at once. */
const openingAtOnce = 20

/** Opens the stream of the watcher of this index; resolves when its first bytes have come. */
type OpenStream = (index: number, onMore: () => void) => Promise<void>

interface Held {
  readonly name: string
  readonly polite: PoliteCall
  start(core: number | undefined): Promise<ServerProcess>
  /** Connections join `open`, which ends them. */
  prepare(server: ServerProcess, open: DisposableStack): Promise<OpenStream>
}

/** Ten thousand watchers on one process: what they cost, and what another client feels of them. */
export async function benchWatchers(): Promise<void> {
  const core = pin()
  const rows: string[][] = []
  for (const held of heldStreams) rows.push(await measure(held, core))
  printTable(
    `${watcherCount} watchers, one process, SQLite in memory`,
    [
      'heap, each',
      'resident, each',
      'opening: longest turn',
      'another client, p99',
      'idle: longest turn',
      'another client, p99',
      'stop: longest turn',
      'on the clock',
      'all told after',
    ],
    rows,
  )
}

async function measure({ name, polite, start, prepare }: Held, core: number | undefined): Promise<string[]> {
  await using server = await start(core)
  using open = new DisposableStack()
  const openStream = await prepare(server, open)
  let told = 0
  let stopping = false
  const allTold = Promise.withResolvers<void>()
  const openSome = async (from: number, to: number): Promise<void> => {
    let next = from
    const worker = async (): Promise<void> => {
      for (let index = next++; index < to; index = next++) {
        let heard = false
        await openStream(index, () => {
          // Before the stop there are heartbeats, and after its last message a stream ends with one more piece.
          if (!stopping || heard) return
          heard = true
          if (++told === watcherCount) allTold.resolve()
        })
      }
    }
    await Promise.all(Array.from({ length: openingAtOnce }, worker))
  }
  // The first streams make room that the others use too.
  const first = watcherCount / 10
  await openSome(0, first)
  const before = await server.usage('memory')
  const polites: Times[] = []
  const turns: LoopTurns[] = []
  {
    await using client = new PoliteClient(server.port, polite)
    await pause(500)
    await client.times()
    await server.usage('turns')
    await openSome(first, watcherCount)
    polites.push(await client.times())
    turns.push((await server.usage('turns')).turns)
    // A heartbeat of each.
    await pause(16_000)
    polites.push(await client.times())
    turns.push((await server.usage('turns')).turns)
  }
  const after = await server.usage('memory')
  stopping = true
  const stoppedAt = performance.now()
  const stopped = server.stop()
  await allTold.promise
  const toldMs = performance.now() - stoppedAt
  const atStop = await stopped
  const each = (bytes: number): string => `${(bytes / 1024 / (watcherCount - first)).toFixed(1)} KiB`
  return [
    name,
    each(after.heapUsed - before.heapUsed),
    each(after.rss - before.rss),
    ...polites.flatMap(({ p99 }, phase) => [formatMs((turns[phase] as LoopTurns).longestCpuMs), formatMs(p99)]),
    ...[atStop.longestCpuMs, atStop.longestMs, toldMs].map(formatMs),
  ]
}

const heldStreams: readonly Held[] = [
  {
    name: `floor: bare node:http2, ${streamsPerConnection} to a connection`,
    polite: 'bare http2',
    start: (core) => startFloor('http2', 0, core),
    async prepare({ port }, open) {
      const connectionOf = sharedConnections(port, open)
      return async (index, onMore) => await connectionOf(index).stream('/stream', Buffer.alloc(0), onMore)
    },
  },
  {
    name: `gRPC, ${streamsPerConnection} to a connection`,
    polite: 'nonce',
    start: (core) => startCountersign('sqlite::memory:', { core }),
    async prepare(server, open) {
      const orders = await startOrders(server)
      const connectionOf = sharedConnections(server.port, open)
      return async (index, onMore) => {
        const request = toBinary(watchOrder.input, create(watchOrder.input, orders[index] as WatchedOrder))
        await connectionOf(index).stream(pathOf(watchOrder), request, onMore)
      }
    },
  },
  {
    name: 'floor: bare node:http, a connection each',
    polite: 'bare http',
    start: (core) => startFloor('http', 0, core),
    async prepare({ port }, open) {
      return async (_index, onMore) =>
        await open.use(await Http1Connection.open(port)).stream('/stream', '', undefined, onMore)
    },
  },
  {
    name: 'server-sent events, a connection each',
    polite: 'nonce',
    start: (core) => startCountersign('sqlite::memory:', { core }),
    async prepare(server, open) {
      const orders = await startOrders(server)
      return async (index, onMore) => {
        const { orderId, desktopToken } = orders[index] as WatchedOrder
        const connection = open.use(await Http1Connection.open(server.port))
        const path = `/api/auth/cross-device/events?orderId=${orderId}`
        await connection.stream(path, `authorization: Bearer ${desktopToken}\r\n`, undefined, onMore)
      }
    },
  },
]

interface WatchedOrder {
  readonly orderId: string
  readonly desktopToken: string
}

/** One for each watcher. */
async function startOrders({ port }: ServerProcess): Promise<WatchedOrder[]> {
  using connections = await Http1Pool.open(port, openingAtOnce)
  const orders: WatchedOrder[] = []
  const worker = async (_: unknown, index: number): Promise<void> => {
    while (orders.length < watcherCount) {
      const { orderId, desktopToken } = await rpc(connections.of(index), startOrder, { kind: OrderKind.LOGIN })
      orders.push({ orderId, desktopToken })
    }
  }
  await Promise.all(Array.from({ length: openingAtOnce }, worker))
  return orders
}
