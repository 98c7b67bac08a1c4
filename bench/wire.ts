import { RedisServer } from '../test/support/redis-server.ts'
import { formatMs, median, printTable, printVerdict } from './harness.ts'
import { inTurns, type Pair, type Rounds, ratioCells, ratioTitles, runnerOf } from './pairs.ts'
import { type Path, sessionCheckConnect, sessionCheckGrpc, signInGrpc } from './paths.ts'
import { hasRedis, pin, type ServerProcess, startCountersign, startSignInFloor } from './servers.ts'

/** Two starts of one program can differ by more than what is measured. */
const starts = 3
/**
 * A warm-up long enough for thousands of calls: a server with more code than its floor is compiled later, and would look
 * slower than it is.
 */
const signInRounds = { warmUpRounds: 50, rounds: 20 }
const checkRounds = { warmUpRounds: 30, rounds: 20 }
/** What the project promises of both ratios. */
const promised = 0.7

/** What gRPC costs the server: a sign-in against the least that does one, a session check against Connect. */
export async function benchWire(): Promise<void> {
  const core = pin()
  const signIns: Row[] = []
  const sessionsAlone: Row[] = []
  const checks: Row[] = []
  const measure = async (storeName: string, store: string): Promise<void> => {
    const signInPairs: Pair[] = []
    const sessionAlonePairs: Pair[] = []
    const checkPairs: Pair[] = []
    for (let start = 0; start < starts; start++) {
      await using floor = await startSignInFloor(store, 'same result', core)
      await using sessionAlone = await startSignInFloor(store, 'session alone', core)
      await using service = await startCountersign(store, { core })
      signInPairs.push(...(await pairsOf([signInGrpc, floor], [signInGrpc, service], signInRounds)))
      sessionAlonePairs.push(...(await pairsOf([signInGrpc, sessionAlone], [signInGrpc, service], signInRounds)))
      checkPairs.push(...(await pairsOf([sessionCheckConnect, service], [sessionCheckGrpc, service], checkRounds)))
    }
    signIns.push({ name: storeName, pairs: signInPairs })
    sessionsAlone.push({ name: storeName, pairs: sessionAlonePairs })
    checks.push({ name: storeName, pairs: checkPairs })
  }
  await measure('SQLite in memory', 'sqlite::memory:')
  if (hasRedis()) {
    await using redis = await RedisServer.start()
    await measure('Redis', redis.url)
  }
  printRatios('Sign-in over gRPC: server CPU against the least with the same result', 'floor', signIns, promised)
  printRatios('Sign-in over gRPC: server CPU against the least that makes a session', 'floor', sessionsAlone)
  printRatios('Session check over gRPC: server CPU against Connect JSON', 'Connect', checks, promised)
}

type Measured = readonly [path: Path, server: ServerProcess]

async function pairsOf(base: Measured, other: Measured, rounds: Rounds): Promise<Pair[]> {
  using connections = new DisposableStack()
  return await inTurns(await runnerOf(...base, connections), await runnerOf(...other, connections), rounds)
}

interface Row {
  /** Name of the store. */
  readonly name: string
  readonly pairs: readonly Pair[]
}

function printRatios(title: string, baseName: string, rows: readonly Row[], atLeast?: number): void {
  const ratiosOf = (pairs: readonly Pair[]): number[] =>
    pairs.map(({ base, other }) => base.cpuMicros / other.cpuMicros)
  const cpu = (micros: readonly number[]): string => formatMs(median(micros) / 1000)
  printTable(
    title,
    [`${baseName} CPU`, 'gRPC CPU', ...ratioTitles(`${baseName} ÷ gRPC`)],
    rows.map(({ name, pairs }) => [
      name,
      cpu(pairs.map(({ base }) => base.cpuMicros)),
      cpu(pairs.map(({ other }) => other.cpuMicros)),
      ...ratioCells(ratiosOf(pairs)),
    ]),
  )
  if (atLeast === undefined) return
  const broken = rows.filter(({ pairs }) => median(ratiosOf(pairs)) < atLeast)
  printVerdict(
    `at least ${atLeast}`,
    broken.map(({ name }) => name),
  )
}
