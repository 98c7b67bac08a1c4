import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { phoneSize, seen } from './approval-steps.ts'
import { expectHeading } from './flows.ts'
import { signInWithDemoWallet } from './inbox-steps.ts'
import { expectNoFaults, hasBrowser, provokes, tap, useBrowser } from './support.ts'

const example = fileURLToPath(new URL('../../examples/approvals/http.ts', import.meta.url))

/** The example's backend and agent, as a person starts them. */
function startExample() {
  const child = spawn(process.execPath, [example], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    ended: once(child, 'exit'),
    type: (line: string) => child.stdin.write(`${line}\n`),
    /** The next line, of which only a part is wanted. */
    async says(pattern: RegExp): Promise<string> {
      const { value = '' } = await lines.next()
      expect(value).toMatch(pattern)
      return pattern.exec(value)?.[1] ?? ''
    },
  }
}

describe.skipIf(!hasBrowser)('an agent that asks for an approval', () => {
  const browser = useBrowser()

  test('gets its action done after two taps on the phone that opened the link, and after a no it does not', async () => {
    for (const answer of ['Approve', 'Decline']) {
      const run = startExample()
      const url = await run.says(/^Sign in with the demo wallet: (http:\/\/localhost:\d+)\/api\/auth\/sign-in$/)
      const { page, trail } = await browser.open({ viewport: phoneSize, isMobile: true, hasTouch: true })
      // The example's service ends with its agent.
      provokes(/ERR_CONNECTION_REFUSED/)
      await signInWithDemoWallet(page, url, '/api/auth/account')
      run.type(await page.evaluate(async () => (await (await fetch('/api/auth/session')).json()).session.address))
      // Behind the question, which ends in no line.
      await page.goto(await run.says(/"Delete report\.txt" waits for your approval: (http\S+)$/))
      await page.getByRole('heading', { name: 'Delete report.txt' }).waitFor()
      await tap(page.getByRole('button', { name: 'Review the request' }))
      await page.getByRole('button', { name: answer }).waitFor()
      expect(await seen(page)).toContain('agent · ')
      expect(await seen(page)).toContain('report.txt')
      await tap(page.getByRole('button', { name: answer }))
      if (answer === 'Approve') {
        await expectHeading(page, /approv/i)
        await run.says(/^Signed by NQ\d\d /)
        await run.says(/^The agent got 200: Deleted report\.txt$/)
      } else await run.says(/^The agent got 403: Not done: declined$/)
      await page.goto(await run.says(/^"Delete missing\.txt" waits for your approval: (http\S+)$/))
      await tap(page.getByRole('button', { name: 'Review the request' }))
      await tap(page.getByRole('button', { name: 'Decline' }))
      await run.says(/^The agent got 403: Not done: declined$/)
      await run.says(answer === 'Approve' ? /^Files that are left: 0$/ : /^Files that are left: 1$/)
      expect(await run.ended).toEqual([0, null])
      expectNoFaults(trail)
    }
  })
})
