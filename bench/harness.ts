import { availableParallelism, cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

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

/** One after the other, for work that waits for nothing. */
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
  for (let round = 0; round <= rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const tally = round === 0 ? new Tally() : (tallies.get(subject.name) as Tally)
      await tally.addRound(subject, roundMs)
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
    String(Math.round(perSecond)),
    formatMs(times.p50),
    formatMs(times.p99),
    ...(hasCpu ? [cpuMicros === undefined ? '' : formatMs(cpuMicros / 1000)] : []),
    ...(ratios ? [ratios.rate, ratios.p50, ratios.p99].map((ratio) => ratio.toPrecision(2)) : ['floor', '', '']),
  ])
  printTable(title, titles, rows)
}

/** Prints a table in Markdown. The first column has no title; all others are aligned to the right. */
export function printTable(title: string, titles: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [['', ...titles], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]): string => {
    const cells = widths.map((width, column) => {
      const cell = row[column] ?? ''
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = line(widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)))
  const [head = [], ...body] = all
  console.log(`\n${title}\n\n${[line(head), rule, ...body.map(line)].join('\n')}`)
}

/** Says whether a promise of the project held, and if not, for what. */
export function printVerdict(promise: string, brokenFor: readonly string[]): void {
  const verdict = brokenFor.length === 0 ? 'holds' : `DOES NOT HOLD: ${brokenFor.join('; ')}`
  console.log(`\nThe promise, ${promise}, ${verdict}`)
}

/** A time in a unit that suits it; negative ones are those of what came first. */
export function formatMs(ms: number): string {
  return Math.abs(ms) < 1 ? `${(ms * 1000).toFixed(Math.abs(ms) < 0.01 ? 1 : 0)} µs` : `${ms.toFixed(1)} ms`
}

/** The machine in one line. */
export function machine(): string {
  const { model = 'unknown CPU' } = cpus()[0] ?? {}
  return `${model}, ${availableParallelism()} cores, Node.js ${process.versions.node}, ${process.platform}`
}
