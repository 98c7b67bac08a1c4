import { expect, test } from 'vitest'
import { readFromRoot } from '../support/repository.ts'
import { expectNamedTests } from './named-tests.ts'

const page = await readFromRoot('docs/why.md')

test('each fault has its public source, and names tests that exist', () => {
  const faults = page.split(/^## /m).filter((section) => section.includes('https://github.com/'))
  expect(faults).toHaveLength(5)
  for (const fault of faults) {
    expect(fault).toMatch(/\[[\w.-]+\/[\w.-]+#(\d+)\]\(https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/(issues|pull)\/\1\)/)
    expect(expectNamedTests(fault), fault.split('\n')[0]).toBe(2)
  }
})
