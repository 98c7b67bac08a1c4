import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'

const page = (await Promise.all(['docs/architecture.md', 'src/README.md'].map(readFromRoot))).join('\n')

test('every path that docs/architecture.md and src/README.md name is there', () => {
  const named = page.match(/\b(?:src|test|proto|gen|scripts)\/[\w./*-]*[\w/*]/g) ?? []
  expect(named.length).toBeGreaterThan(40)
  expect([...new Set(named)].filter((path) => globSync(path, { cwd: root }).length === 0)).toEqual([])
})
