import { readFileSync } from 'node:fs'
import { ascending, inFlight, median, type Times, timesOf } from './harness.ts'
import type { Usage } from './probe.ts'
import { loadCore, type ServerProcess } from './servers.ts'

/** One of several that are measured by turns, each in a server process of its own or in one that it shares with others. */
export interface Contestant {
  readonly name: string
  readonly server: ServerProcess
  /** Makes one call; `worker` says which of those in flight it is. */
  readonly call: (worker: number) => Promise<unknown>
}

/** One turn. */
interface Turn {
  readonly perSecond: number
  /** CPU time of the server for one call, microseconds. */
  readonly cpuMicros: number
  /** See {@link besideScript}: to compile JavaScript, and to collect garbage. */
  readonly besideScript: number
  /** 99th percentile of the time of one call, ms. */
  readonly p99: number
  /** Share of the turn in which the core of the load was busy, with whatever; NaN where it cannot be told. */
  readonly loadBusy: number
}

/** Stands for a round, in which some or all contestants have had a turn. */
type Round = symbol

/** What several turns of one contestant came to. */
export class Tally {
  readonly #turns = new Map<Round, Turn>()
  readonly #times: number[] = []

  add(round: Round, turn: Turn, times: readonly number[]): void {
    this.#turns.set(round, turn)
    for (const time of times) this.#times.push(time)
  }

  /** The median of the turns. */
  get perSecond(): number {
    return this.#median(({ perSecond }) => perSecond)
  }

  /** The median of the turns, microseconds. */
  get cpuMicros(): number {
    return this.#median(({ cpuMicros }) => cpuMicros)
  }

  get loadBusy(): number {
    return this.#median(({ loadBusy }) => loadBusy)
  }

  /** Of all calls of all turns. */
  get times(): Times {
    return timesOf(this.#times)
  }

  /** How many times the rate of another this is: the median of the ratios within a round. */
  rateOver(other: Tally): number {
    return this.#medianOver(other, (mine, theirs) => mine.perSecond / theirs.perSecond)
  }

  /**
   * The most that {@link rateOver} may be in truth: the upper end of the interval that contains the median of all rounds there could be,
   * with a probability of 95 %, whatever their distribution (that of a binomial count, taken as normal).
   */
  rateAtMostOver(other: Tally): number {
    const ratios = this.#ratiosTo(other, (mine, theirs) => mine.perSecond / theirs.perSecond).toSorted(ascending)
    const rank = Math.ceil(ratios.length / 2 + 0.98 * Math.sqrt(ratios.length))
    return ratios[Math.min(rank, ratios.length) - 1] ?? Number.NaN
  }

  /** CPU time of another's server for a call by that of this one's: the median of the ratios within a round. Below 1 if this takes more. */
  cpuUnder(other: Tally): number {
    return this.#medianOver(other, (mine, theirs) => theirs.cpuMicros / mine.cpuMicros)
  }

  /**
   * This one's 99th percentile by that of another: the median of the ratios within a round. That of all turns together would be of
   * one or two pauses of the machine, each of which all calls in flight have to wait for.
   */
  p99Over(other: Tally): number {
    return this.#medianOver(other, (mine, theirs) => mine.p99 / theirs.p99)
  }

  #median(of: (turn: Turn) => number): number {
    return median([...this.#turns.values()].map(of))
  }

  #medianOver(other: Tally, ratio: (mine: Turn, theirs: Turn) => number): number {
    return median(this.#ratiosTo(other, ratio))
  }

  /** Of the rounds in which both had a turn. */
  #ratiosTo(other: Tally, ratio: (mine: Turn, theirs: Turn) => number): number[] {
    return [...this.#turns].flatMap(([round, mine]) => {
      const theirs = other.#turns.get(round)
      return theirs === undefined ? [] : [ratio(mine, theirs)]
    })
  }
}

/**
 * How long each goes on before its turn counts, as a share of the turn. The core's caches are full of what others left there, which
 * costs those most that have most code, and a server at work is not interrupted by others at every moment.
 */
const leadIn = 0.5

/** How much is measured. */
export interface TurnPlan {
  readonly inFlight: number
  /**
   * How many are in flight before a turn counts: as many as there are connections, so that each is used, and none ends because it was
   * idle. What is measured with few in flight stays as warm as with many.
   */
  readonly inFlightBefore: number
  readonly rounds: number
  readonly turnMs: number
}

