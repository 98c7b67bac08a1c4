import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { folderOfFile } from '../support/temporary-folder.ts'

const program = fileURLToPath(new URL('./log-output-process.ts', import.meta.url))
const folder = folderOfFile()
const lines = Array.from({ length: 500 }, (_, i) => `line ${i}`)

/**
 * The log of a process that writes {@link lines} in one turn and then ends. Node's own words about that are left out.
 */
async function loggedBy(end: string, to: 'pipe' | 'file'): Promise<string[]> {
  const path = join(folder, `${end}.log`)
  const file = openSync(path, 'a')
  const child = spawn(process.execPath, [program, end], { stdio: ['ignore', 'ignore', to === 'pipe' ? 'pipe' : file] })
  closeSync(file)
  const [piped] = await Promise.all([
    child.stderr === null ? '' : text(child.stderr),
    new Promise((resolve) => child.once('exit', resolve)),
  ])
  const log = to === 'pipe' ? piped : readFileSync(path, 'utf8')
  return log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).text] : []))
}

describe.each(['pipe', 'file'] as const)('a log that goes to a %s', (to) => {
  test.concurrent.each(['exit', 'throw', 'reject', 'wait', 'kill in a later turn'])(
    'has all lines of a turn, in order, if the process ends by: %s',
    async (end) => {
      expect(await loggedBy(end, to)).toEqual(lines)
    },
  )
})

test('the lines of one turn are written together', async () => {
  const child = spawn(process.execPath, [program, 'count'], { stdio: ['ignore', 'pipe', 'ignore'] })
  expect(await text(child.stdout)).toBe('1')
})
