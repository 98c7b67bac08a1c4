import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'

test('npm run demo has a tick for each step, one code, and says last what to open', async () => {
  const demo = fileURLToPath(new URL('../../examples/demo/main.ts', import.meta.url))
  // Rejects when the exit status is not 0.
  const { stdout } = await run(process.execPath, [demo])
  for (const step of [
    'wallet/nonce',
    'wallet/verify',
    'Connect: ',
    'gRPC: ',
    'a proof that anyone can check offline',
  ]) {
    expect(stdout).toMatch(new RegExp(`^  ✓ .*${step}`, 'm'))
  }
  const states = 'created, claimed, waiting_user, approved, finalized'
  expect(stdout.match(new RegExp(`^  ✓ computer: saw ${states}$`, 'gm'))).toHaveLength(3)
  expect(stdout.match(/^ {2}✓ phone: ApproveOrder/gm)).toHaveLength(3)
  const shown = /phone: .*it shows (\d{6})$/m.exec(stdout)?.[1]
  expect(stdout).toContain(`computer: its user enters ${shown}\n`)
  expect(stdout).toMatch(/401 NONCE_NOT_FOUND/)
  const lines = stdout.trim().split('\n')
  expect(lines.filter((line) => /[█▄▀]/.test(line)).length).toBeLessThan(26)
  expect(lines.length).toBeLessThan(60)
  expect(lines.at(-1)).toMatch(/open http:\/\/localhost:8080$/)
})
