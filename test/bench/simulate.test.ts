import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { hasPart } from '../support/optional.ts'

const program = fileURLToPath(new URL('../../bench/simulate/main.ts', import.meta.url))

test.skipIf(!hasPart('redis-server') || !hasPart('redis-cli'))(
  'a minute of the simulation runs to its end without a failed event, and finds the commands and keys of the model',
  { timeout: 600_000 },
  async () => {
    const child = spawn(process.execPath, [program, '--short', '--minutes', '1'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk
    })
    const [code] = (await once(child, 'close')) as [number]
    // CPU time is a matter of a quiet machine, which the whole run wants and this one may not have.
    expect(code === 0 || code === 1, printed).toBe(true)
    const verdict = /^The promise, the model is right.*$/m.exec(printed)?.[0]
    expect(verdict, printed).toBeDefined()
    expect(verdict, printed).not.toMatch(/events failed|commands|keys/)
  },
)
