import { describe, expect, test } from 'vitest'
import { fileWith } from '../oidc/support.ts'
import { hasPart } from '../support/optional.ts'
import { Application, linesForRemoteUser, proxies, runRadicale } from '../support/protected-application.ts'
import { freePort } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { approvedHeading, expectHeading, reviewOnPhone, signIn } from './flows.ts'
import { serveSite } from './other-site.ts'
import { copiedOn, expectAccessible, expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'

describe.skipIf(!hasBrowser)('an application without a line of code for signing in', () => {
  const browser = useBrowser()

  test.for(Object.entries(proxies))(
    'behind %s: the browser goes to the sign-in page and back, and no page of another origin acts for its user',
    async ([name, startProxy], { skip }) => {
      if (!hasPart(name)) skip()
      const port = await freePort()
      const origin = `http://127.0.0.1:${port}`
      const service = await startService({ trustedOrigins: [origin], trustProxy: true })
      const application = new Application()
      await startProxy(port, Number(new URL(service.url).port), await application.listen())
      const { page, trail } = await browser.open({ viewport: { width: 1280, height: 900 } })
      await page.goto(`${origin}/report?year=2026&for=a%26b`)
      expect(new URL(page.url()).pathname).toBe('/api/auth/sign-in')
      expect(application.asked).toEqual([])
      const phone = await browser.open({ viewport: { width: 390, height: 800 } })
      const code = page.getByRole('img', { name: /QR code/ })
      await code.waitFor()
      await reviewOnPhone(phone.page, code)
      await phone.page.getByRole('button', { name: 'Approve' }).click()
      await expectHeading(phone.page, approvedHeading)
      await page.getByRole('heading', { name: 'The application' }).waitFor()
      expect(page.url()).toBe(`${origin}/report?year=2026&for=a%26b`)
      expect(application.asked).toEqual(['GET /report?year=2026&for=a%26b'])
      const user = application.headers['x-countersign-user']
      expect(user).toMatch(/^usr_/)
      expect(application.headers.cookie ?? '').toBe('')

      // The application's own page, whose Origin the browser writes.
      const own = await page.evaluate(async () => (await fetch('/orders', { method: 'POST', body: 'x' })).status)
      expect(own).toBe(201)
      expect(application.headers['x-countersign-user']).toBe(user)
      await page.goto(`${origin}/api/auth/account`)
      await page.getByRole('heading', { name: 'Your account' }).waitFor()
      await page.getByText('sign in on this device with a wallet, or open this page on your phone').waitFor()
      expectNoFaults(trail, phone.trail)

      // For cookies another port is the same site, so the browser sends them.
      provokes(/Access to fetch|WebSocket|net::ERR_FAILED|403 .*orders/)
      application.asked.length = 0
      const foreign = await serveSite(
        '<!doctype html><title>Foreign</title><form method="post"><button>Go</button></form>',
      )
      await page.goto(foreign.url)
      const reached = await page.evaluate(async (target) => {
        const options = { mode: 'no-cors', credentials: 'include' } as const
        await fetch(`${target}/orders`, { ...options, method: 'POST', body: 'x' })
        const socket = new WebSocket(`${target.replace('http', 'ws')}/socket`)
        const opened = await new Promise((resolve) => {
          socket.onopen = () => resolve(true)
          socket.onerror = () => resolve(false)
        })
        const read = await fetch(`${target}/report`, { credentials: 'include' }).then(
          () => true,
          () => false,
        )
        ;(document.querySelector('form') as HTMLFormElement).action = `${target}/orders`
        return { opened, read }
      }, origin)
      expect(reached).toEqual({ opened: false, read: false })
      const [answer] = await Promise.all([
        page.waitForResponse(`${origin}/orders`),
        page.getByRole('button', { name: 'Go' }).click(),
      ])
      expect(answer.status()).toBe(403)
      expect((await answer.request().allHeaders()).cookie).toContain('countersign_session=')
      // The page of the refusal has no icon, and the browser looks for one.
      expect(application.asked.filter((asked) => asked !== 'GET /favicon.ico')).toEqual([])
    },
  )

  const forStaff: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    nginx: { '_question /api/auth/forward-auth;': '_question /api/auth/forward-auth?groups=staff,admins;' },
    caddy: { 'redirect={countersign_redirect}': 'redirect={countersign_redirect}&groups=staff,admins' },
  }

  test.for(Object.entries(proxies))(
    'behind %s: someone who is in none of the groups reads so, with the wallet; programs get JSON',
    async ([name, startProxy], { skip }) => {
      if (!hasPart(name)) skip()
      const port = await freePort()
      const origin = `http://127.0.0.1:${port}`
      const wallet = makeWallet()
      const people = { [`nimiq:${wallet.address}`]: { groups: ['guests'] } }
      const service = await startService({ trustedOrigins: [origin], trustProxy: true, people: fileWith(people) })
      const application = new Application()
      const servicePort = Number(new URL(service.url).port)
      await startProxy(port, servicePort, await application.listen(), forStaff[name])
      const { page, trail } = await browser.open({
        viewport: { width: 390, height: 844 },
        permissions: ['clipboard-write'],
      })
      provokes(/403/)
      await signIn(page, origin, wallet)
      await page.goto(`${origin}/report?year=2026`)
      await page.getByRole('heading', { name: 'You can’t open this page' }).waitFor()
      await page
        .getByText('This page of Countersign is for members of staff or admins. You’re signed in with:')
        .waitFor()
      await expectAccessible(page, 'refused')
      await page.getByRole('button', { name: 'Copy this wallet' }).click()
      await page.getByRole('button', { name: 'Copied' }).waitFor()
      expect(await copiedOn(page)).toBe(`nimiq:${wallet.address}`)
      const program = await page.evaluate(async () => {
        const answer = await fetch('/report?year=2026', { headers: { accept: 'text/html' } })
        const { headers } = answer
        return [answer.status, (await answer.json()).code, headers.get('cache-control'), headers.get('vary')]
      })
      expect(program).toEqual([403, 'GROUP_REQUIRED', 'no-store', 'Accept, Sec-Fetch-Mode'])
      await page.getByRole('link', { name: 'Use another wallet' }).click()
      await page.waitForURL(`${origin}/api/auth/sign-in?returnTo=%2Freport%3Fyear%3D2026&again=1`)
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      expectNoFaults(trail)

      // A form of another site, which the browser sends without the cookie or with it.
      const foreign = await serveSite(
        `<!doctype html><title>Foreign</title><form method="post" action="${origin}/orders"><button>Go</button></form>`,
      )
      await page.goto(foreign.url)
      await page.getByRole('button', { name: 'Go' }).click()
      await page.getByText(/Another site sent this request. Open 127.0.0.1:\d+ yourself/).waitFor()
      expect(application.asked).toEqual([])
    },
  )

  test.skipIf(!hasPart('nginx') || !hasPart('radicale'))(
    'Radicale: its own page makes a calendar of the user who has signed in, whatever name is typed there',
    async () => {
      const port = await freePort()
      const origin = `http://127.0.0.1:${port}`
      const service = await startService({ trustedOrigins: [origin], trustProxy: true })
      const { port: radicale } = await runRadicale()
      await proxies.nginx?.(port, Number(new URL(service.url).port), radicale, await linesForRemoteUser('nginx'))
      const { page, trail } = await browser.open()
      await page.goto(origin)
      expect(new URL(page.url()).pathname).toBe('/api/auth/sign-in')
      await signIn(page, origin)
      await page.goto(origin)
      await page.getByPlaceholder('Username').fill('admin')
      await page.getByRole('button', { name: 'Next' }).click()
      await page.getByRole('link', { name: 'Create new addressbook or calendar' }).click()
      await page.locator('#createcollectionscene [data-name=displayname]').fill('Tulips')
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Tulips').waitFor()
      expect(await page.locator('#collectionsscene').textContent()).toMatch(/\/usr_[\w-]{22}\//)
      expectNoFaults(trail)
    },
  )
})
