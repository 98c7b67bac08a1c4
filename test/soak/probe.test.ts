import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { objectFindings } from '../../bench/soak/findings.ts'
import type { ObjectsAnswer } from '../../bench/soak/probe.ts'

const probe = new URL('../../bench/soak/probe.ts', import.meta.url).href
const server = fileURLToPath(new URL('./bare-server.ts', import.meta.url))

/** Starts a server that does nothing but answer, with the probe in it. */
async function startProbed(plant = '') {
  const args = ['--disable-warning=ExperimentalWarning', '--expose-gc', '--import', probe, server]
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, SOAK_PLANT: plant },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  onTestFinished(async () => {
    if (child.exitCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const [port] = (await once(child.stdout as Readable, 'data')) as [Buffer]
  return {
    async objects(): Promise<ObjectsAnswer> {
      child.send({ id: 1, question: 'objects' })
      const [{ answer }] = (await once(child, 'message')) as [{ answer: ObjectsAnswer }]
      return answer
    },
    async load(requests: number): Promise<void> {
      for (let made = 0; made < requests; made++) {
        const response = await fetch(`http://127.0.0.1:${port}`, { headers: { connection: 'close' } })
        await response.text()
      }
    },
  }
}

test('a server that keeps nothing has no more after a load than before', async () => {
  const { load, objects } = await startProbed()
  await load(100)
  const before = await objects()
  await load(300)
  // The server's side of the last connection ends by itself.
  await expect.poll(async () => objectFindings('bare', before, await objects())).toEqual([])
})

test('a timer for each request that is not cleared is seen, although it keeps nothing alive', async () => {
  const { load, objects } = await startProbed('timer')
  await load(100)
  const before = await objects()
  await load(300)
  const after = await objects()
  // Node.js has one of its own for the date in headers, which it drops when a second is over.
  expect((after.objects.timers ?? 0) - (before.objects.timers ?? 0)).toBeGreaterThan(290)
  expect(after.resources).not.toHaveProperty('Timeout')
  // Nothing else is left, active resources of other kinds included.
  await expect
    .poll(async () => objectFindings('bare', before, await objects()))
    .toEqual([expect.stringContaining('timers are left')])
})
