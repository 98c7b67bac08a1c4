import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { placesOf } from '../scripts/mutation.ts'
import { mutations } from '../scripts/mutations.ts'

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

/** The rows of SECURITY.md's table: number, attack, what stops it, requirements of OWASP, the tests that show it. */
const rows = read('SECURITY.md')
  .split('\n')
  .filter((line) => /^\| \d+ \|/.test(line))
  .map((line) => {
    const [number = '', , defence = '', , shownBy = ''] = line
      .slice(1, -1)
      .split(/ \|(?= )/)
      .map((cell) => cell.trim())
    return { number: Number(number), defence, tests: [...shownBy.matchAll(/`(test\/[^`]+)`/g)].map(([, path]) => path) }
  })

test('the rows are numbered, each names test files, and these exist', () => {
  expect(rows.length).toBeGreaterThan(10)
  expect(rows.map(({ number }) => number)).toEqual(rows.map((_, index) => index + 1))
  for (const { number, tests } of rows) {
    expect(tests, `row ${number}`).not.toHaveLength(0)
    for (const path of tests) {
      expect(path).toMatch(/\.test\.ts$/)
      expect(existsSync(new URL(`../${path}`, import.meta.url)), path).toBe(true)
    }
  }
})

test('every row that names a defence has a mutation that takes it out', () => {
  const taken = new Set(mutations.map(({ row }) => row))
  const without = rows.filter(({ number, defence }) => !taken.has(number) && !defence.includes('not prevented'))
  expect(without.map(({ number }) => number)).toEqual([])
})

test('there are at most 310: one for what a row says, not for each line of code', () => {
  expect(mutations.length).toBeLessThanOrEqual(310)
})

test.each(mutations)('row $row, $within: $find is in one place, and the row names the tests', (mutation) => {
  const { row, find, replace, tests } = mutation
  expect(placesOf(mutation)).toHaveLength(1)
  expect(replace).not.toBe(find)
  expect(rows.find(({ number }) => number === row)?.tests).toEqual(expect.arrayContaining([...tests]))
})
