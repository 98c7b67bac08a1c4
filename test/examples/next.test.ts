import { spawn } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { addressOf, reviewOnPhone } from '../browser/flows.ts'
import { useBrowser } from '../browser/support.ts'
import { signInClients } from '../support/clients.ts'
import { killAtEnd, run } from '../support/command.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { orderClients } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { filesIn, writeFiles } from '../support/snippets.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { minuteMs, environment as ownNode } from './tools.ts'

const folder = folderOfFile()
const application = join(folder, 'application')
const next = join(application, 'node_modules/next/dist/bin/next')

/** Without questions, and messages to the maker. */
const environment = { ...ownNode, NEXT_TELEMETRY_DISABLED: '1' }

/** A copy of examples/next with the newest Next.js, and the files of examples/next-access-tokens. */
beforeAll(async () => {
  await cp(fileURLToPath(new URL('../../examples/next', import.meta.url)), application, { recursive: true })
  const install = ['install', '--no-audit', '--no-fund', 'next@latest', await packPackage()]
  await run('npm', install, { cwd: application, env: environment })
  await writeFiles(application, await filesIn('examples/next-access-tokens'))
  await run(process.execPath, [next, 'build'], { cwd: application, env: environment, timeout: 10 * minuteMs })
}, 20 * minuteMs)

/** Starts the application. It may answer only later. */
async function startNext(command: string, others: Readonly<Record<string, string>> = {}): Promise<string> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const child = spawn(process.execPath, [next, command, '--port', String(port), '--hostname', 'localhost'], {
    cwd: application,
    env: { ...environment, APP_URL: url, ...others },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  killAtEnd(child)
  return url
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name })

describe('Next.js', () => {
  const browser = useBrowser()

  test.each(['start', 'dev'])(
    'with next %s, examples/next signs in on this device and with a phone, and has a page for signed-in users only',
    async (command) => {
      const url = await startNext(command)
      // The development server compiles at the first request, for longer than a page waits if the machine is busy.
      const answers = (path: string) =>
        fetch(url + path).then(
          ({ status }) => status < 500,
          () => false,
        )
      for (const path of ['/', '/api/auth/options', '/c/0123456789abcdefABCDEF', '/cross-device/x', '/pages/x']) {
        await expect.poll(() => answers(path), { timeout: 4 * minuteMs }).toBe(true)
      }
      const { page, trail } = await browser.open()
      page.setDefaultTimeout(minuteMs)

      // On this device, with the demo wallet. What says who is signed in is a server component.
      await page.goto(url)
      await heading(page, 'The tulip shop').waitFor()
      const code = page.getByRole('img', { name: 'QR code for your phone' })
      await code.waitFor()
      await page.getByRole('button', { name: 'Use a wallet on this device' }).click()
      await page.getByRole('button', { name: 'Demo wallet' }).click()
      await page.getByText(/^Signed in as NQ/).waitFor()
      await page.reload()
      await page.getByText(/^Signed in as NQ/).waitFor()
      await page.getByRole('link', { name: 'Your account' }).click()
      await heading(page, 'Your account').waitFor()
      await page.goto(url)
      await page.getByRole('link', { name: 'For members' }).click()
      await page.getByText(/^Black tulips for NQ/).waitFor()
      await page.goto(url)
      await page.getByRole('button', { name: 'Sign out' }).click()

      // With a phone, which opens the approval page.
      await code.waitFor()
      const { page: phone, trail: phoneTrail } = await browser.open()
      phone.setDefaultTimeout(minuteMs)
      await reviewOnPhone(phone, code)
      const address = await addressOf(phone)
      await phone.getByRole('button', { name: 'Approve' }).click()
      await page.getByText(`Signed in as ${address}`).waitFor()

      // The page for signed-in users: others come to the service's sign-in page, and from there back.
      expect(await (await fetch(`${url}/members`)).text()).not.toContain('Black tulips')
      await phone.goto(`${url}/members`)
      await heading(phone, 'Sign in').waitFor()
      await phone.getByRole('button', { name: 'Use a wallet on this device' }).click()
      await phone.getByRole('button', { name: 'Demo wallet' }).click()
      await phone.getByText(`Black tulips for ${address}`).waitFor()
      expect([...trail.faults, ...phoneTrail.faults]).toEqual([])

      expect(await (await fetch(`${url}/.well-known/jwks.json`)).json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' })
      await signInWith(signInClients.REST!(url))
      await completeOrder(orderClients.REST!(url))
    },
    20 * minuteMs,
  )

  test(
    'proxy.ts lets requests with an access token of the service through, and says whose they are',
    async () => {
      const audience = 'https://orders.example'
      const { url: auth } = await startService({ accessTokens: { audiences: [audience, 'https://chat.example'] } })
      const { token } = await signInWith(signInClients.REST!(auth))
      const { json: signedIn } = await rest(auth, '/session', undefined, { authorization: `Bearer ${token}` })
      const accessToken = async (audience: string): Promise<string> => {
        const { json } = await rest(auth, '/access-token', { audience }, { authorization: `Bearer ${token}` })
        return json.accessToken
      }
      const orders = async (url: string, headers: Record<string, string>) => {
        const asked = () => fetch(`${url}/orders`, { headers })
        await expect.poll(() => asked().catch(() => undefined), { timeout: minuteMs }).toBeDefined()
        return await asked()
      }
      const url = await startNext('start', { AUTH_URL: auth })
      const own = { authorization: `Bearer ${await accessToken(audience)}` }
      const answer = await orders(url, { ...own, 'x-user-id': 'usr_another' })
      expect(answer.status).toBe(200)
      expect(await answer.json()).toEqual({ userId: signedIn.session.userId })
      for (const headers of [
        {},
        { authorization: `Bearer ${token}` },
        { authorization: `Bearer ${await accessToken('https://chat.example')}` },
        { 'x-user-id': 'usr_another' },
      ]) {
        expect((await orders(url, headers)).status).toBe(401)
      }
      // The keys cannot be had: the token may be valid.
      const lost = await startNext('start', { AUTH_URL: `http://localhost:${await freePort()}` })
      expect((await orders(lost, own)).status).toBe(503)
    },
    5 * minuteMs,
  )
})
