import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { TestUser } from '../integrations/approvals/support.ts'
import { run } from '../support/command.ts'
import { makeWallet } from '../support/wallet.ts'

const http = fileURLToPath(new URL('../../examples/approvals/http.ts', import.meta.url))

test('the HTTP endpoint deletes once the demo wallet has signed, and outlives an action that fails', async () => {
  // Rejects when the exit status is not 0.
  const { stdout } = await run(process.execPath, [http, '--approve'])
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(
      /^"Delete report\.txt" waits for your approval: http:\/\/localhost:\d+\/api\/auth\/inbox\?order=/,
    ),
    expect.stringMatching(/^Signed by NQ\d\d /),
    'The agent got 200: Deleted report.txt',
    expect.stringMatching(/^"Delete missing\.txt" waits for your approval: /),
    expect.stringMatching(/^Signed by NQ\d\d /),
    'The agent got 500: Approved, and failed',
    'Files that are left: 0',
  ])
})

test('the approver is the user whose address is typed, and not who signs in first', async () => {
  const child = spawn(process.execPath, [http], { stdio: 'pipe' })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk
  })
  await expect.poll(() => said).toContain('Address of your wallet')
  const url = /http:\/\/localhost:\d+/.exec(said)![0]
  const [first, second] = [makeWallet(), makeWallet()]
  await TestUser.signIn(url, first)
  const user = await TestUser.signIn(url, second)
  child.stdin.write(`${makeWallet().address}\n`)
  await expect.poll(() => said).toContain('This wallet has not signed in.')
  child.stdin.write(`${second.address}\n`)
  await expect.poll(() => said).toContain('waits for your approval')
  expect(await user.inbox()).toHaveLength(1)
})
