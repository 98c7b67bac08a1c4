import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newestResults, resultsPart, speedPart } from '../../bench/report.ts'
import {
  beginPart,
  measuredTree,
  type Results,
  recordTable,
  recordVerdict,
  results,
  resultsFolder,
  writeResults,
} from '../../bench/results.ts'

function recorded(): Results {
  beginPart('sign-in')
  recordTable(
    'Whole sign-in, Redis, 64 in flight',
    ['sign-ins/s', 'p50', 'server CPU', 'least CPU ÷ CPU', 'peer CPU ÷ CPU', 'remark'],
    [
      ['REST', { value: 2000.4, unit: 'per second' }, '250 µs', { value: 0.3, unit: 'ms' }, '', '7', 'a'],
      ['Connect JSON', { value: 10, unit: 'per second' }, '1.5 ms', { value: 1, unit: 'ms' }, '0.5', '', '1 KiB'],
    ],
  )
  recordTable('Session check, Redis, 64 in flight', ['checks/s'], [['gRPC', { value: 3, unit: 'per second' }]])
  recordVerdict('a thing', ['REST'], '')
  recordVerdict('another', [], 'Only CPU was judged')
  return results(measuredTree(), { short: true, starts: 2 })
}

const all = recorded()

test('the results name the machine, the versions and the commit', () => {
  expect(all.machine.cores).toBeGreaterThan(0)
  expect(all.commit).toMatch(/^[0-9a-f]{40}$/)
  expect(all.versions).toMatchObject({ node: process.versions.node, 'better-auth': expect.stringMatching(/^\d/) })
})

test('a column of numbers is kept as numbers of one unit, and any other as it was printed', () => {
  const [table] = all.tables
  expect(table?.columns.map(({ unit }) => unit)).toEqual(['per second', 'ms', 'ms', 'count', 'count', undefined])
  expect(table?.rows.map(({ cells }) => cells)).toEqual([
    [2000.4, 0.25, 0.3, null, 7, 'a'],
    [10, 1.5, 1, 0.5, null, '1 KiB'],
  ])
})

test('the report has every table and verdict as they were printed', () => {
  const text = resultsPart([all])
  expect(text).toContain('| REST         |       2000 | 250 µs |     300 µs |')
  expect(text).toContain('were started 2 times.')
  expect(text).toContain('The promise, a thing, **does not hold**: REST.')
  expect(text).toContain('The promise, another, holds. Only CPU was judged.')
})

test('what older results call the least is the bare server of the table of README.md', () => {
  expect(speedPart([all])).toMatch(/\| Connect JSON +\| +10 \| +1\.0 ms \| +not measured yet \| +0\.5 \|/)
  const [signIns, ...others] = all.tables
  const columns = signIns?.columns.map((column) =>
    column.title === 'server CPU' ? { ...column, title: 'bare CPU ÷ CPU' } : column,
  )
  const told = { ...all, tables: [{ ...signIns!, columns: columns! }, ...others] }
  expect(speedPart([told])).toMatch(/\| Connect JSON +\| +10 \| +\| +0\.5 \| +1\.0 ms \|/)
})

test('the table of README.md has the sign-ins and session checks under the most load', () => {
  expect(speedPart([all])).toMatch(/\| REST +\| +2000 \| +300 µs \|/)
  expect(speedPart([{ ...all, tables: [] }])).toMatch(/^Not measured yet/)
  expect(speedPart([])).toMatch(/^Not measured yet/)
})

async function folderOf(runs: Readonly<Record<string, Results>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-results-'))
  onTestFinished(async () => await rm(folder, { recursive: true }))
  writeFileSync(join(folder, 'notes.txt'), 'not results')
  for (const [name, run] of Object.entries(runs)) writeResults(run, join(folder, `${name}.json`))
  return folder
}

const older = { ...all, dirty: false, date: '2026-11-21T00:00:00.000Z', commit: 'a'.repeat(40) }
const newer = { ...all, dirty: false, date: '2026-11-22T00:00:00.000Z', commit: 'b'.repeat(40) }

test('the newest results are those with the latest date, whatever the names of the files', async () => {
  const folder = await folderOf({ b: older, a: newer })
  expect(newestResults(folder).map(({ date }) => date)).toEqual([newer.date])
  expect(newestResults(join(folder, 'missing'))).toEqual([])
})

test('a newer run of one part takes the place of what was measured of it before, and the rest stays', async () => {
  const [signIns, checks] = all.tables
  const part = { ...newer, tables: [checks!], verdicts: [] }
  const runs = newestResults(await folderOf({ whole: older, part }))
  expect(runs.map(({ tables }) => tables)).toEqual([[checks], [signIns]])
  expect(runs.map(({ verdicts }) => verdicts)).toEqual([[], all.verdicts])
  expect(resultsPart(runs)).toMatch(
    /commit b{9}\.[\s\S]+Session check, Redis[\s\S]+commit a{9}\.[\s\S]+Whole sign-in, Redis/,
  )
  expect(speedPart(runs)).toMatch(/^Sign-ins: [^\n]+commit a{9}\.\n\nSession checks: [^\n]+commit b{9}\.\n/)
})

test('what an older run alone has of a part is under a heading of its own', async () => {
  const [signIns, ...others] = all.tables
  const part = { ...newer, tables: [{ ...signIns!, title: 'Whole sign-in, Redis, 1 in flight' }], verdicts: [] }
  const text = resultsPart(newestResults(await folderOf({ whole: { ...older, tables: [signIns!, ...others] }, part })))
  expect(text.match(/^###.*$/gm)).toEqual(['### Measured: sign-in', `### Measured: sign-in, commit ${'a'.repeat(9)}`])
})

test('a run of one protocol or one store does not take the place of one of all', async () => {
  const ofOne = { ...newer, options: { protocol: 'rest' } }
  const onOne = { ...newer, options: { store: 'redis' } }
  expect(newestResults(await folderOf({ older, ofOne, onOne })).map(({ date }) => date)).toEqual([older.date])
})

test('files of results are small', () => {
  const files = newestResults().length === 0 ? [] : readdirSync(resultsFolder)
  for (const name of files) expect(statSync(join(resultsFolder, name)).size).toBeLessThan(200_000)
})
