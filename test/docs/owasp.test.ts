import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const [threats = '', requirements = ''] = read('SECURITY.md')
  .split(/^## /m)
  .filter((part) => /^(What an attacker can try|OWASP)/.test(part))

/** The last numbers of the sections of AISVS 1.0 C9.2 and of ASVS 5.0 V10. */
const sections = { 'C9.2': 10, 'V10.1': 2, 'V10.2': 3, 'V10.3': 5, 'V10.4': 16, 'V10.5': 5, 'V10.6': 2, 'V10.7': 3 }

/** The requirements that a text names, ranges as each of their numbers. */
function numbersIn(text: string): string[] {
  return [...text.matchAll(/\b([CV]\d+\.\d+)\.(\d+)(?: to \1\.(\d+))?/g)].flatMap(([, section, first, last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => `${section}.${Number(first) + index}`),
  )
}

/** The rows of requirements that are not met, or only partly. */
const open = requirements.split('\n').filter((line) => /^\| [CV]\d/.test(line))

test('each requirement is met by a row, partly met, not met or not applicable', () => {
  const met = threats.split('\n').flatMap((line) => numbersIn(line.split(/ \|(?= )/)[3] ?? ''))
  const [, notApplicable = ''] = requirements.split('Not applicable: ')
  const named = [...met, ...open.flatMap((row) => numbersIn(row.split(' | ')[0] ?? '')), ...numbersIn(notApplicable)]
  const all = Object.entries(sections).flatMap(([section, last]) =>
    Array.from({ length: last }, (_, index) => `${section}.${index + 1}`),
  )
  expect(named.toSorted()).toEqual(all.toSorted())
})

test('what is partly met names tests that exist, and no row leaves out why', () => {
  expect(open.length).toBeGreaterThan(10)
  for (const row of open) {
    const [, , state = ''] = row.split(' | ')
    expect(state).toMatch(/^(partly|not met): /)
    const tests = [...state.matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path)
    if (state.startsWith('partly')) expect(tests, row).not.toHaveLength(0)
    for (const path of tests) expect(existsSync(new URL(`../../${path}`, import.meta.url)), path).toBe(true)
  }
})