/**
 * Lets each have a turn in every round, every other round backwards, so that whatever else the machine is at hits all alike. Adds
 * what they come to, by their names, to `tallies`.
 */
export async function takeTurns(
  contestants: readonly Contestant[],
  plan: TurnPlan,
  tallies: Map<string, Tally>,
): Promise<void> {
  for (const { name } of contestants) if (!tallies.has(name)) tallies.set(name, new Tally())
  for (let round = 0; round < plan.rounds; round++) {
    const mark = Symbol()
    for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
      const times: number[] = []
      await takeTurn(contestant, plan.inFlightBefore, plan.turnMs * leadIn, [])
      const turn = await takeTurn(contestant, plan.inFlight, plan.turnMs, times)
      tallies.get(contestant.name)?.add(mark, turn, times)
    }
  }
}

/** Turns in which each is called before it is measured, if nobody waits until it is warm. */
const briefWarmUpTurns = 4
/**
 * A server is warm once it has compiled, and collected garbage, for less than this share of its time in so many turns in a row. To
 * collect garbage takes up to 2 % of it. After three quiet turns, compilers have been seen to come back.
 */
export const warmBelow = 0.03
const warmAfterTurns = 6
/** No server is waited for any longer. */
const mostWarmUpTurns = 50

/**
 * Calls each for a while, so that their code is compiled. They take short turns, as when they are measured. With `untilWarm`, all go on
 * while one still compiles: for a server with more code than its floor that takes longer, and those that wait would lose compiled code.
 */
export async function warmUp(
  contestants: readonly Contestant[],
  concurrency: number,
  turnMs: number,
  untilWarm = false,
): Promise<void> {
  const warm = new Set<Contestant>()
  const quietTurns = new Map<Contestant, number>()
  const most = untilWarm ? mostWarmUpTurns : briefWarmUpTurns
  for (let turn = 0; turn < most && warm.size < contestants.length; turn++) {
    for (const contestant of contestants) {
      const { besideScript } = await takeTurn(contestant, concurrency, turnMs, [])
      const quiet = besideScript < warmBelow ? (quietTurns.get(contestant) ?? 0) + 1 : 0
      quietTurns.set(contestant, quiet)
      if (quiet >= warmAfterTurns) warm.add(contestant)
    }
  }
}

async function takeTurn({ server, call }: Contestant, concurrency: number, ms: number, times: number[]): Promise<Turn> {
  const before = await server.usage('cpu')
  const loadBefore = loadTicks()
  const startedAt = performance.now()
  await inFlight(concurrency, call)(startedAt + ms, times)
  const elapsedMs = performance.now() - startedAt
  const load = loadTicks()
  const after = await server.usage('cpu')
  const cpuMicros = after.cpuMicros - before.cpuMicros
  return {
    perSecond: (times.length * 1000) / elapsedMs,
    cpuMicros: cpuMicros / times.length,
    besideScript: besideScript(before, after),
    p99: times.length === 0 ? Number.NaN : timesOf(times).p99,
    loadBusy: (load.busy - loadBefore.busy) / (load.all - loadBefore.all),
  }
}

/** CPU time that was used, and the part of it in JavaScript. */
type CpuUsage = Pick<Usage, 'cpuMicros' | 'scriptMicros'>

/** The share of a server's CPU time between two moments that other threads took than those that run JavaScript. */
export function besideScript(before: CpuUsage, after: CpuUsage): number {
  return 1 - (after.scriptMicros - before.scriptMicros) / (after.cpuMicros - before.cpuMicros)
}

/** How long the core of the load was busy since the machine started, in the system's ticks. */
function loadTicks(): { readonly busy: number; readonly all: number } {
  const core = loadCore()
  const stat = core === undefined ? '' : readFileSync('/proc/stat', 'utf8')
  const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(stat)?.[1] ?? ''
  // user, nice, system, idle, iowait, irq, softirq, steal; those after are in the first two already.
  const ticks = line.split(' ').map(Number).slice(0, 8)
  const all = ticks.reduce((sum, tick) => sum + tick, 0)
  return { all, busy: all - (ticks[3] ?? NaN) - (ticks[4] ?? NaN) }
}
