import { existsSync, globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = await readFile(new URL('../../docs/architecture.md', import.meta.url), 'utf8')

test('every path that docs/architecture.md names is there', () => {
  const named = page.match(/\b(?:src|test|proto|gen|scripts)\/[\w./*-]*[\w/*]/g) ?? []
  expect(named.length).toBeGreaterThan(40)
  expect([...new Set(named)].filter((path) => globSync(path, { cwd: root }).length === 0)).toEqual([])
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    expect(existsSync(new URL(target as string, new URL('../../docs/', import.meta.url))), target).toBe(true)
  }
})
