import { expect, test } from 'vitest'
import { newestResults, speedPart } from '../../bench/report.ts'

test('the table of speed in README.md has a figure in every cell', () => {
  const rows = speedPart(newestResults())
    .split('\n')
    .filter((line) => /^\| (REST|Connect JSON|gRPC) /.test(line))
  expect(rows).toHaveLength(3)
  for (const row of rows) expect(row.split('|').slice(2, -1)).not.toContainEqual(expect.not.stringMatching(/^ +\d/))
})
