import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { create, toBinary } from '@bufbuild/protobuf'
import { createClient } from 'redis'
import { OrderKind, OrderService, OrderStatus } from '../gen/server/countersign/v1/order_service_pb.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { GrpcConnection, pathOf, streamsPerConnection } from './grpc.ts'
import { formatMs, printTable, printVerdict, type Scale, timesOf } from './harness.ts'
import { Http1Connection } from './http1.ts'
import { jsonOf, rpc } from './rpc.ts'
import { hasRedis, type ServerProcess, startCountersign, startRelay } from './servers.ts'
import { makeWallets } from './wallets.ts'

const { startOrder, claimOrder, getOrderChallenge, approveOrder, watchOrder } = OrderService.method
const orderCounts = { whole: 300, short: 40 }
const concurrency = 4
/** Approvals and floor take turns in slices of this many, so that noise hits both alike. */
const slice = 20
/** What the project promises for the 99th percentile. */
const promiseMs = 50
/** The same against two bare relays, from the answer to the approval. */
const promisedRatio = 3

/** Watching orders: how soon a watcher hears of an approval. */
export async function benchWatch({ short }: Scale): Promise<void> {
  const orderCount = short ? orderCounts.short : orderCounts.whole
  if (hasRedis()) await benchTwoInstances(orderCount)
  await benchOneInstance(orderCount)
}

/** The watcher is on one instance, the approval arrives at another. */
async function benchTwoInstances(orderCount: number): Promise<void> {
  await using redis = await RedisServer.start()
  await using watching = await startCountersign(redis.url)
  await using approving = await startCountersign(redis.url)
  await using publishing = await PublishFloor.start(redis.url)
  await using relaying = await RelayFloor.start(redis.url)
  const published: Timed[] = []
  const relayed: Timed[] = []
  const approvals = await approveAll(orderCount, watching, approving, async () => {
    published.push(...(await eachOf(slice, () => publishing.publish())))
    relayed.push(...(await eachOf(slice, (_index, worker) => relaying.publish(worker))))
  })
  printTimed(
    `An approval reaches a watcher on another instance through Redis, ${orderCount} orders, ${concurrency} at once`,
    approvals,
    [
      { name: 'SPUBLISH to SSUBSCRIBE, bare node-redis', timed: published },
      { name: 'post to stream, two bare relays', timed: relayed },
    ],
  )
  const toEvent = (timed: readonly Timed[], from: 'sentAt' | 'answeredAt'): number =>
    timesOf(timed.map((one) => one.eventAt - one[from])).p99
  const p99Ratio = toEvent(approvals, 'answeredAt') / toEvent(relayed, 'sentAt')
  printVerdict(
    `p99 from the answer to an approval to its event on another instance at most ${promisedRatio} times that of the relays`,
    p99Ratio <= promisedRatio ? [] : [`${p99Ratio.toFixed(2)} times`],
  )
  const late = approvals.filter(({ sentAt, eventAt }) => eventAt - sentAt > promiseMs).length
  printVerdict(
    `an event within ${promiseMs} ms of the sending of the approval at p99`,
    late <= approvals.length / 100 ? [] : [`${late} of ${approvals.length} came later`],
  )
}

async function benchOneInstance(orderCount: number): Promise<void> {
  await using service = await startCountersign('sqlite::memory:')
  printTimed('The same within one instance, in memory', await approveAll(orderCount, service, service, async () => {}))
}

/** When what happened, by performance.now. */
interface Timed {
  readonly sentAt: number
  readonly answeredAt: number
  readonly eventAt: number
}

/**
 * Has orders watched on one instance and approves them on another; `between` runs after every slice. A first slice warms
 * up and does not count.
 */
async function approveAll(
  orderCount: number,
  watching: ServerProcess,
  approving: ServerProcess,
  between: () => Promise<void>,
): Promise<Timed[]> {
  using connections = new DisposableStack()
  const allCount = slice + orderCount
  const watchers = Array.from({ length: Math.ceil(allCount / streamsPerConnection) }, () =>
    connections.use(new GrpcConnection(watching.port)),
  )
  const desktop = connections.use(await Http1Connection.open(watching.port))
  const phones = await Http1Connection.openAll(approving.port, concurrency)
  for (const phone of phones) connections.use(phone)

  const orders: { readonly body: string; readonly approved: Promise<number> }[] = []
  for (const [index, wallet] of makeWallets(allCount).entries()) {
    const { orderId, claimToken, desktopToken } = await rpc(desktop, startOrder, { kind: OrderKind.LOGIN })
    const phone = phones[0] as Http1Connection
    const { challengeToken } = await rpc(phone, claimOrder, { orderId, claimToken })
    const { message } = await rpc(phone, getOrderChallenge, { orderId, challengeToken })
    const watched = watch(watchers[index % watchers.length] as GrpcConnection, orderId, desktopToken)
    await watched.started
    const proof = wallet.prove(message)
    orders.push({ body: jsonOf(approveOrder, { orderId, challengeToken, proof }), approved: watched.approved })
  }

  const approvals: Timed[] = []
  for (let start = 0; start < allCount; start += slice) {
    const some = await eachOf(slice, async (index, worker) => {
      const { body, approved } = orders[start + index] as (typeof orders)[number]
      const sentAt = performance.now()
      await (phones[worker] as Http1Connection).post(pathOf(approveOrder), 'application/json', body)
      const answeredAt = performance.now()
      return { sentAt, answeredAt, eventAt: await approved }
    })
    if (start === 0) continue
    approvals.push(...some)
    await between()
  }
  return approvals
}

