import { setTimeout as pause } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { OrderKind, OrderService } from '../gen/server/countersign/v1/order_service_pb.ts'
import { openPostgresStore } from '../src/store/postgres/store.ts'
import type { PostgresServer } from '../test/support/postgres-server.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { nextWallet } from './clients.ts'
import { GrpcConnection } from './grpc.ts'
import { Http1Pool, rpc } from './http1.ts'
import type { Ratios } from './ratios.ts'
import { startCountersign, startPostgres } from './servers.ts'
import { formatMs, median, percentile, printTable } from './turns.ts'

const { startOrder, claimOrder, getOrderChallenge, approveOrder, finalizeOrder, watchOrder } = OrderService.method
/** Each order has four steps that wake its watcher, so these are 100 steps a second. */
const ordersPerSecond = 25
/** Connections for the measure of the ceiling, and how many calls are in flight on them. */
const atOnce = 32
const life = { ttlMs: 600_000 }

/** The time from a step on one instance to its event on another, at 100 steps a second. */
export async function measureWakeUps(core: number | undefined, short: boolean): Promise<Ratios> {
  await using redis = await RedisServer.start()
  await using postgres = await startPostgres()
  const seconds = short ? 1 : 20
  const onRedis = await wakeUps(redis.url, core, seconds)
  const onPostgres = await wakeUps(postgres.url(), core, seconds)
  const row = (name: string, { times, cpuMicros }: WakeUps) => [
    name,
    formatMs(percentile(times, 0.5)),
    formatMs(percentile(times, 0.99)),
    formatMs(cpuMicros / 1000),
  ]
  printTable(
    'From a step on one instance to its event on another, at 100 steps a second',
    ['p50', 'p99', "listener's CPU, each"],
    [row('Redis', onRedis), row('PostgreSQL', onPostgres)],
  )
  return {
    'wake-up, PostgreSQL: p50 of Redis ÷ its p50': percentile(onRedis.times, 0.5) / percentile(onPostgres.times, 0.5),
    'wake-up, PostgreSQL: CPU of Redis ÷ its CPU, of the instance that listens':
      onRedis.cpuMicros / onPostgres.cpuMicros,
  }
}

interface WakeUps {
  /** From the call to the event, ms. */
  readonly times: readonly number[]
  /** CPU time of the listening instance for one step, microseconds. */
  readonly cpuMicros: number
}

async function wakeUps(store: string, core: number | undefined, seconds: number): Promise<WakeUps> {
  await using acting = await startCountersign(store, { core })
  await using listening = await startCountersign(store, { core })
  using calls = new Http1Pool(acting.port)
  using watching = new GrpcConnection(listening.port)
  const times: number[] = []
  /** Numbers of connections that are not in use. */
  const free: number[] = []
  let made = 0
  /** The steps of one order, each made once the event of the one before is there. */
  const complete = async (isMeasured: boolean): Promise<void> => {
    const number = free.pop() ?? made++
    const connection = calls.of(number)
    const { orderId, claimToken, desktopToken } = await rpc(connection, startOrder, { kind: OrderKind.LOGIN })
    let arrived = Promise.withResolvers<void>()
    const request = toBinary(watchOrder.input, create(watchOrder.input, { orderId, desktopToken }))
    watching.watch(watchOrder, request, ({ status }) => {
      if (status !== 0) arrived.resolve()
    })
    await arrived.promise
    const step = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
      arrived = Promise.withResolvers()
      const startedAt = performance.now()
      const event = arrived.promise.then(() => performance.now() - startedAt)
      const answer = await call()
      const time = await event
      if (isMeasured) times.push(time)
      return answer
    }
    const { challengeToken } = await step(() => rpc(connection, claimOrder, { orderId, claimToken }))
    const { message } = await step(() => rpc(connection, getOrderChallenge, { orderId, challengeToken }))
    const proof = nextWallet().prove(message)
    await step(() => rpc(connection, approveOrder, { orderId, challengeToken, proof }))
    await step(() => rpc(connection, finalizeOrder, { orderId, desktopToken }))
    free.push(number)
  }
  const orders = async (count: number, isMeasured: boolean): Promise<void> => {
    const going: Promise<void>[] = []
    const startedAt = performance.now()
    for (let order = 0; order < count; order++) {
      await pause(Math.max(0, startedAt + (order * 1000) / ordersPerSecond - performance.now()))
      going.push(complete(isMeasured))
    }
    await Promise.all(going)
  }
  await orders(ordersPerSecond * Math.min(seconds, 5), false)
  const before = (await listening.usage('cpu')).cpuMicros
  const count = ordersPerSecond * seconds
  await orders(count, true)
  return { times, cpuMicros: ((await listening.usage('cpu')).cpuMicros - before) / times.length }
}

/** How many steps a second a store in PostgreSQL does with a notification, and how many without. */
export async function measureNotify(short: boolean): Promise<Ratios> {
  await using postgres = await startPostgres()
  const store = await openPostgresStore(`${postgres.url()}?connections=${atOnce}`)
  const versions = Array.from({ length: atOnce }, () => 1)
  try {
    await Promise.all(versions.map((_, worker) => store.create(`${worker}`, '', life)))
    const rateOf = async (wake: boolean): Promise<number> => {
      const seconds = short ? 0.3 : 1
      const endsAt = performance.now() + 1000 * seconds
      let steps = 0
      const work = async (worker: number): Promise<void> => {
        for (; performance.now() < endsAt; steps++) {
          if (!(await store.compareAndSet(`${worker}`, versions[worker] as number, '', life, { wake })))
            throw new Error()
          versions[worker] = (versions[worker] as number) + 1
        }
      }
      await Promise.all(versions.map((_, worker) => work(worker)))
      return steps / seconds
    }
    const found: Record<string, number> = {}
    const rows: string[][] = []
    for (const delayMs of [0, 1, 2]) {
      await delayCommits(postgres, delayMs)
      await rateOf(true)
      const [plain, waking]: [number[], number[]] = [[], []]
      for (let turn = 0; turn < (short ? 1 : 5); turn++) {
        plain.push(await rateOf(false))
        waking.push(await rateOf(true))
      }
      const words = `${delayMs} ms more for each commit`
      found[`step with a notification, PostgreSQL, ${words}: its rate ÷ rate without`] = median(
        waking.map((rate, turn) => rate / (plain[turn] as number)),
      )
      rows.push([words, median(plain).toFixed(0), median(waking).toFixed(0)])
    }
    printTable(`Steps a second on PostgreSQL, ${atOnce} at once`, ['without a notification', 'with one'], rows)
    return found
  } finally {
    await store.close()
  }
}

/** Makes each commit longer, as a slower disk or a standby that is waited for does. */
export async function delayCommits(postgres: PostgresServer, delayMs: number): Promise<void> {
  await postgres.psql(`ALTER SYSTEM SET commit_delay = ${delayMs * 1000}`)
  await postgres.psql('ALTER SYSTEM SET commit_siblings = 0')
  await postgres.psql('SELECT pg_reload_conf()')
}
