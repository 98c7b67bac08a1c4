import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService } from '../gen/server/countersign/v1/order_service_pb.ts'
import { backoffMs } from '../src/client/retry.ts'
import { RedisServer, redisCli } from '../test/support/redis-server.ts'
import { pathOf, sharedConnections, streamsPerConnection } from './grpc.ts'
import { formatMs, printTable, printVerdict } from './harness.ts'
import { Http1Connection, Http1Pool } from './http1.ts'
import { type Heard, type PoliteCall, PoliteClient } from './polite-client.ts'
import type { LoopTurns } from './probe.ts'
import { rpc } from './rpc.ts'
import { hasRedis, pin, type ServerProcess, startConnectNodeFloor, startCountersign, startFloor } from './servers.ts'

const { startOrder, watchOrder } = OrderService.method
const watcherCount = 10_000
/** Streams that are opened at once. */
const openingAtOnce = 20
/** The first streams make room that the others use too, so they do not count. */
const firstWatchers = watcherCount / 10
/** What the project promises: the longest turn while all are told of a stop, and the most heap for each watcher. */
const promisedTurnMs = 50
const promisedHeap = 20 * 1024
/** Long enough for a heartbeat of each watcher, ms. */
const heartbeatsMs = 16_000
/** The same for floors, which have none. */
const floorIdleMs = 2000
/** Orders have to outlive all that is measured while they are watched. */
const orderTtlSeconds = 600
/** How long it may take until all orders have been read again, ms. */
const wakePatienceMs = 30_000

/** Opens the stream of the watcher of this index; resolves when its first bytes have come. */
type OpenStream = (index: number, onEnd: () => void) => Promise<void>

interface Held {
  readonly name: string
  readonly polite: PoliteCall
  /** Name of the row that its heap is compared with. A floor has none. */
  readonly floor?: string
  /** What is watched; absent if the servers are floors, whose streams need nothing. */
  readonly store?: (open: AsyncDisposableStack) => Promise<string>
  start(store: string, core: number | undefined): Promise<ServerProcess>
  /** Connections join `open`, which ends them. */
  streamsOf(port: number, orders: readonly WatchedOrder[], open: DisposableStack): OpenStream
}

/** What was measured of one kind of stream. */
interface Row {
  readonly heapEach: number
  readonly rssEach: number
  readonly opening: Phase
  readonly idle: Phase
  /** CPU time of the server a second, ms, while the watchers are left alone and nobody else calls. */
  readonly idleCpuMs: number
  /** All watchers are woken at once, because the store had lost sight of changes; absent where that cannot happen. */
  readonly wake?: Wake
  readonly stop: LoopTurns
  readonly toldMs: number
  readonly comingBack: Phase
  readonly backMs: number
}

/** What happened when all watchers were woken at once. */
interface Wake extends Phase {
  /** CPU time of the server, ms. */
  readonly cpuMs: number
  /** Until every order had been read again. */
  readonly readMs: number
}

/** What happened while the watchers did one thing. */
interface Phase {
  readonly turns: LoopTurns
  readonly polite: Heard
}

