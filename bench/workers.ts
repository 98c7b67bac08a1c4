import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { pathOf } from './grpc.ts'
import { figure, inFlight, median, printTable, printVerdict } from './harness.ts'
import { Http1Pool } from './http1.ts'
import type { Usage } from './probe.ts'
import type { Cell } from './results.ts'
import { hasRedis, type ServerProcess, startCountersign } from './servers.ts'
import { besideScript, warmBelow } from './turns.ts'
import { makeWallets, type Wallet } from './wallets.ts'

/** Processes that make the load, so that one of them is not the limit. */
const loadProcesses = 2
/** Calls in flight for each process that serves them. */
const inFlightEach = 64

/** Each process compiles its code for itself, so two need twice as many calls until they are warm, and one of them may be late. */
const leastWarmUpRounds = 12
/** Both are warm once they have been quiet in so many rounds in a row. */
const warmAfterRounds = 10
/** No server is waited for any longer. */
const mostWarmUpRounds = 70
/** Short and many: whatever else the machine is at lasts for seconds, and hits both alike. */
const rounds = 48
const roundMs = 250

/** The promise: server CPU for each call with two workers, at most so many times that of one process. */
const mostCpuRatio = 1.1

/** The kinds of calls that are measured. */
const kinds = ['session check (Connect JSON)', 'whole sign-in (REST)'] as const

type Kind = (typeof kinds)[number]

/** What a load process is told to do. */
interface Load {
  readonly port: number
  readonly kind: Kind
  /** Calls in flight. */
  readonly inFlight: number
}

/** One of the services that are compared. */
interface Contestant {
  readonly name: string
  /** Its servers, each of which is asked by as many load processes. */
  readonly servers: readonly ServerProcess[]
  /** Number of its processes that serve calls. */
  readonly serving: number
}

/** What was measured of one server and one kind. */
interface Tally {
  readonly rates: number[]
  readonly cpuMicros: number[]
}

/**
 * One process against two workers, on the same Redis, over HTTP/1.1. All processes of a server count: the one that starts the workers
 * accepts the connections. With two cores, load, Redis and servers share them, so two workers cannot show twice the rate there. Nor
 * has one process to share its core's caches with the load as each of two has to, whether they are workers or not. What workers cost
 * themselves shows beside two processes that know nothing of each other.
 *
 * Each process that serves calls has as many in flight. The more a process has, the more it reads and writes at a time, and the less
 * CPU each takes: with as many in flight for both workers together, what is compared would be how much they do at a time.
 */
export async function benchWorkers(): Promise<void> {
  if (!hasRedis()) return
  await using redis = await RedisServer.start()
  await using alone = await startCountersign(redis.url)
  await using other = await startCountersign(redis.url)
  await using two = await startCountersign(redis.url, { workers: 2 })
  const loads = Array.from({ length: loadProcesses }, () => fork(fileURLToPath(import.meta.url)))
  try {
    const contestants: readonly Contestant[] = [
      { name: '1 process', servers: [alone], serving: 1 },
      { name: '2 processes', servers: [alone, other], serving: 2 },
      { name: '2 workers', servers: [two], serving: 2 },
    ]
    const rows: Cell[][] = []
    const broken: string[] = []
    const missed: string[] = []
    for (const kind of kinds) {
      const [single, pair, workers] = (await measure(kind, contestants, loads)) as [Tally, Tally, Tally]
      const ratios = (tally: Tally, others: readonly Tally[]): Cell[] =>
        others.flatMap((other): Cell[] =>
          tally === other || tally === single
            ? ['', '']
            : [figure(ratio(tally, other, 'rates'), 'ratio'), figure(ratio(tally, other, 'cpuMicros'), 'ratio')],
        )
      for (const [index, tally] of [single, pair, workers].entries()) {
        const rate = figure(median(tally.rates), 'per second')
        const cpu = figure(median(tally.cpuMicros) / 1000, 'ms')
        rows.push([`${kind}, ${contestants[index]?.name}`, rate, cpu, ...ratios(tally, [single, pair])])
      }
      const [byPair, bySingle] = [ratio(workers, pair, 'cpuMicros'), ratio(workers, single, 'cpuMicros')]
      if (byPair > mostCpuRatio) broken.push(`${kind} (${byPair.toFixed(2)})`)
      if (bySingle > mostCpuRatio) missed.push(`${kind} (${bySingle.toFixed(2)})`)
    }
    const title = `Workers, Redis, ${inFlightEach} in flight for each, from ${loadProcesses} processes, which share the cores with the servers`
    const titles = [
      'calls/s',
      'server CPU',
      ...['1 process', '2 processes'].flatMap((one) => [`rate ÷ ${one}`, `CPU ÷ ${one}`]),
    ]
    printTable(title, titles, rows)
    printVerdict(
      `server CPU for each call with two workers at most ${mostCpuRatio} times that of two processes`,
      broken,
    )
    printVerdict(
      `server CPU for each call with two workers at most ${mostCpuRatio} times that of one process`,
      missed,
      '',
      true,
    )
  } finally {
    for (const load of loads) load.kill()
  }
}

