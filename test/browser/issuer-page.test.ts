import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import { authorizeAddress } from '../oidc/documents.ts'
import { clientsFile, discover, fileWith, request, shop } from '../oidc/support.ts'
import { listen } from '../support/listening.ts'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { signIn } from './flows.ts'
import { issuerEndings, issuerStates } from './states/issuer.ts'
import { expectAccessible, expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'

/** A client's server, which says what it was called with. */
async function startClient(): Promise<string> {
  const server = createServer((call, response) => response.end(`called: ${call.url}`))
  return `http://127.0.0.1:${await listen(server)}/callback`
}

describe.skipIf(!hasBrowser)('the page of the issuer', () => {
  const browser = useBrowser()

  test('asks for consent and leads on, and asks before a sign-out and leads back', async () => {
    const redirect = await startClient()
    const metadata = { ...shop.metadata, redirect_uris: [redirect], post_logout_redirect_uris: [`${redirect}/bye`] }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata }) } })
    const { page, trail } = await browser.open()
    await signIn(page, url)
    const [cookie] = await page.context().cookies(url)

    const { address, redeem } = await request(await discover(url, metadata), { redirect_uri: redirect })
    await page.goto(address)
    await page.getByRole('heading', { name: 'Sign in to Tulip Shop?' }).waitFor()
    await expectAccessible(page, 'consent')
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${redirect}?*`)
    const tokens = await redeem(new URL(page.url()))
    expect(tokens.claims()?.aud).toBe('shop')

    const query = new URLSearchParams({
      id_token_hint: tokens.id_token ?? '',
      post_logout_redirect_uri: `${redirect}/bye`,
    })
    await page.goto(`${url}/api/auth/oidc/logout?${query}`)
    await expectAccessible(page, 'logout')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(`${redirect}/bye`)
    expect((await page.context().cookies(url)).map((cookie) => cookie.name)).not.toContain(cookie!.name)
    expectNoFaults(trail)
  })

  test('of a request for a new sign-in is the sign-in page with its ways, although the user is signed in', async () => {
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    const { page } = await browser.open()
    await signIn(page, url)
    const { address } = await request(await discover(url), { prompt: 'login' })
    await page.goto(address)
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
  })

  test.each([
    ['en', 'Can’t reach 127.0.0.1, where this application comes from.', 'Try again'],
    ['de', '127.0.0.1 ist nicht erreichbar. Von dort kommt diese Anwendung.', 'Noch einmal versuchen'],
  ])(
    'names the host of a document that cannot be fetched, and can be loaded again: %s',
    async (locale, text, again) => {
      provokes(/503/)
      const { url } = await startService({ oidc: { clients: clientsFile(), clientDocuments: ['*'] } })
      const { page } = await browser.open({ locale })
      await page.goto(authorizeAddress(url, 'https://127.0.0.1/client.json'))
      await page.getByText(text).waitFor()
      await page.getByRole('button', { name: again }).click()
      await page.getByText(text).waitFor()
      expect(await page.locator('section:not([hidden]) bdi[translate=no]').allTextContents()).toContain('127.0.0.1')
    },
  )

  test('shows on a computer all that is asked for, in the operator’s words, and the answers beside it', async () => {
    const metadata = {
      ...shop.metadata,
      policy_uri: 'https://shop.example/privacy',
      tos_uri: 'http://shop.example/terms',
    }
    const scopes = { orders: 'See your orders' }
    const clients = fileWith({ clients: [{ metadata }], resources: [{ resource: 'https://orders.example', scopes }] })
    const { url } = await startService({ oidc: { clients, email: '{user_id}@users.example' } })
    const { page } = await browser.open({ viewport: { width: 1280, height: 720 } })
    await signIn(page, url)
    const { address } = await request(await discover(url, metadata), {
      scope: 'openid profile wallet email groups offline_access orders',
      resource: 'https://orders.example',
      prompt: 'consent',
    })
    await page.goto(address)
    await page.getByText('See your orders at https://orders.example').waitFor()
    // A translation of the page changes the words, and no part of the address.
    expect(await page.locator('#scopes [translate=no]').allTextContents()).toEqual(['https://orders.example'])
    const box = await page.getByRole('button', { name: 'Allow' }).boundingBox()
    expect((box?.y ?? 720) + (box?.height ?? 0)).toBeLessThan(720)
    const links = page.getByRole('link', { name: /Privacy|Terms/ })
    expect(await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')))).toEqual([
      'https://shop.example/privacy',
    ])
    await expectAccessible(page, 'consent on a computer')
  })

  test('decides nothing by a click that comes as soon as it is in view', async () => {
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    const { page } = await browser.open()
    await signIn(page, url)
    await page.clock.install({ time: 0 })
    await page.clock.pauseAt(1_000)
    await page.goto((await request(await discover(url))).address)
    const buttons = [page.getByRole('button', { name: 'Allow' }), page.getByRole('button', { name: 'Decline' })]
    const live = () => Promise.all(buttons.map((button) => button.isEnabled()))
    await buttons[0]?.waitFor()
    expect(await live()).toEqual([false, false])
    await page.clock.runFor(1_000)
    expect(await live()).toEqual([true, true])
    // A window above it has closed.
    const asked = page.url()
    await buttons[0]?.focus()
    await page.evaluate(() => dispatchEvent(new Event('focus')))
    expect(await live()).toEqual([false, false])
    await page.keyboard.press('Enter')
    await page.clock.runFor(1_000)
    expect(await live()).toEqual([true, true])
    expect(await buttons[0]?.evaluate((button) => document.activeElement === button)).toBe(true)
    expect(page.url()).toBe(asked)
  })

  test('stays for an application on the device, and opens it again', async () => {
    const metadata = {
      ...shop.metadata,
      redirect_uris: ['com.example.shop:/callback'],
      post_logout_redirect_uris: [],
      application_type: 'native',
    }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata }) } })
    const { page } = await browser.open()
    await signIn(page, url)
    const { address, redeem } = await request(await discover(url, metadata), {
      redirect_uri: 'com.example.shop:/callback',
    })
    await page.goto(address)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Continue in Tulip Shop' }).waitFor()
    await expectAccessible(page, 'opened')
    const link = page.getByRole('link', { name: 'Open Tulip Shop again' })
    const tokens = await redeem(new URL((await link.getAttribute('href')) ?? ''))
    expect(tokens.claims()?.aud).toBe('shop')
  })

  test('speaks the language that the application asks for, as the sign-in page before it does', async () => {
    const redirect = await startClient()
    const metadata = { ...shop.metadata, redirect_uris: [redirect] }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata }) } })
    const { page } = await browser.open()
    const asked = { redirect_uri: redirect, ui_locales: 'xx de-AT fr' }
    const { address } = await request(await discover(url, metadata), asked)
    await page.goto(address)
    await page.getByRole('heading', { name: 'Anmelden', exact: true }).waitFor()
    await signIn(page, url)
    await page.goto(new URL(new URL(page.url()).searchParams.get('returnTo') ?? '', url).href)
    await page.getByRole('heading', { name: 'Bei Tulip Shop anmelden?' }).waitFor()

    // Also where the request goes on from there, once that is over.
    provokes(/400/)
    const addresses: string[] = []
    page.on('request', (call) => addresses.push(call.url()))
    await page.getByRole('button', { name: 'Erlauben' }).click()
    await page.waitForURL(`${redirect}?*`)
    await page.goto(addresses.find((each) => each.includes('/oidc/authorize/')) ?? '')
    await page.getByRole('heading', { name: 'Diese Anmeldung ist vorbei' }).waitFor()
  })

  test('shows application and account, and leads to another wallet and back', async () => {
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    const { page, trail } = await browser.open()
    const first = makeWallet()
    await signIn(page, url, first)
    await page.goto((await request(await discover(url), { scope: 'openid offline_access', prompt: 'consent' })).address)
    const card = page.locator('#consent')
    await card.getByText('You’ll continue to shop.example.').waitFor()
    expect(await card.locator('.who bdi').getAttribute('title')).toBe(first.address)
    expect(await card.getByRole('listitem').allTextContents()).toEqual([
      'Recognise you when you come back',
      'Stay connected for 90 days, even after you sign out',
    ])
    const weights = card
      .getByRole('listitem')
      .evaluateAll((all) => all.map((each) => getComputedStyle(each).fontWeight))
    expect(await weights).toEqual(['400', '650'])

    await card.getByRole('link', { name: 'Use another wallet' }).click()
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    const second = makeWallet()
    await signIn(page, url, second)
    await page.goto(url + new URL(page.url()).searchParams.get('returnTo'))
    await page.locator(`[title="${second.address}"]`).waitFor()
    expectNoFaults(trail)
  })

  test.each([
    ['on this device', 'You’ll continue to an application on this device.'],
    ['elsewhere', 'You’ll continue to elsewhere.example.'],
  ])('of a client with a document names its host, as not checked, and where the answer goes: %s', async (to, place) => {
    const page = await issuerStates[`consent for a client with a document, ${to}`]?.({
      locale: 'en-GB',
      open: async () => (await browser.open()).page,
      serve: async (settings) => (await startService(settings)).url,
    })
    const card = page?.locator('#consent')
    await card?.getByRole('heading', { name: 'Sign in to Tulip Agent?' }).waitFor()
    const said = await Promise.all(
      ['document', 'place'].map((slot) => card?.locator(`[data-slot=${slot}]`).textContent()),
    )
    expect(said).toEqual(['agent.clients.example published this application. Countersign hasn’t checked it.', place])
  })

  test('has a way out of a sign-out: back to the application, or to the account', async () => {
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    const { page } = await browser.open()
    await signIn(page, url)
    const cancel = page.getByRole('link', { name: 'Cancel' })
    await page.goto(`${url}/api/auth/oidc/logout?client_id=shop`)
    expect(await cancel.getAttribute('href')).toBe('https://shop.example')
    await page.goto(`${url}/api/auth/oidc/logout`)
    await cancel.click()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
  })

  test('sends an answer again that did not arrive, and says so in the user’s language alone', async () => {
    provokes(/ERR_FAILED|502/)
    const redirect = await startClient()
    const metadata = { ...shop.metadata, redirect_uris: [redirect] }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata }) } })
    const { page } = await browser.open({ locale: 'de-DE' })
    await signIn(page, url)
    await page.goto((await request(await discover(url, metadata), { redirect_uri: redirect })).address)
    const consent = page.url()
    const notice = page.locator('#notice p')
    await page.route(consent, (route) => route.abort())
    await page.getByRole('button', { name: 'Erlauben' }).click()
    await notice.getByText('Der Anmeldedienst ist nicht erreichbar.').waitFor()
    // A proxy in front.
    await page.route(consent, (route) => route.fulfill({ status: 502, body: '<h1>Bad Gateway</h1>' }))
    await page.getByRole('button', { name: 'Noch einmal versuchen' }).click()
    await notice.getByText('Der Dienst hatte einen Fehler.').waitFor()
    await page.unrouteAll()
    await page.getByRole('button', { name: 'Noch einmal versuchen' }).click()
    await page.waitForURL(`${redirect}?*`)
  })

  test('asks to be loaded again once the user has signed in with another wallet elsewhere', async () => {
    provokes(/400/)
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    const { page } = await browser.open()
    await signIn(page, url)
    await page.goto((await request(await discover(url))).address)
    const other = makeWallet()
    await signIn(page, url, other)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByText('This page is out of date. Load it again.').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator(`[title="${other.address}"]`).waitFor()
  })

  describe.each([
    ['en-GB', /\b(is|are|do|does|will|can|you) (not|are|will)\b/],
    ['de-DE', /\b(the|you|and|sign|error)\b/i],
  ])('in %s', (locale, foreign) => {
    test.each(Object.entries(issuerEndings))('%s names site and time, and leads on', async (_, reach) => {
      provokes(/400|403|429|503/)
      const page = await reach({
        locale,
        open: async (device) => (await browser.open({ ...device, locale })).page,
        serve: async (settings) => (await startService({ appName: 'Backhaus', ...settings })).url,
      })
      const ending = page.locator('#ending')
      expect(await ending.getByText(/^localhost:\d+ · \d\d:\d\d$/).count()).toBe(1)
      const ways = ending.locator('#ways > :is(a[href], button)')
      expect(await ways.count()).toBeGreaterThan(0)
      const texts = await ending.locator(':scope > :not([data-slot=detail]), #ways > *').allInnerTexts()
      expect(texts.filter((text) => foreign.test(text))).toEqual([])
    })
  })

  test('takes no consent from a trusted page of a sibling host, to which the browser sends the cookies along', async () => {
    provokes(/interaction/)
    const sibling = createServer((_call, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>sibling</title>')
    })
    const app = `http://app.shop.localhost:${await listen(sibling)}`
    const port = await freePort()
    const publicUrl = `http://auth.shop.localhost:${port}`
    const trustedOrigins = [publicUrl, app]
    const { url } = await startService({ oidc: { clients: clientsFile(shop) }, port, publicUrl, trustedOrigins })
    const { page } = await browser.open()
    const { json } = await rest(url, '/wallet/nonce', {}, { origin: publicUrl })
    const { headers, json: signedIn } = await rest(url, '/wallet/verify', proofOf(makeWallet(), json), {
      origin: publicUrl,
    })
    const [name = '', value = ''] = (headers.get('set-cookie') ?? '').split(/[=;]/)
    await page.context().addCookies([{ name, value, url: publicUrl, httpOnly: true, sameSite: 'Lax' }])
    const query = new URLSearchParams({
      client_id: 'shop',
      redirect_uri: shop.metadata.redirect_uris[0] ?? '',
      response_type: 'code',
      scope: 'openid',
      code_challenge: 'A'.repeat(43),
      code_challenge_method: 'S256',
    })
    const asked = `${publicUrl}/api/auth/oidc/authorize?${query}`
    await page.goto(asked)
    await page.getByRole('button', { name: 'Allow' }).waitFor()
    const consent = page.url()
    await page.goto(app)
    const input = JSON.stringify({ allow: true, sessionId: signedIn.session.id, scopes: ['openid'] })
    const answers: number[] = []
    page.on('response', (response) => response.url() === consent && answers.push(response.status()))
    const outcomes = await page.evaluate(
      async ({ consent, session, input }) => {
        const call = (address: string, init: RequestInit) =>
          fetch(address, { credentials: 'include', ...init }).then(
            ({ ok }) => ok,
            () => false,
          )
        const post = (mode: RequestMode, type: string) =>
          call(consent, { method: 'POST', mode, headers: { 'content-type': type }, body: input })
        return [await call(session, {}), await post('no-cors', 'text/plain'), await post('cors', 'application/json')]
      },
      { consent, session: `${publicUrl}/api/auth/session`, input },
    )
    // The first shows that the browser sends the session along.
    expect(outcomes).toEqual([true, false, false])
    expect(answers).toContain(403)
    await page.goto(asked)
    await page.getByRole('button', { name: 'Allow' }).waitFor()
  })
})
