import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clientsFile, discover, request, shop } from '../oidc/support.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { expectAccessible, expectNoFaults, hasBrowser, useBrowser } from './support.ts'

/** A client's server, which says what it was called with. */
async function startClient(): Promise<string> {
  const server = createServer((call, response) => response.end(`called: ${call.url}`)).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
}

describe.skipIf(!hasBrowser)('the page of the issuer', () => {
  const browser = useBrowser()

  test('asks for consent and leads on, and asks before a sign-out and leads back', async () => {
    const redirect = await startClient()
    const metadata = { ...shop.metadata, redirect_uris: [redirect], post_logout_redirect_uris: [`${redirect}/bye`] }
    const { url } = await startService({ oidcClients: clientsFile({ metadata }) })
    const { page, trail } = await browser.open()
    const { json } = await rest(url, '/wallet/nonce', {})
    const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), json))
    const [name = '', value = ''] = (headers.get('set-cookie') ?? '').split(/[=;]/)
    await page.context().addCookies([{ name, value, url, httpOnly: true, sameSite: 'Lax' }])

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
    expect((await page.context().cookies(url)).map((cookie) => cookie.name)).not.toContain(name)
    expectNoFaults(trail)
  })

  test('of a request for a new sign-in is the sign-in page with its ways, although the user is signed in', async () => {
    const { url } = await startService({ oidcClients: clientsFile(shop) })
    const { page } = await browser.open()
    const { json } = await rest(url, '/wallet/nonce', {})
    const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), json))
    const [name = '', value = ''] = (headers.get('set-cookie') ?? '').split(/[=;]/)
    await page.context().addCookies([{ name, value, url, httpOnly: true, sameSite: 'Lax' }])
    const { address } = await request(await discover(url), { prompt: 'login' })
    await page.goto(address)
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
  })
})
