import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const http = fileURLToPath(new URL('../../examples/approvals/http.ts', import.meta.url))

test('the HTTP endpoint deletes once the demo wallet has signed, and ends well', async () => {
  // Rejects when the exit status is not 0.
  const { stdout } = await run(process.execPath, [http, '--approve'])
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(
      /^"Delete report\.txt" waits for your approval: http:\/\/localhost:\d+\/api\/auth\/inbox\?order=/,
    ),
    expect.stringMatching(/^Signed by NQ\d\d /),
    'The agent got 200: Deleted report.txt',
    'Files that are left: 0',
  ])
})
