/** Measures servers side by side: each has a turn in every round, so that whatever disturbs the machine hits all alike. */
import type { ServerProcess } from './servers.ts'

/** What a load did in one turn: the time of each call, and of the whole turn, in ms. */
export interface Round {
  readonly times: readonly number[]
  readonly ms: number
}

/** Loads a server for one turn; `measured` wraps the part that counts. */
export type Load = (measured: (work: () => Promise<readonly number[]>) => Promise<Round>) => Promise<Round>

/** A server and what it is asked for. */
export interface Contestant {
  readonly name: string
  readonly server: ServerProcess
  readonly load: Load
}

/** What one turn came to. */
export interface Turn {
  readonly perSecond: number
  /** CPU time of the server for one call, microseconds. */
  readonly cpuMicros: number
  /** 99th percentile of the time of one call, ms. */
  readonly p99: number
}

/** How much is measured. */
export interface Plan {
  /** Rounds before those that count: a server that has just started is not compiled yet. */
  readonly warmUpRounds: number
  readonly rounds: number
}

/** Lets each contestant have a turn in every round, every other round backwards. Resolves with the turns of each, by round. */
export async function takeTurns(
  contestants: readonly Contestant[],
  { warmUpRounds, rounds }: Plan,
): Promise<ReadonlyMap<string, readonly Turn[]>> {
  const turns = new Map<string, Turn[]>(contestants.map(({ name }) => [name, []]))
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
      const turn = await takeTurn(contestant)
      if (round >= 0) turns.get(contestant.name)?.push(turn)
    }
  }
  return turns
}

async function takeTurn({ server, load }: Contestant): Promise<Turn> {
  let cpuMicros = 0
  const { times, ms } = await load(async (work) => {
    const before = (await server.usage('cpu')).cpuMicros
    const startedAt = performance.now()
    const done = await work()
    const elapsed = performance.now() - startedAt
    cpuMicros = (await server.usage('cpu')).cpuMicros - before
    return { times: done, ms: elapsed }
  })
  return {
    perSecond: (times.length * 1000) / ms,
    cpuMicros: cpuMicros / times.length,
    p99: percentile(times, 0.99),
  }
}

/** Calls for `ms` milliseconds, `concurrency` at a time. `call` gets the number of the one in flight that calls. */
export function inFlight(concurrency: number, ms: number, call: (worker: number) => Promise<unknown>): Load {
  return (measured) =>
    measured(async () => {
      const times: number[] = []
      const endsAt = performance.now() + ms
      const work = async (worker: number): Promise<void> => {
        for (let startedAt = performance.now(); startedAt < endsAt; ) {
          await call(worker)
          const now = performance.now()
          times.push(now - startedAt)
          startedAt = now
        }
      }
      await Promise.all(Array.from({ length: concurrency }, (_, worker) => work(worker)))
      return times
    })
}

/** The ratios of a figure between two contestants, one for each round. */
export function ratios(over: readonly Turn[], under: readonly Turn[], of: (turn: Turn) => number): number[] {
  return over.map((turn, round) => of(turn) / of(under[round] as Turn))
}

/** The middle value; the mean of the two in the middle of an even number. NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted(ascending)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2
}

/** The nearest rank, so that the answer is a value that was measured; NaN of nothing. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted(ascending)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN
}

/** The order of numbers, for sorting. */
export const ascending = (a: number, b: number): number => a - b

/** A time in a unit that suits it. */
export function formatMs(ms: number): string {
  return Math.abs(ms) < 1 ? `${(ms * 1000).toFixed(0)} µs` : `${ms.toFixed(1)} ms`
}

/** Prints a table in Markdown. The first column has no title. */
export function printTable(title: string, titles: readonly string[], rows: readonly (readonly string[])[]): void {
  console.log(`\n${title}\n\n${markdownTable(['', ...titles], rows)}`)
}

/** A table in Markdown. All columns but the first are aligned to the right. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string => {
    const cells = widths.map((width, column) => {
      const cell = row[column] ?? ''
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = line(widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)))
  return [line(titles), rule, ...rows.map(line)].join('\n')
}