/** Watches an order that waits for its user. `approved` resolves with the time at which the watcher hears of that. */
function watch(connection: GrpcConnection, orderId: string, desktopToken: string) {
  const started = Promise.withResolvers<void>()
  const approved = Promise.withResolvers<number>()
  const request = toBinary(watchOrder.input, create(watchOrder.input, { orderId, desktopToken }))
  connection.watch(watchOrder, request, ({ status, heartbeat }) => {
    const now = performance.now()
    if (heartbeat) return
    if (status === OrderStatus.WAITING_USER) started.resolve()
    else if (status === OrderStatus.APPROVED) approved.resolve(now)
    else approved.reject(new Error(`the order went to status ${status}`))
  })
  return { started: started.promise, approved: approved.promise }
}

/** Runs work so many times, a few at once, and returns what came of it. */
async function eachOf<T>(count: number, work: (index: number, worker: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const run = async (worker: number): Promise<void> => {
    while (next < count) results.push(await work(next++, worker))
  }
  await Promise.all(Array.from({ length: concurrency }, (_, worker) => run(worker)))
  return results
}

/** Messages that were sent and are waited for. */
class Mailbox {
  readonly #waiting = new Map<string, (receivedAt: number) => void>()
  #sent = 0

  /** Has `send` send a message and waits for it to be {@link receive}d. */
  async time(send: (message: string) => Promise<unknown>): Promise<Timed> {
    const message = String(this.#sent++)
    const received = new Promise<number>((resolve) => this.#waiting.set(message, resolve))
    const sentAt = performance.now()
    await send(message)
    const answeredAt = performance.now()
    return { sentAt, answeredAt, eventAt: await received }
  }

  receive(message: string): void {
    this.#waiting.get(message)?.(performance.now())
    this.#waiting.delete(message)
  }
}

/** What any wake-up through Redis takes: a message published on one connection and received on another. */
class PublishFloor implements AsyncDisposable {
  readonly #mailbox = new Mailbox()
  readonly #publisher: ReturnType<typeof createClient>
  readonly #subscriber: ReturnType<typeof createClient>

  private constructor(url: string) {
    this.#publisher = createClient({ url })
    this.#subscriber = createClient({ url })
  }

  static async start(url: string): Promise<PublishFloor> {
    const floor = new PublishFloor(url)
    await Promise.all([floor.#publisher.connect(), floor.#subscriber.connect()])
    await floor.#subscriber.sSubscribe('floor', (message) => floor.#mailbox.receive(message))
    return floor
  }

  async publish(): Promise<Timed> {
    return await this.#mailbox.time((message) => this.#publisher.sPublish('floor', message))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#publisher.destroy()
    this.#subscriber.destroy()
  }
}

/** What the way through as many processes as Countersign's takes: client, instance, Redis, other instance, client. */
class RelayFloor implements AsyncDisposable {
  readonly #mailbox = new Mailbox()
  readonly #open = new AsyncDisposableStack()
  readonly #posting: readonly Http1Connection[]

  private constructor(posting: readonly Http1Connection[]) {
    this.#posting = posting
  }

  static async start(url: string): Promise<RelayFloor> {
    const streaming = await startRelay(url)
    const publishing = await startRelay(url)
    const floor = new RelayFloor(await Http1Connection.openAll(publishing.port, concurrency))
    const request = get({ host: '127.0.0.1', port: streaming.port })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const lines = createInterface(response).on('line', (message) => floor.#mailbox.receive(message))
    // The end of the stream is the end of the measurement.
    lines.on('error', () => {})
    floor.#open.use(streaming)
    floor.#open.use(publishing)
    floor.#open.defer(() => void request.destroy())
    for (const connection of floor.#posting) floor.#open.use(connection)
    return floor
  }

  async publish(worker: number): Promise<Timed> {
    const connection = this.#posting[worker] as Http1Connection
    return await this.#mailbox.time((message) => connection.post('/', 'text/plain', message))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}

/** Prints how long what took; ratios are to the last of the floors. */
function printTimed(
  title: string,
  approvals: readonly Timed[],
  floors: readonly { readonly name: string; readonly timed: readonly Timed[] }[] = [],
): void {
  const toEvent = ({ sentAt, eventAt }: Timed): number => eventAt - sentAt
  const toAnswer = ({ sentAt, answeredAt }: Timed): number => answeredAt - sentAt
  const row = (name: string, ms: readonly number[], floor?: readonly number[]): string[] => {
    const { p50, p99, max } = timesOf(ms)
    const compared = floor && timesOf(floor)
    const ratios = compared ? [p50 / compared.p50, p99 / compared.p99].map((ratio) => ratio.toPrecision(2)) : ['', '']
    return [name, formatMs(p50), formatMs(p99), formatMs(max), ...(floors.length > 0 ? ratios : [])]
  }
  const floor = floors.at(-1)?.timed
  printTable(
    title,
    ['p50', 'p99', 'max', ...(floor ? ['p50 ÷ floor', 'p99 ÷ floor'] : [])],
    [
      ...floors.map(({ name, timed }) => row(`floor: ${name}`, timed.map(toEvent))),
      row('approval sent to answer', approvals.map(toAnswer), floor?.map(toAnswer)),
      row('approval sent to event', approvals.map(toEvent), floor?.map(toEvent)),
      row(
        'answer to event (negative: event first)',
        approvals.map(({ answeredAt, eventAt }) => eventAt - answeredAt),
      ),
    ],
  )
}
