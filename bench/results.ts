import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What a number counts. Times are in ms, sizes in bytes, shares from 0 to 1. */
export type Unit = 'ms' | 'bytes' | 'ratio' | 'per second' | 'share' | 'count'

/** A number in a table. */
export interface Figure {
  readonly value: number
  readonly unit: Unit
}

/** What stands in a table: a number, or a text. Of a text that is a number with a unit, the number is kept. */
export type Cell = string | Figure

/** A table as it was printed, in numbers. */
export interface ResultTable {
  readonly part: string
  readonly title: string
  readonly columns: readonly { readonly title: string; readonly unit?: Unit }[]
  /** `null` is an empty cell. */
  readonly rows: readonly { readonly name: string; readonly cells: readonly (number | string | null)[] }[]
}

/** Whether a promise of the project held, or what is aimed for beyond the promises. */
export interface ResultVerdict {
  readonly part: string
  readonly promise: string
  readonly holds: boolean
  /** What it did not hold for. */
  readonly brokenFor: readonly string[]
  /** What was not judged. */
  readonly note?: string
  /** Whether it is no promise, but aimed for. */
  readonly isAim?: boolean
}

/** What a run came to, as it is kept in bench/results/. */
export interface Results {
  readonly date: string
  /** Absent if the tree is not in git. */
  readonly commit?: string
  /** Whether files differed from that commit. */
  readonly dirty: boolean
  readonly machine: Readonly<Record<'cpu' | 'kernel' | 'platform', string> & Record<'cores' | 'memoryBytes', number>>
  readonly versions: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, unknown>>
  readonly tables: readonly ResultTable[]
  readonly verdicts: readonly ResultVerdict[]
}

/** The folder of the working tree. */
const root = fileURLToPath(new URL('..', import.meta.url))
/** Where results are kept. */
export const resultsFolder: string = join(root, 'bench/results')

const tables: ResultTable[] = []
const verdicts: ResultVerdict[] = []
let part = ''

/** Says which part prints from now on. */
export function beginPart(name: string): void {
  part = name
}

/** Keeps a table for the results. `titles` are those of all columns but the first. */
export function recordTable(title: string, titles: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const columns = titles.map((title, column) =>
    readColumn(
      title,
      rows.map((row) => row[column + 1] ?? ''),
    ),
  )
  tables.push({
    part,
    title,
    columns: columns.map(({ title, unit }) => ({ title, ...(unit && { unit }) })),
    rows: rows.map(([name = ''], row) => ({
      name: typeof name === 'string' ? name : String(name.value),
      cells: columns.map(({ cells }) => cells[row] ?? null),
    })),
  })
}

/** Keeps a verdict for the results. */
export function recordVerdict(promise: string, brokenFor: readonly string[], note: string, isAim = false): void {
  const holds = brokenFor.length === 0
  verdicts.push({ part, promise, holds, brokenFor, ...(note !== '' && { note }), ...(isAim && { isAim }) })
}

/** What is measured. To be read before results are written, which are a file more. */
export function measuredTree(): Pick<Results, 'commit' | 'dirty'> {
  const commit = output('git', ['rev-parse', 'HEAD'])
  return { ...(commit !== '' && { commit }), dirty: output('git', ['status', '--porcelain']) !== '' }
}

/** All that was kept, with what it was measured on. */
export function results(tree: Pick<Results, 'commit' | 'dirty'>, options: Readonly<Record<string, unknown>>): Results {
  return {
    date: new Date().toISOString(),
    ...tree,
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown CPU',
      cores: cpus().length,
      memoryBytes: totalmem(),
      kernel: release(),
      platform: process.platform,
    },
    versions: {
      node: process.versions.node,
      sqlite: process.versions.sqlite ?? '',
      'redis-server': /v=(\S+)/.exec(output('redis-server', ['--version']))?.[1] ?? '',
      'better-auth': installed('better-auth'),
      '@connectrpc/connect-node': installed('@connectrpc/connect-node'),
    },
    options,
    tables,
    verdicts,
  }
}

/** Writes results to a file, by default one in {@link resultsFolder} that names machine, day and commit. Returns its path. */
export function writeResults(all: Results, file = join(resultsFolder, fileName(all))): string {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(all, undefined, 1)}\n`)
  return file
}

function fileName({ machine, date, commit = 'no-commit' }: Results): string {
  const cpu = machine.cpu
    .replaceAll(/\((?:R|TM)\)|@.*|processor|cpu/gi, ' ')
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
  return `${cpu}-${machine.cores}-cores-${date.slice(0, 10)}-${commit.slice(0, 9)}.json`
}

function output(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return ''
  }
}

function installed(name: string): string {
  return JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version
}

interface Column {
  readonly title: string
  readonly unit?: Unit
  readonly cells: readonly (number | string | null)[]
}

/** A column whose cells all are numbers of one unit becomes one of numbers; any other, one of texts. */
function readColumn(title: string, cells: readonly Cell[]): Column {
  const figures = cells.map((cell) => (cell === '' ? null : figureOf(cell)))
  const units = new Set(figures.flatMap((figure) => (figure ? [figure.unit] : [])))
  const [unit] = units
  if (unit === undefined || units.size > 1 || figures.includes(undefined)) {
    return { title, cells: cells.map((cell) => (typeof cell === 'string' ? cell || null : formatFigure(cell))) }
  }
  return { title, unit, cells: figures.map((figure) => (figure ? rounded(figure.value) : null)) }
}

/** Six digits are more than any measurement has. */
function rounded(value: number): number {
  return Number(value.toPrecision(6))
}

const factors: Readonly<Record<string, readonly [unit: Unit, factor: number]>> = {
  '': ['count', 1],
  µs: ['ms', 0.001],
  ms: ['ms', 1],
  s: ['ms', 1000],
  '%': ['share', 0.01],
  B: ['bytes', 1],
  KiB: ['bytes', 1024],
  MiB: ['bytes', 1024 ** 2],
  GiB: ['bytes', 1024 ** 3],
}

function figureOf(cell: Cell): Figure | undefined {
  if (typeof cell !== 'string') return cell
  const [, number = '', suffix = ''] = /^(-?[\d,]+(?:\.\d+)?)(?: ?(µs|ms|s|%|B|KiB|MiB|GiB))?$/.exec(cell) ?? []
  const [unit, factor] = factors[suffix] ?? ['count', 1]
  return number === '' ? undefined : { unit, value: Number(number.replaceAll(',', '')) * factor }
}

/** A number with its unit, as it stands in tables. */
export function formatFigure({ value, unit }: Figure): string {
  switch (unit) {
    case 'ms':
      return formatMs(value)
    case 'bytes':
      return value < 1024 ** 2 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / 1024 ** 2).toFixed(1)} MiB`
    case 'ratio':
      return value.toFixed(value < 10 ? 2 : 0)
    case 'per second':
      return value.toFixed(0)
    case 'share':
      return `${(value * 100).toFixed(0)} %`
    case 'count':
      return String(value)
  }
}

/** A time in a unit that suits it; negative ones are those of what came first. */
export function formatMs(ms: number): string {
  return Math.abs(ms) < 1 ? `${(ms * 1000).toFixed(Math.abs(ms) < 0.01 ? 1 : 0)} µs` : `${ms.toFixed(1)} ms`
}

/** A table in Markdown. The first column has no title; all others are aligned to the right. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
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
  return [line(head), rule, ...body.map(line)].join('\n')
}
