/** Makes the tables of documents from the results in bench/results/; `npm run docs` writes them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatFigure, markdownTable, type Results, type ResultTable, resultsFolder, type Unit } from './results.ts'

const notMeasured = 'Not measured yet: `npm run bench` makes the figures, and `npm run docs` writes them here.\n'

/**
 * The results in a folder, newest first by the date in them. Each has only the tables and verdicts that no newer ones have, so that a
 * part of a run, made after a change, takes the place of what was measured before. Runs of one protocol or one store do not count:
 * their tables lack the rows of the others.
 */
export function newestResults(folder: string = resultsFolder): Results[] {
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  const newestFirst = files
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Results)
    .filter(({ options: { protocol = '', store = '' } }) => protocol === '' && store === '')
    .toSorted((a, b) => b.date.localeCompare(a.date))
  const seen = new Set<string>()
  const isNew = (...names: readonly string[]): boolean => {
    const key = JSON.stringify(names)
    if (seen.has(key)) return false
    seen.add(key)
    return true
  }
  return newestFirst
    .map((one) => {
      const tables = one.tables.filter(({ part, title }) => isNew(part, title))
      // A verdict whose tables are all replaced is about nothing that a reader can see, even if its promise has been worded anew since.
      const parts = new Set(tables.map(({ part }) => part))
      const verdicts = one.verdicts.filter(({ part, promise }) => isNew(part, 'promise', promise) && parts.has(part))
      return { ...one, tables, verdicts }
    })
    .filter(({ tables }) => tables.length > 0)
}

/** All tables and verdicts, for bench/README.md. */
export function resultsPart(all: readonly Results[]): string {
  const seen = new Set<string>()
  // A part can be in several runs; a document must not have two headings of one name.
  const headingOf = (run: Results, part: string): string => {
    if (seen.has(part)) return `${part}, commit ${run.commit?.slice(0, 9)}`
    seen.add(part)
    return part
  }
  return all.length === 0 ? notMeasured : all.map((run) => measuredText(run, (part) => headingOf(run, part))).join('\n')
}

function measuredText(all: Results, headingOf: (part: string) => string): string {
  const parts = Map.groupBy(all.tables, ({ part }) => part)
  const text = [...parts].map(([part, tables]) => {
    const verdicts = all.verdicts.filter((verdict) => verdict.part === part)
    const lines = verdicts.map(({ promise, holds, brokenFor, note, isAim = false }) => {
      const verdict = holds ? 'holds' : `**does not hold**: ${brokenFor.join('; ')}`
      return `- The ${isAim ? 'aim' : 'promise'}, ${promise}, ${verdict}.${note === undefined ? '' : ` ${note}.`}\n`
    })
    return `### Measured: ${headingOf(part)}\n\n${tables.map(tableText).join('\n')}${lines.length > 0 ? `\n${lines.join('')}` : ''}`
  })
  return `${measuredOn(all)}${startsOf(all)}\n${text.join('\n')}`
}

/** What a reader wants to know first, for README.md: the table of sign-ins and session checks on Redis under load. */
export function speedPart(all: readonly Results[]): string {
  const signIns = underLoad(all, 'Whole sign-in, Redis, ')
  const checks = underLoad(all, 'Session check, Redis, ')
  if (signIns === undefined || checks === undefined) return notMeasured
  const rows = ['REST', 'Connect JSON', 'gRPC'].map((name) => [
    name,
    cellOf(signIns.table, name, 'sign-ins/s'),
    cellOf(signIns.table, name, 'server CPU'),
    leastOf(signIns.table, name),
    bareOf(signIns.table, name),
    cellOf(signIns.table, name, 'peer CPU ÷ CPU'),
    cellOf(checks.table, name, 'checks/s'),
    bareOf(checks.table, name),
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
  const measured =
    signIns.run === checks.run
      ? measuredOn(signIns.run)
      : `Sign-ins: ${measuredOn(signIns.run)}\nSession checks: ${measuredOn(checks.run)}`
  return `${measured}\n${markdownTable(titles, rows)}\n`
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

/** The table with the most in flight of those whose title begins so, and has nothing after the number in flight, and its run. */
function underLoad(
  all: readonly Results[],
  beginning: string,
): { readonly run: Results; readonly table: ResultTable } | undefined {
  const inFlight = ({ title }: ResultTable): number => Number(title.slice(beginning.length).replace(/ in flight$/, ''))
  return all
    .flatMap((run) => run.tables.map((table) => ({ run, table })))
    .filter(({ table }) => table.title.startsWith(beginning) && !Number.isNaN(inFlight(table)))
    .toSorted((a, b) => inFlight(a.table) - inFlight(b.table))
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
