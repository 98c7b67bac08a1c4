import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** A row of a table of docs/owasp.md. */
const rows = read('docs/owasp.md')
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) => {
    const [number = '', asks = '', state = '', shown = ''] = line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim())
    return { number, asks, state, shown, tests: [...shown.matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path) }
  })

/** The last numbers of the sections of AISVS 1.0 C9.2 and of ASVS 5.0 V10. */
const sections = { '9.2': 10, '10.1': 2, '10.2': 3, '10.3': 5, '10.4': 16, '10.5': 5, '10.6': 2, '10.7': 3 }

test('each requirement has a row, in its order', () => {
  const numbers = Object.entries(sections).flatMap(([section, last]) =>
    Array.from({ length: last }, (_, index) => `${section}.${index + 1}`),
  )
  expect(rows.map(({ number }) => number)).toEqual(numbers)
})

describe.each(rows)('$number', ({ asks, state, shown, tests }) => {
  test('says in few words what it asks for', () => expect(asks.length).toBeLessThanOrEqual(100))

  test('has a state', () => expect(state).toMatch(/^(met|partly|not met|not applicable)\b/))

  test('names tests that exist, or a reason', () => {
    if (/^(met|partly)/.test(state)) expect(tests).not.toHaveLength(0)
    expect(shown).not.toBe('')
    for (const path of tests) {
      expect(path).toMatch(/\.test\.ts$/)
      expect(existsSync(new URL(`../../${path}`, import.meta.url)), path).toBe(true)
    }
  })
})
