import { existsSync, globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { measuring, nightly, slow } from './lists.ts'
import { linesAbout } from './support/slow-files.ts'

const root = new URL('../', import.meta.url)

test('every entry of the lists is there, and no file is in both', () => {
  for (const path of [...nightly, ...slow, ...measuring])
    expect([path, existsSync(new URL(path, root))]).toEqual([path, true])
  expect(slow.filter((path) => nightly.includes(path))).toEqual([])
})

test('every nightly file is named by a step of scripts/nightly.ts', () => {
  const steps = readFileSync(new URL('scripts/nightly.ts', root), 'utf8')
  expect(nightly.filter((path) => !steps.includes(path))).toEqual([])
})

test.each(['.ci/run', 'scripts/nightly.ts'])('every file of tests that %s names is there', (path) => {
  const named = readFileSync(new URL(path, root), 'utf8').match(/\btest\/[\w./-]*\w/g) ?? []
  const files = globSync('test/**', { cwd: root })
  expect(named.filter((name) => !files.some((file) => file.startsWith(name)))).toEqual([])
})

test('a file that takes three times eight seconds is named with the list where it belongs, unless it is in one', () => {
  const [listed = ''] = slow
  const files = [
    { path: 'test/a.test.ts', seconds: 25 },
    { path: 'test/b.test.ts', seconds: 23 },
    { path: listed, seconds: 100 },
    { path: 'test/newcomer/newcomer.test.ts', seconds: 100 },
  ]
  expect(linesAbout(files)).toEqual([
    expect.stringMatching(/^SLOW: test\/a\.test\.ts took 25 s: .*`slow` of test\/lists\.ts$/),
  ])
})