/** One by another: the median of the ratios within a round. */
function ratio(tally: Tally, other: Tally, of: keyof Tally): number {
  return median(tally[of].map((value, round) => value / (other[of][round] ?? Number.NaN)))
}

async function measure(
  kind: Kind,
  contestants: readonly Contestant[],
  loads: readonly ReturnType<typeof fork>[],
): Promise<Tally[]> {
  let quietRounds = 0
  for (let round = 0; round < mostWarmUpRounds && quietRounds < warmAfterRounds; round++) {
    let isQuiet = round >= leastWarmUpRounds
    for (const contestant of contestants) isQuiet = (await takeRound(kind, contestant, loads)).isQuiet && isQuiet
    quietRounds = isQuiet ? quietRounds + 1 : 0
  }
  const tallies: Tally[] = contestants.map(() => ({ rates: [], cpuMicros: [] }))
  for (let round = 0; round < rounds; round++) {
    const order = [...contestants.entries()]
    for (const [index, contestant] of round % 2 === 0 ? order : order.toReversed()) {
      const { rate, cpuMicros } = await takeRound(kind, contestant, loads)
      tallies[index]?.rates.push(rate)
      tallies[index]?.cpuMicros.push(cpuMicros)
    }
  }
  return tallies
}

/** Calls a server for a while. */
async function takeRound(
  kind: Kind,
  { servers, serving }: Contestant,
  loads: readonly ReturnType<typeof fork>[],
): Promise<{ readonly rate: number; readonly cpuMicros: number; readonly isQuiet: boolean }> {
  const before = await usageOf(servers)
  const startedAt = performance.now()
  const counts = await Promise.all(
    loads.map(async (load, index) => {
      const { port } = servers[index % servers.length] as ServerProcess
      const answer = once(load, 'message') as Promise<[number | string]>
      load.send({ port, kind, inFlight: (serving * inFlightEach) / loadProcesses } satisfies Load)
      const [count] = await answer
      if (typeof count === 'string') throw new Error(count)
      return count
    }),
  )
  const calls = counts.reduce((sum, count) => sum + count, 0)
  const seconds = (performance.now() - startedAt) / 1000
  const after = await usageOf(servers)
  return {
    rate: calls / seconds,
    cpuMicros: (after.cpuMicros - before.cpuMicros) / calls,
    isQuiet: besideScript(before, after) < warmBelow,
  }
}

/** What servers have used together. */
async function usageOf(servers: readonly ServerProcess[]): Promise<Pick<Usage, 'cpuMicros' | 'scriptMicros'>> {
  const all = await Promise.all(servers.map((server) => server.usage('cpu')))
  const sum = (of: 'cpuMicros' | 'scriptMicros'): number => all.reduce((total, usage) => total + usage[of], 0)
  return { cpuMicros: sum('cpuMicros'), scriptMicros: sum('scriptMicros') }
}

/** The connections to each port, kept from round to round. */
const pools = new Map<number, Http1Pool>()
/** The session that is checked at each port. */
const tokens = new Map<number, string>()

/** Makes the load of one round. Resolves with the number of calls. */
async function makeLoad({ port, kind, inFlight: concurrency }: Load, wallets: readonly Wallet[]): Promise<number> {
  const connections = pools.get(port) ?? new Http1Pool(port)
  pools.set(port, connections)
  let signIns = 0
  const signIn = async (worker: number): Promise<string> => {
    const connection = connections.of(worker)
    const { nonceId, message } = await connection.postJson('/api/auth/wallet/nonce', {})
    const wallet = wallets[signIns++ % wallets.length] as Wallet
    return (await connection.postJson('/api/auth/wallet/verify', { nonceId, ...wallet.prove(message) })).token
  }
  const token = tokens.get(port) ?? (await signIn(0))
  tokens.set(port, token)
  const bearer = `authorization: Bearer ${token}\r\n`
  const sessionPath = pathOf(SessionService.method.getCurrentSession)
  const check = (worker: number): Promise<unknown> =>
    connections.of(worker).post(sessionPath, 'application/json', '{}', bearer)
  const times: number[] = []
  await inFlight(concurrency, kind === kinds[0] ? check : signIn)(performance.now() + roundMs, times)
  return times.length
}

// Started by benchWorkers as a process of its own.
if (process.argv[1] === fileURLToPath(import.meta.url) && process.send !== undefined) {
  const wallets = makeWallets(256)
  process.on('message', (load: Load) => {
    makeLoad(load, wallets).then(
      (count) => process.send?.(count),
      (error: unknown) => process.send?.(String(error)),
    )
  })
}
