import { existsSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'

const root = new URL('../../', import.meta.url)

/** Expects that the tests which a page names, as `path`: "name", exist under that name. Returns how many there are. */
export function expectNamedTests(page: string): number {
  const named = [...page.matchAll(/`(test\/[^`]+\.test\.ts)`: "([^"]+)"/g)]
  for (const [, path = '', name = ''] of named) {
    const file = new URL(path, root)
    expect(existsSync(file), path).toBe(true)
    const tests = [...readFileSync(file, 'utf8').matchAll(/\btest(?:\.each\([\s\S]*?\))?\(\s*(['"`])(.*?)\1,/g)]
    expect(
      tests.map(([, , title]) => title),
      path,
    ).toContain(name)
  }
  return named.length
}
