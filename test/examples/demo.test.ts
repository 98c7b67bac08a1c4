import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'

test('npm run demo shows every step and ends well', async () => {
  const demo = fileURLToPath(new URL('../../examples/demo/main.ts', import.meta.url))
  // Rejects when the exit status is not 0.
  const { stdout } = await run(process.execPath, [demo])
  for (const step of [
    'over REST',
    'over Connect',
    'over gRPC',
    'a login order',
    'a proof artifact',
    'confirmationCode=return',
    'Done.',
  ]) {
    expect(stdout).toContain(step)
  }
  for (const status of ['created', 'claimed', 'waiting_user', 'approved', 'finalized']) {
    expect(stdout.match(new RegExp(`desktop │ .*: ${status}$`, 'gm'))?.length).toBe(3)
  }
  expect(stdout.match(/phone │ .*ApproveOrder/g)).toHaveLength(3)
  const shown = /phone │ .*the phone shows the code (\d{6}),/.exec(stdout)?.[1]
  expect(stdout).toContain(`the user types the code of the phone: ${shown}`)
  expect(stdout).toMatch(/401 NONCE_NOT_FOUND/)
})
