import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { changedReadme, readRatios, tooLow } from '../../bench/ratios.ts'

const readme = new URL('../../bench/README.md', import.meta.url)

test('a run fails for a ratio that is a fifth below the one in the table, and for no other', () => {
  const expected = { 'sign-in': 1, check: 0.5, flood: 2 }
  expect(tooLow({ 'sign-in': 0.81, check: 0.39, flood: 3 }, expected)).toEqual(['check'])
  expect(tooLow({ 'sign-in': Number.NaN }, expected)).toEqual(['sign-in'])
  expect(tooLow({ 'a new one': 0.1 }, expected)).toEqual([])
})

test('writing the table changes the ratios that were measured and keeps the others', async () => {
  const before = await readFile(readme, 'utf8')
  const [name = '', other = ''] = Object.keys(readRatios(before))
  const after = changedReadme(before, { [name]: 7.25 }, 'A machine.')
  expect(readRatios(after)).toEqual({ ...readRatios(before), [name]: 7.25 })
  expect(readRatios(after)[other]).toBe(readRatios(before)[other])
})

test('bench/README.md has a ratio for every part of the benchmark', async () => {
  const names = Object.keys(readRatios(await readFile(readme, 'utf8')))
  for (const part of [
    'sign-in, REST',
    'session check, gRPC',
    'order, gRPC',
    'code exchange',
    'refresh',
    'flood',
    'watchers',
  ]) {
    expect(names.some((name) => name.startsWith(part))).toBe(true)
  }
})