/** Ten thousand watchers on one process: what they cost, and what another client feels of them. */
export async function benchWatchers(): Promise<void> {
  const core = pin()
  const redisThere = hasRedis()
  const rows = new Map<string, Row>()
  for (const held of heldStreams) {
    if (held.store === onRedis && !redisThere) continue
    rows.set(held.name, await measure(held, core))
  }
  const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`
  const phaseCells = ({ turns, polite: { times, failed } }: Phase): string[] => [
    formatMs(turns.longestCpuMs),
    formatMs(times.p99) + (failed > 0 ? `, ${failed} failed` : ''),
  ]
  const printed = heldStreams.flatMap(({ name, floor }) => {
    const row = rows.get(name)
    if (row === undefined) return []
    const { heapEach, rssEach, opening, idle, idleCpuMs, wake, stop, toldMs, comingBack, backMs } = row
    const floorHeap = floor === undefined ? undefined : rows.get(floor)?.heapEach
    return [
      [
        name,
        kib(heapEach),
        floorHeap === undefined ? '' : (heapEach / floorHeap).toPrecision(2),
        kib(rssEach),
        ...[opening, idle].flatMap(phaseCells),
        `${formatMs(idleCpuMs)}/s`,
        ...(wake === undefined ? ['', '', '', ''] : [...phaseCells(wake), formatMs(wake.cpuMs), formatMs(wake.readMs)]),
        ...[stop.longestCpuMs, stop.longestMs, toldMs].map(formatMs),
        ...phaseCells(comingBack),
        formatMs(backMs),
      ],
    ]
  })
  printTable(
    `${watcherCount} watchers, one process`,
    [
      'heap, each',
      '÷ floor',
      'resident, each',
      'opening: longest turn',
      'another client, p99',
      'idle: longest turn',
      'another client, p99',
      'idle: server CPU',
      'all woken: longest turn',
      'another client, p99',
      'server CPU in all',
      'all read after',
      'stop: longest turn',
      'on the clock',
      'all told after',
      'coming back: longest turn',
      'another client, p99',
      'all back after',
    ],
    printed,
  )
  const brokenBy = (breaks: (row: Row) => boolean): string[] =>
    heldStreams.flatMap(({ name, store }) => {
      const row = rows.get(name)
      return store !== undefined && row !== undefined && breaks(row) ? [name] : []
    })
  printVerdict(
    `no turn above ${promisedTurnMs} ms of CPU time while all are told of a stop`,
    brokenBy(({ stop }) => stop.longestCpuMs > promisedTurnMs),
  )
  printVerdict(
    `at most ${kib(promisedHeap)} of heap for each watcher`,
    brokenBy(({ heapEach }) => heapEach > promisedHeap),
  )
}

async function measure({ polite, store, start, streamsOf }: Held, core: number | undefined): Promise<Row> {
  await using stores = new AsyncDisposableStack()
  const storeUrl = (await store?.(stores)) ?? ''
  await using server = await start(storeUrl, core)
  using open = new DisposableStack()
  const orders = store === undefined ? [] : await startOrders(server)
  const told = new Countdown(watcherCount)
  const back = new Countdown(watcherCount)
  let openAgain: OpenStream | undefined
  /** Does as Countersign's own client: waits a little, and longer after each failure. */
  const comeBack = async (index: number): Promise<void> => {
    if (openAgain === undefined) throw new Error('a stream ended before the stop')
    for (let failures = 0; ; failures++) {
      await pause(backoffMs(failures))
      try {
        await openAgain(index, () => {})
        back.count()
        return
      } catch {}
    }
  }
  const openStream = streamsOf(server.port, orders, open)
  const watch = async (index: number): Promise<void> =>
    await openStream(index, () => {
      told.count()
      comeBack(index).catch(back.fail)
    })

  await openSome(watch, 0, firstWatchers)
  const before = await server.usage('memory')
  const opening = await besidePolite(server, polite, (during) =>
    during(() => openSome(watch, firstWatchers, watcherCount)),
  )
  const idleMs = store === undefined ? floorIdleMs : heartbeatsMs
  const idleCpuMs = await cpuAlone(server, idleMs)
  const idle = await besidePolite(server, polite, (during) => during(() => pause(idleMs)))
  const after = await server.usage('memory')

  const wake = storeUrl.startsWith('redis:') ? await wakeAll(server, polite, storeUrl) : undefined

  // The instance that takes over. It shares the core with the one that stops.
  await using successor = await start(storeUrl, core)
  openAgain = streamsOf(successor.port, orders, open)
  return await besidePolite(successor, polite, async (during) => {
    const stoppedAt = performance.now()
    const since = (): number => performance.now() - stoppedAt
    const stopped = server.stop()
    const toldAfter = told.done.then(since)
    const comingBack = await during(() => back.done)
    const backMs = since()
    const each = (bytes: number): number => bytes / (watcherCount - firstWatchers)
    return {
      heapEach: each(after.heapUsed - before.heapUsed),
      rssEach: each(after.rss - before.rss),
      opening,
      idle,
      idleCpuMs,
      ...(wake && { wake }),
      stop: await stopped,
      toldMs: await toldAfter,
      comingBack,
      backMs,
    }
  })
}

/** CPU time of a server a second, ms, while nobody calls. */
async function cpuAlone(server: ServerProcess, forMs: number): Promise<number> {
  await server.usage('still')
  // For what the last calls left to do.
  await pause(500)
  const startedAt = performance.now()
  const before = (await server.usage('cpu')).cpuMicros
  await pause(forMs)
  const cpuMs = ((await server.usage('cpu')).cpuMicros - before) / 1000
  return (cpuMs * 1000) / (performance.now() - startedAt)
}

/** Cuts the connection on which Redis tells of changes: any of them may have been missed, so every order is read again. */
async function wakeAll(server: ServerProcess, polite: PoliteCall, redisUrl: string): Promise<Wake> {
  const reads = async (): Promise<number> =>
    Number(/cmdstat_get:calls=(\d+)/.exec(await redisCli('-u', redisUrl, 'INFO', 'commandstats'))?.[1] ?? 0)
  let cpuMs = 0
  let readMs = 0
  const phase = await besidePolite(server, polite, (during) =>
    during(async () => {
      const [readBefore, cpuBefore] = [await reads(), (await server.usage('cpu')).cpuMicros]
      const cutAt = performance.now()
      const killed = Number(await redisCli('-u', redisUrl, 'CLIENT', 'KILL', 'TYPE', 'pubsub'))
      if (killed === 0) throw new Error('Redis has no connection that tells of changes')
      while ((await reads()) - readBefore < watcherCount) {
        if (performance.now() - cutAt > wakePatienceMs) throw new Error('not all watchers were woken')
        await pause(20)
      }
      readMs = performance.now() - cutAt
      cpuMs = ((await server.usage('cpu')).cpuMicros - cpuBefore) / 1000
    }),
  )
  return { ...phase, cpuMs, readMs }
}

/** Lets another client call the server, and measures `work` in phases. */
async function besidePolite<T>(
  server: ServerProcess,
  call: PoliteCall,
  work: (during: (doing: () => Promise<unknown>) => Promise<Phase>) => Promise<T>,
): Promise<T> {
  await using client = new PoliteClient(server.port, call)
  await pause(500)
  return await work(async (doing) => {
    client.restart()
    await server.usage('turns')
    await doing()
    const polite = await client.heard()
    return { turns: (await server.usage('turns')).turns, polite }
  })
}

/** Opens the streams of some watchers, a few at once. */
async function openSome(watch: (index: number) => Promise<void>, from: number, to: number): Promise<void> {
  let next = from
  const worker = async (): Promise<void> => {
    while (next < to) await watch(next++)
  }
  await Promise.all(Array.from({ length: openingAtOnce }, worker))
}

/** Resolves once something has happened so many times. */
class Countdown {
  readonly done: Promise<void>
  readonly fail: (error: unknown) => void
  readonly #resolve: () => void
  #left: number

  constructor(count: number) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.done = promise
    this.fail = reject
    this.#resolve = resolve
    this.#left = count
    // A failure is told to whoever waits later.
    promise.catch(() => {})
  }

  count(): void {
    if (--this.#left === 0) this.#resolve()
  }
}

async function inSqliteFile(open: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  open.defer(() => rm(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'store.db')}`
}

