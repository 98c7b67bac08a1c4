import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Cell,
  type Figure,
  formatFigure,
  markdownTable,
  recordTable,
  recordVerdict,
  type Unit,
} from './results.ts'

export { formatMs } from './results.ts'

/** Does one thing over and over until `endsAt` (by performance.now) and notes how long each time took, milliseconds. */
export type Load = (endsAt: number, times: number[]) => Promise<void>

/** Something to measure. */
export interface Subject {
  readonly name: string
  readonly load: Load
  /** Name of the subject that it is compared with. A floor has none. */
  readonly floor?: string
  /** CPU time that the server behind it has used so far, microseconds. */
  readonly cpuMicros?: () => Promise<number>
}

/** What was measured of a subject. */
export interface Measured {
  readonly name: string
  readonly perSecond: number
  readonly times: Times
  /** CPU time of the server for one time, microseconds. */
  readonly cpuMicros?: number
  /** Compared with the floor; absent for a floor. */
  readonly ratios?: { readonly rate: number; readonly p50: number; readonly p99: number }
}

/** How long something took, milliseconds. */
export interface Times {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** How much is measured. */
export interface Scale {
  /** Whether all is to be done in about a minute, which shows that it works and little else. */
  readonly short: boolean
  /** How often servers are started anew: two starts of one program can differ by more than what is measured. */
  readonly starts: number
  /** Turns of each at each start. */
  readonly rounds: number
  /** Turns after that, of those only whose ratio is promised: the more rounds, the less a ratio depends on what else the machine is at. */
  readonly closeRounds: number
  /** What lengths of turns and of warm-ups are multiplied with. */
  readonly turn: number
  readonly warmUp: number
  /** How many calls are in flight at a time. */
  readonly inFlight: readonly number[]
  /** Part of the names of the protocols and of the stores that are measured, in lower case; empty for all. */
  readonly protocol: string
  readonly store: string
}

/** Longest round of {@link compare} in a short run. */
const shortRoundMs = 50
const whole: Scale = {
  short: false,
  starts: 2,
  rounds: 8,
  closeRounds: 40,
  turn: 1,
  warmUp: 1,
  inFlight: [1, 16, 64],
  protocol: '',
  store: '',
}
const inShort: Scale = {
  ...whole,
  short: true,
  starts: 1,
  rounds: 1,
  closeRounds: 0,
  turn: 0.25,
  warmUp: 0.1,
  inFlight: [16],
}
let scale = whole

/** Sets how much is measured from now on; what `changes` leaves out is as usual. */
export function scaleTo(short: boolean, changes: Partial<Scale> = {}): Scale {
  scale = { ...(short ? inShort : whole), ...changes }
  return scale
}

/** Several at once, each of which starts anew as soon as it is done. `operation` is told which of them it is. */
export function inFlight(concurrency: number, operation: (worker: number) => Promise<unknown>): Load {
  return async (endsAt, times) => {
    const work = async (worker: number): Promise<void> => {
      for (let startedAt = performance.now(); startedAt < endsAt; ) {
        await operation(worker)
        const now = performance.now()
        times.push(now - startedAt)
        startedAt = now
      }
    }
    await Promise.all(Array.from({ length: concurrency }, (_, worker) => work(worker)))
  }
}

/** As {@link inFlight}, with at most so many operations a second in all. */
export function paced(concurrency: number, perSecond: number, operation: (worker: number) => Promise<unknown>): Load {
  const betweenMs = (concurrency * 1000) / perSecond
  return async (endsAt, times) => {
    const work = async (worker: number): Promise<void> => {
      let dueAt = performance.now() + (worker * betweenMs) / concurrency
      for (; dueAt < endsAt; dueAt += betweenMs) {
        await sleep(Math.max(0, dueAt - performance.now()))
        const startedAt = performance.now()
        await operation(worker)
        times.push(performance.now() - startedAt)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, (_, worker) => work(worker)))
  }
}

/** One after the other, for work that waits for nothing. */
export function inLoop(operation: () => unknown): Load {
  return async (endsAt, times) => {
    for (let startedAt = performance.now(); startedAt < endsAt; ) {
      const done = operation()
      if (done instanceof Promise) await done
      const now = performance.now()
      times.push(now - startedAt)
      startedAt = now
    }
  }
}

/**
 * Measures subjects in rounds, each of them for `roundMs` in every round, so that whatever else the machine is at hits
 * all alike. Every other round runs backwards. A first round warms up and does not count.
 *
 * The ratio of rates is the median of those within a round; percentiles are those of all rounds together.
 */
export async function compare(
  subjects: readonly Subject[],
  { rounds = 4, roundMs = 300 }: { readonly rounds?: number; readonly roundMs?: number } = {},
): Promise<Measured[]> {
  const tallies = new Map(subjects.map(({ name }) => [name, new Tally()]))
  const counted = scale.short ? 1 : rounds
  for (let round = 0; round <= counted; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const tally = round === 0 ? new Tally() : (tallies.get(subject.name) as Tally)
      await tally.addRound(subject, scale.short ? Math.min(roundMs, shortRoundMs) : roundMs)
    }
  }
  return subjects.map((subject) => {
    const tally = tallies.get(subject.name) as Tally
    const floor = subject.floor === undefined ? undefined : tallies.get(subject.floor)
    return tally.measured(subject, floor)
  })
}

