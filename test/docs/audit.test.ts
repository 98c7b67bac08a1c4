import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { signIn } from '../integrations/backend/support.ts'
import { allTypes } from '../observe/audit/types.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { startService } from '../support/service.ts'

const page = await readFromRoot('docs/audit.md')

test('the table has each type of event, and no other', () => {
  const rows = [...page.matchAll(/^\| `([a-z_.]+)` \|/gm)].map(([, type]) => type)
  expect(rows.sort()).toEqual(Object.keys(allTypes).sort())
})

test('the receiver of the page takes an event and refuses a forged one', async () => {
  const secret = `whsec_${Buffer.from('a secret of the tests, and of no use').toString('base64')}`
  const port = await freePort()
  const env = { PATH: process.env.PATH, PORT: String(port), COUNTERSIGN_WEBHOOK_SECRET: secret }
  const receiver = spawn(process.execPath, [join(root, 'examples/webhook/receiver.ts')], { env })
  onTestFinished(() => void receiver.kill())
  let printed = ''
  receiver.stdout.on('data', (chunk) => {
    printed += chunk
  })
  const address = `http://localhost:${port}/`
  const forged = async () => await fetch(address, { method: 'POST', body: '{"type":"sign_in.succeeded"}' })
  await vi.waitFor(async () => expect((await forged()).status).toBe(401), { timeout: 20_000 })
  const { url } = await startService({ webhook: { url: address, secret } })
  await signIn(url)
  await vi.waitFor(() => expect(printed).toContain('"type":"sign_in.succeeded"'), { timeout: 20_000 })
})
