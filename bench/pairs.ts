import { ascending, median } from './harness.ts'
import type { Load, Path, Round } from './paths.ts'
import type { ServerProcess } from './servers.ts'

/** One round on one server. */
interface Sample {
  readonly perSecond: number
  /** CPU time of the server for one call, microseconds. */
  readonly cpuMicros: number
}

/** A round of each of two, one right after the other. */
export interface Pair {
  readonly base: Sample
  readonly other: Sample
}

/** Measures one round of a path on a server. */
type Runner = () => Promise<Sample>

/** Connects a path to a server. Connections join `open`, which ends them. */
export async function runnerOf(path: Path, server: ServerProcess, open: DisposableStack): Promise<Runner> {
  const load: Load = await path.connect(server.port, open)
  return async () => {
    let cpuMicros = 0
    const { calls, ms }: Round = await load(async (work) => {
      const before = (await server.usage('cpu')).cpuMicros
      const startedAt = performance.now()
      const count = await work()
      const elapsed = performance.now() - startedAt
      cpuMicros = (await server.usage('cpu')).cpuMicros - before
      return { calls: count, ms: elapsed }
    })
    return { perSecond: (calls * 1000) / ms, cpuMicros: cpuMicros / calls }
  }
}

/** How often two are measured. */
export interface Rounds {
  /** Rounds before those that count. */
  readonly warmUpRounds: number
  readonly rounds: number
}

/** Measures two in turns, every other time in the other order. */
export async function inTurns(base: Runner, other: Runner, { warmUpRounds, rounds }: Rounds): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    const pair = await runPair(base, other, round % 2 === 1)
    if (round >= warmUpRounds) pairs.push(pair)
  }
  return pairs
}

async function runPair(base: Runner, other: Runner, otherFirst: boolean): Promise<Pair> {
  if (otherFirst) {
    const sample = await other()
    return { other: sample, base: await base() }
  }
  return { base: await base(), other: await other() }
}

/** The titles of {@link ratioCells}. */
export function ratioTitles(ratio: string): string[] {
  return [ratio, '95 %', 'min', 'max']
}

/** The median of ratios, the range that it lies in with a probability of 95 %, and the extremes. */
export function ratioCells(ratios: readonly number[]): string[] {
  const sorted = ratios.toSorted(ascending)
  // The median of all rounds there could be lies between these ranks with a probability of 95 %.
  const reach = 0.98 * Math.sqrt(sorted.length)
  const at = (rank: number): string => (sorted[Math.min(Math.max(rank, 0), sorted.length - 1)] ?? NaN).toFixed(3)
  const low = at(Math.floor(sorted.length / 2 - reach))
  const high = at(Math.ceil(sorted.length / 2 + reach))
  return [median(sorted).toFixed(3), `${low} to ${high}`, at(0), at(sorted.length - 1)]
}