/** What the rounds of one subject add up to. */
class Tally {
  readonly #times: number[] = []
  readonly #rates: number[] = []
  #cpuMicros = 0

  async addRound({ load, cpuMicros }: Subject, roundMs: number): Promise<void> {
    const cpuBefore = (await cpuMicros?.()) ?? 0
    const before = this.#times.length
    const startedAt = performance.now()
    await load(startedAt + roundMs, this.#times)
    this.#rates.push(((this.#times.length - before) * 1000) / (performance.now() - startedAt))
    this.#cpuMicros += ((await cpuMicros?.()) ?? 0) - cpuBefore
  }

  measured({ name, cpuMicros }: Subject, floor: Tally | undefined): Measured {
    const times = timesOf(this.#times)
    const floorTimes = floor && timesOf(floor.#times)
    return {
      name,
      perSecond: median(this.#rates),
      times,
      ...(cpuMicros && { cpuMicros: this.#cpuMicros / this.#times.length }),
      ...(floor &&
        floorTimes && {
          ratios: {
            rate: median(this.#rates.map((rate, round) => rate / (floor.#rates[round] as number))),
            p50: times.p50 / floorTimes.p50,
            p99: times.p99 / floorTimes.p99,
          },
        }),
    }
  }
}

/** A number for a table. */
export function figure(value: number, unit: Unit): Figure {
  return { value, unit }
}

/** The middle value; the mean of the two in the middle of an even number. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted(ascending)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2
}

/** The percentiles of measured times. */
export function timesOf(values: readonly number[]): Times {
  const sorted = values.toSorted(ascending)
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: percentile(sorted, 1) }
}

/** Order of numbers, for sorting. */
export const ascending = (a: number, b: number): number => a - b

/** The nearest rank, so that the answer is a value that was measured. */
function percentile(sorted: readonly number[], share: number): number {
  if (sorted.length === 0) throw new Error('nothing was measured')
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number
}

/** Prints what was measured; `unit` is what is counted. */
export function printMeasured(title: string, unit: string, measured: readonly Measured[]): void {
  const hasCpu = measured.some(({ cpuMicros }) => cpuMicros !== undefined)
  const cpuTitle = hasCpu ? ['server CPU'] : []
  const titles = [`${unit}/s`, 'p50', 'p99', ...cpuTitle, 'rate ÷ floor', 'p50 ÷ floor', 'p99 ÷ floor']
  const rows = measured.map(({ name, perSecond, times, cpuMicros, ratios }) => [
    name,
    figure(perSecond, 'per second'),
    figure(times.p50, 'ms'),
    figure(times.p99, 'ms'),
    ...(hasCpu ? [cpuMicros === undefined ? '' : figure(cpuMicros / 1000, 'ms')] : []),
    ...(ratios ? [ratios.rate, ratios.p50, ratios.p99].map((ratio) => figure(ratio, 'ratio')) : ['', '', '']),
  ])
  printTable(title, titles, rows)
}

/** Prints a table in Markdown, and keeps its numbers for the results. The first column has no title. */
export function printTable(title: string, titles: readonly string[], rows: readonly (readonly Cell[])[]): void {
  recordTable(title, titles, rows)
  const texts = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? cell : formatFigure(cell))))
  console.log(`\n${title}\n\n${markdownTable(titles, texts)}`)
}

/**
 * Says whether a promise of the project held, and if not, for what. `note` says what was not judged. With `isAim`, it is no promise,
 * but what is aimed for.
 */
export function printVerdict(promise: string, brokenFor: readonly string[], note = '', isAim = false): void {
  recordVerdict(promise, brokenFor, note, isAim)
  const verdict = brokenFor.length === 0 ? 'holds' : `DOES NOT HOLD: ${brokenFor.join('; ')}`
  console.log(`\nThe ${isAim ? 'aim' : 'promise'}, ${promise}, ${verdict}${note && `. ${note}`}`)
}

/** The machine in one line. */
export function machine(): string {
  const { model = 'unknown CPU' } = cpus()[0] ?? {}
  return `${model}, ${cpus().length} cores, Node.js ${process.versions.node}, ${process.platform}`
}
