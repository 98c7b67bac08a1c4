/** Makes the tables of documents from the newest results in bench/results/; `npm run docs` writes them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatFigure, markdownTable, type Results, type ResultTable, resultsFolder, type Unit } from './results.ts'

const notMeasured = 'Not measured yet: `npm run bench` makes the figures, and `npm run docs` writes them here.\n'

/** The newest results in a folder, by the date in them; `undefined` if there are none. */
export function newestResults(folder: string = resultsFolder): Results | undefined {
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  return files
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Results)
    .toSorted((a, b) => a.date.localeCompare(b.date))
    .at(-1)
}

/** All tables and verdicts, for bench/README.md. */
export function resultsPart(all: Results | undefined): string {
  if (all === undefined) return notMeasured
  const parts = Map.groupBy(all.tables, ({ part }) => part)
  const text = [...parts].map(([part, tables]) => {
    const verdicts = all.verdicts.filter((verdict) => verdict.part === part)
    const lines = verdicts.map(({ promise, holds, brokenFor, note, isAim = false }) => {
      const verdict = holds ? 'holds' : `**does not hold**: ${brokenFor.join('; ')}`
      return `- The ${isAim ? 'aim' : 'promise'}, ${promise}, ${verdict}.${note === undefined ? '' : ` ${note}.`}\n`
    })
    return `### Measured: ${part}\n\n${tables.map(tableText).join('\n')}${lines.length > 0 ? `\n${lines.join('')}` : ''}`
  })
  return `${measuredOn(all)}${startsOf(all)}\n${text.join('\n')}`
}

/** What a reader wants to know first, for README.md: the table of sign-ins and session checks on Redis under load. */
export function speedPart(all: Results | undefined): string {
  const signIns = all && underLoad(all, 'Whole sign-in, Redis, ')
  const checks = all && underLoad(all, 'Session check, Redis, ')
  if (all === undefined || signIns === undefined || checks === undefined) return notMeasured
  const rows = ['REST', 'Connect JSON', 'gRPC'].map((name) => [
    name,
    cellOf(signIns, name, 'sign-ins/s'),
    cellOf(signIns, name, 'server CPU'),
    leastOf(signIns, name),
    bareOf(signIns, name),
    cellOf(signIns, name, 'peer CPU ÷ CPU'),
    cellOf(checks, name, 'checks/s'),
    bareOf(checks, name),
  ])
  const titles = [
    'sign-ins/s',
    'server CPU for each',
    'CPU of the least ÷ its CPU',
    'CPU of a bare server ÷ its CPU',
    'CPU of Better Auth ÷ its CPU',
    'session checks/s',
    'CPU of a bare server ÷ its CPU',
  ]
  return `${measuredOn(all)}\n${markdownTable(titles, rows)}\n`
}

function measuredOn({ machine, versions, commit = '', dirty, date }: Results): string {
  const { cpu, cores, memoryBytes, kernel, platform } = machine
  const memory = `${Math.round(memoryBytes / 1024 ** 3)} GiB`
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const tree = commit === '' ? '' : `, commit ${commit.slice(0, 9)}${dirty ? ' with changes' : ''}`
  return `${cpu}, ${cores} cores, ${memory}, ${platform} ${kernel}; ${programs.join(', ')}; ${date.slice(0, 10)}${tree}.\n`
}

/** How often the servers of sign-in, session-check and order were started; empty for results that do not say. */
function startsOf({ options: { starts } }: Results): string {
  if (typeof starts !== 'number') return ''
  return `Servers of sign-in, session-check and order were started ${starts === 1 ? 'once' : `${starts} times`}.\n`
}

function tableText({ title, columns, rows }: ResultTable): string {
  const body = rows.map(({ name, cells }) => [
    name,
    ...cells.map((cell, column) => textOf(cell, columns[column]?.unit)),
  ])
  return `**${title}**\n\n${markdownTable(
    columns.map((column) => column.title),
    body,
  )}\n`
}

function textOf(cell: number | string | null | undefined, unit: Unit | undefined): string {
  if (typeof cell === 'number' && unit !== undefined) return formatFigure({ value: cell, unit })
  return cell === null || cell === undefined ? '' : String(cell)
}

/** The table with the most in flight of those whose title begins so, and has nothing after the number in flight. */
function underLoad(all: Results, beginning: string): ResultTable | undefined {
  const inFlight = ({ title }: ResultTable): number => Number(title.slice(beginning.length).replace(/ in flight$/, ''))
  return all.tables
    .filter((table) => table.title.startsWith(beginning) && !Number.isNaN(inFlight(table)))
    .toSorted((a, b) => inFlight(a) - inFlight(b))
    .at(-1)
}

/** Results from before the two floors were told apart call the bare one the least. */
function knowsBare({ columns }: ResultTable): boolean {
  return columns.some(({ title }) => title === 'bare CPU ÷ CPU')
}

function leastOf(table: ResultTable, row: string): string {
  return knowsBare(table) ? cellOf(table, row, 'least CPU ÷ CPU') : 'not measured yet'
}

function bareOf(table: ResultTable, row: string): string {
  return cellOf(table, row, knowsBare(table) ? 'bare CPU ÷ CPU' : 'least CPU ÷ CPU')
}

function cellOf({ columns, rows }: ResultTable, row: string, title: string): string {
  const column = columns.findIndex((one) => one.title === title)
  return textOf(rows.find(({ name }) => name === row)?.cells[column], columns[column]?.unit)
}