async function onRedis(open: AsyncDisposableStack): Promise<string> {
  return open.use(await RedisServer.start()).url
}

const startService = async (store: string, core: number | undefined): Promise<ServerProcess> =>
  await startCountersign(store, { core, orderTtlSeconds })

/** Streams of gRPC, many to a connection. */
function grpcStreams(port: number, open: DisposableStack, path: string, messageOf: (index: number) => Uint8Array) {
  const connectionOf = sharedConnections(port, open)
  return async (index: number, onEnd: () => void): Promise<void> =>
    await connectionOf(index).stream(path, messageOf(index), onEnd)
}

/** Streams of HTTP/1.1, each on a connection of its own. */
function http1Streams(port: number, open: DisposableStack, requestOf: (index: number) => Http1Request): OpenStream {
  return async (index, onEnd) => {
    const { path, headers } = requestOf(index)
    await open.use(await Http1Connection.open(port)).stream(path, headers, onEnd)
  }
}

interface Http1Request {
  readonly path: string
  readonly headers: string
}

const watchGrpc: Held['streamsOf'] = (port, orders, open) =>
  grpcStreams(port, open, pathOf(watchOrder), (index) =>
    toBinary(watchOrder.input, create(watchOrder.input, orders[index] ?? {})),
  )

const shared = `${streamsPerConnection} to a connection`
const each = 'a connection each'
const bareHttp2 = `floor: bare node:http2, ${shared}`
const connectNode = `floor: bare connect-node, gRPC, ${shared}`
const bareHttp1 = `floor: bare node:http, ${each}`

const heldStreams: readonly Held[] = [
  {
    name: bareHttp2,
    polite: 'bare http2',
    start: (_store, core) => startFloor('http2', 0, core),
    streamsOf: (port, _orders, open) => grpcStreams(port, open, '/stream', () => Buffer.alloc(0)),
  },
  {
    name: connectNode,
    polite: 'nonce by gRPC',
    start: (_store, core) => startConnectNodeFloor(core),
    streamsOf: watchGrpc,
  },
  {
    name: `gRPC, SQLite, ${shared}`,
    polite: 'nonce',
    floor: connectNode,
    store: inSqliteFile,
    start: startService,
    streamsOf: watchGrpc,
  },
  {
    name: `gRPC, Redis, ${shared}`,
    polite: 'nonce',
    floor: connectNode,
    store: onRedis,
    start: startService,
    streamsOf: watchGrpc,
  },
  {
    name: bareHttp1,
    polite: 'bare http',
    start: (_store, core) => startFloor('http', 0, core),
    streamsOf: (port, _orders, open) => http1Streams(port, open, () => ({ path: '/stream', headers: '' })),
  },
  {
    name: `server-sent events, SQLite, ${each}`,
    polite: 'nonce',
    floor: bareHttp1,
    store: inSqliteFile,
    start: startService,
    streamsOf: (port, orders, open) =>
      http1Streams(port, open, (index) => {
        const { orderId, desktopToken } = orders[index] as WatchedOrder
        return {
          path: `/api/auth/cross-device/events?orderId=${orderId}`,
          headers: `authorization: Bearer ${desktopToken}\r\n`,
        }
      }),
  },
]

interface WatchedOrder {
  readonly orderId: string
  readonly desktopToken: string
}

/** One for each watcher. */
async function startOrders({ port }: ServerProcess): Promise<WatchedOrder[]> {
  using connections = new Http1Pool(port)
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
