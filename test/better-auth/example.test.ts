import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'

const program = fileURLToPath(new URL('../../examples/better-auth/server.ts', import.meta.url))

/** Starts the example by its one command; resolves with the address that it prints. */
async function startExample(): Promise<string> {
  const env = { ...process.env, PORT: String(await freePort()), DATABASE: ':memory:' }
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const [printed] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [Buffer]
  return /http:\S+/.exec(String(printed))?.[0] ?? ''
}

test.runIf(hasPart('chromium'))(
  'the example signs in, on either side and with a phone, and adds a wallet',
  async () => {
    const url = await startExample()
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
    onTestFinished(() => browser.close())
    const page = await browser.newPage()
    await page.goto(url)
    const said = async (pattern: RegExp): Promise<string> => {
      await page.waitForFunction(
        (source) => new RegExp(source).test(document.getElementById('session')?.textContent ?? ''),
        pattern.source,
      )
      return (await page.textContent('#session')) ?? ''
    }
    await said(/^null$/)
    await page.click('#sign-in')
    const direct = JSON.parse(await said(/walletAddress/))
    expect(direct.user.walletAddress).toBe(direct.session.walletAddress)
    await page.click('#sign-out')
    await said(/^null$/)
    await page.click('#connect')
    const overConnect = JSON.parse(await said(/walletAddress/))
    expect(overConnect.user.id).toBe(direct.user.id)
    expect(overConnect.session.id).not.toBe(direct.session.id)
    await page.click('#link')
    await expect
      .poll(async () => JSON.parse((await page.textContent('#session')) ?? '').user.walletAddress)
      .not.toBe(direct.user.walletAddress)
    await page.click('#sign-out')
    await said(/^null$/)
    const phone = await browser.newPage()
    const review = async (): Promise<void> => {
      await page.click('#phone')
      await page.locator('#claim:not([hidden]) a[href*="#token="]').waitFor()
      await phone.goto((await page.getAttribute('#claim a', 'href')) ?? '')
      await phone.getByRole('button', { name: 'Continue', exact: true }).click()
    }
    await review()
    await phone.getByLabel('Remember this computer').check()
    await phone.getByRole('button', { name: 'Approve' }).click()
    const code = await phone.locator('#return-code').filter({ hasText: /\d/ }).textContent()
    await page.getByLabel('The code on the phone').fill(/\d{6}/.exec(String(code))?.[0] ?? '')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    const first = JSON.parse(await said(/walletOrderId": "/))
    expect(first.session.walletAddress).toMatch(/^NQ/)
    await page.click('#sign-out')
    await said(/^null$/)
    // The computer is known now, and needs no code.
    await review()
    await phone.getByRole('button', { name: 'Approve' }).click()
    const second = JSON.parse(await said(/walletOrderId": "/))
    expect(second.session).toMatchObject({ userId: first.session.userId, walletComputerId: expect.any(String) })
  },
)
