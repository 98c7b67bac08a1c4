import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parseRecord } from '../../src/base/record.ts'
import { blocksOf } from './blocks.ts'

const root = new URL('../../', import.meta.url)
const blocks = blocksOf(await readFile(new URL('docs/upgrading.md', root), 'utf8'))

test('the command tells the version', async () => {
  const [command] = blocks.filter(({ language }) => language === 'sh')
  expect(command?.text).toBe('npx countersign --version\n')
  const main = fileURLToPath(new URL('src/main.ts', root))
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--version'])
  expect(stdout).toBe(`${JSON.parse(await readFile(new URL('package.json', root), 'utf8')).version}\n`)
})

test('a record of a newer release is refused in the words that the page has', () => {
  const [line] = blocks.filter(({ language }) => language === 'text')
  expect(() => parseRecord('session', '{"v":2}', 1)).toThrow(line?.text.trim())
})
