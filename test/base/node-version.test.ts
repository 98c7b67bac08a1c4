import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'

test('tests and the programs that they start run on one version of Node', async () => {
  for (const program of [process.execPath, 'node']) {
    const { stdout } = await run(program, ['--print', 'process.version'])
    expect(stdout.trim()).toBe(process.version)
  }
})

test('that version is the expected one, or else one that package.json promises', async () => {
  const expected = process.env.EXPECTED_NODE_VERSION
  if (expected !== undefined) {
    expect(process.versions.node).toBe(expected)
    return
  }
  const { engines } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  const minimum = Number(/^>=(\d+)$/.exec(engines.node)?.[1])
  expect(Number.parseInt(process.versions.node, 10)).toBeGreaterThanOrEqual(minimum)
})
