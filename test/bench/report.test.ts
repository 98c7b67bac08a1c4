import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newestResults, speedPart } from '../../bench/report.ts'

test('the table of speed in README.md has a figure in every cell', () => {
  const rows = speedPart(newestResults())
    .split('\n')
    .filter((line) => /^\| (REST|Connect JSON|gRPC) /.test(line))
  expect(rows).toHaveLength(3)
  for (const row of rows) expect(row.split('|').slice(2, -1)).not.toContainEqual(expect.not.stringMatching(/^ +\d/))
})

test('a part that was measured again takes its verdicts along, also those whose promise has been worded anew', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-results-'))
  const write = (date: string, titles: readonly string[], promises: readonly string[]): void => {
    const tables = titles.map((title) => ({ part: 'checks', title, columns: [], rows: [] }))
    const verdicts = promises.map((promise) => ({ part: 'checks', promise, holds: true, brokenFor: [] }))
    writeFileSync(join(folder, `${date}.json`), JSON.stringify({ date, options: {}, tables, verdicts }))
  }
  const shown = (): [string, string[], string[]][] =>
    newestResults(folder).map(({ date, tables, verdicts }) => [
      date,
      tables.map(({ title }) => title),
      verdicts.map(({ promise }) => promise),
    ])
  write('2026-01-01', ['Redis', 'memory'], ['fast', 'steady'])
  write('2026-01-02', ['Redis'], ['fast'])
  expect(shown()).toEqual([
    ['2026-01-02', ['Redis'], ['fast']],
    ['2026-01-01', ['memory'], ['steady']],
  ])
  write('2026-01-03', ['Redis', 'memory'], ['fast, with 64 in flight'])
  expect(shown()).toEqual([['2026-01-03', ['Redis', 'memory'], ['fast, with 64 in flight']]])
})
