import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { verifyProofArtifact } from '../../src/integrations/proof/index.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { phoneSize, seen } from './approval-steps.ts'
import { phoneClient } from './client/phone.ts'
import { Desktop } from './desktop.ts'
import { expectHeading, handOverLink, keepCookie, signIn } from './flows.ts'
import { Ask, asking, signInUser, signInWithDemoWallet } from './inbox-steps.ts'
import {
  expectAccessible,
  expectNoFaults,
  expectNoSidewaysScroll,
  hasBrowser,
  provokes,
  tap,
  useBrowser,
} from './support.ts'

const phone = { viewport: phoneSize, isMobile: true, hasTouch: true }
const empty = 'You’re all caught up.'

const inbox = (url: string, query = ''): string => `${url}/api/auth/inbox${query}`
const requests = (page: Page) => page.getByRole('listitem')
/** The requests of a page for the list. */
const looks = (trail: { readonly requests: readonly { readonly url: string }[] }) =>
  trail.requests.filter(({ url }) => url.endsWith('/inbox/orders')).length

describe.skipIf(!hasBrowser)('the inbox', () => {
  const browser = useBrowser()

  test('from the link of a message, a request is approved in two taps, and the backend has its proof', async () => {
    const { url } = await startService(asking)
    const { page, trail } = await browser.open(phone)
    const userId = await signInWithDemoWallet(page, url)
    const ask = await Ask.start(url, userId)
    await page.goto(ask.order.approvalUrl)
    await page.getByRole('heading', { name: 'Delete the database' }).waitFor()
    expect(await requests(page).textContent()).toMatch(/^Asked by ops-agent.*Delete the database.*Expires in/)
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await page.getByRole('heading', { name: 'Approve this request?' }).waitFor()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    const shown = await seen(page)
    for (const text of [
      'ops-agent · http://localhost:',
      'delete_database',
      'orders-eu',
      '4.2',
      'Keep backup',
      'unused for 90 days',
    ]) {
      expect(shown).toContain(text)
    }
    for (const text of ['countersign/action', 'b3BhcXVlLW5vbmNl', 'code', 'computer']) expect(shown).not.toContain(text)
    expect(await page.locator('#countdown').textContent()).toMatch(/^Expires in (1 hr|60:00|59:\d\d)$/)
    await expectAccessible(page, 'review')
    await tap(page.getByRole('button', { name: 'Approve' }))
    await expectHeading(page, 'Approved')
    const { json } = await ask.finalize()
    const proof = await verifyProofArtifact(json.proofArtifact, { appName: 'Countersign', origin: url })
    expect(proof.payload).toContain('"tool":"delete_database"')
    await expectHeading(page, 'The site has your approval')
    await page.getByRole('link', { name: 'Your requests' }).click()
    await page.getByText(empty).waitFor()
    expectNoFaults(trail)
  })

  test('shows a request within six seconds on the open page, and takes it away once it is withdrawn', async () => {
    const { url } = await startService(asking)
    const { page, trail } = await browser.open(phone)
    const userId = await signInUser(page, url)
    await page.goto(inbox(url))
    await page.getByText(empty).waitFor()
    await expectAccessible(page, 'empty')
    const ask = await Ask.start(url, userId)
    await requests(page).waitFor()
    expect(await page.title()).toMatch(/^\(1\) Your requests/)
    expect(await page.locator('#count').textContent()).toBe('Waiting for you: 1')
    await Ask.start(url, userId, { displayTitle: 'A newer one' })
    await requests(page).nth(1).waitFor()
    expect(await requests(page).first().textContent()).toContain('A newer one')
    await expectAccessible(page, 'list')
    await expectNoSidewaysScroll(page, 'list')
    await ask.cancel()
    await expect.poll(() => requests(page).count()).toBe(1)
    expectNoFaults(trail)
  })

  test.skipIf(redisUrl === undefined)('shows a request that began at another instance', async () => {
    await using redis = await RedisServer.start()
    const store = redis.url
    const port = await freePort()
    const publicUrl = `http://localhost:${port}`
    const secret = 'a secret of the two instances of a test'
    await startService({ ...asking, store, secret, port, publicUrl })
    const other = await startService({ ...asking, store, secret, publicUrl })
    const { page } = await browser.open(phone)
    const userId = await signInUser(page, publicUrl)
    await page.goto(inbox(publicUrl))
    await page.getByText(empty).waitFor()
    await Ask.start(other.url, userId, { requester: { origin: publicUrl } })
    await requests(page).waitFor()
  })

  test('asks nothing while it is hidden, and at once when it is seen again', async () => {
    const { url } = await startService(asking)
    const { page, trail } = await browser.open(phone)
    const userId = await signInUser(page, url)
    await page.goto(inbox(url))
    await page.getByText(empty).waitFor()
    await setVisibility(page, 'hidden')
    const before = looks(trail)
    await Ask.start(url, userId)
    await page.waitForTimeout(6000)
    expect(looks(trail)).toBe(before)
    await setVisibility(page, 'visible')
    await requests(page).waitFor({ timeout: 4000 })
    // Seen and hidden many times, it has one timer.
    for (let times = 0; times < 5; times++) {
      await setVisibility(page, 'hidden')
      await setVisibility(page, 'visible')
    }
    const from = looks(trail)
    await page.waitForTimeout(5500)
    expect(looks(trail) - from).toBeLessThanOrEqual(2)
  })

  test('a browser that a phone signed in sees no request, and is told how to', async () => {
    provokes(/403/)
    const { url } = await startService()
    const wallet = makeWallet()
    const desktop = await Desktop.start(url)
    const client = phoneClient(url, wallet)
    const order = await client.claimOrder(desktop.order.claimUrl)
    await client.approveOrder(order, { challenge: await client.getOrderChallenge(order) })
    const { page, trail } = await browser.open(phone)
    await keepCookie(page, url, await desktop.finalize())
    await page.goto(inbox(url))
    await expectHeading(page, 'Sign in here to see your requests')
    expect(looks(trail)).toBe(0)
    const link = await page.getByRole('link', { name: 'Sign in with a wallet' }).getAttribute('href')
    expect(link).toBe('/api/auth/sign-in?returnTo=%2Fapi%2Fauth%2Finbox&again=1')
  })

  test('without a session leads to the sign-in page, and from there back to the request', async () => {
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    const userId = await signInWithDemoWallet(page, url)
    const ask = await Ask.start(url, userId)
    await page.context().clearCookies()
    await page.goto(ask.order.approvalUrl)
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: /demo/i }).click()
    await page.getByRole('button', { name: 'Review the request' }).waitFor()
    expect(page.url()).toBe(ask.order.approvalUrl)
  })

  test('says that the session has ended, and asks no more', async () => {
    provokes(/401/)
    const { url } = await startService(asking)
    const { page, trail } = await browser.open(phone)
    const wallet = makeWallet()
    const token = await signIn(page, url, wallet)
    await page.goto(inbox(url))
    await page.getByText(empty).waitFor()
    await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
    await expectHeading(page, 'You’re signed out')
    const before = looks(trail)
    await page.waitForTimeout(5500)
    expect(looks(trail)).toBe(before)
  })

  test('keeps what it shows while the service is away, says so, and goes on by itself', async () => {
    provokes(/ERR_|503/)
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    const userId = await signInUser(page, url)
    await Ask.start(url, userId)
    await page.goto(inbox(url))
    await requests(page).waitFor()
    await page.context().setOffline(true)
    await page.getByText('You’re offline').waitFor()
    expect(await requests(page).count()).toBe(1)
    await page.context().setOffline(false)
    await page.locator('#notice').waitFor({ state: 'hidden' })
    await page.route('**/inbox/orders', (route) =>
      route.fulfill({ status: 503, json: { code: 'STORE_UNAVAILABLE', message: '' } }),
    )
    await page.getByText('temporarily unavailable').waitFor()
    await page.unroute('**/inbox/orders')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator('#notice').waitFor({ state: 'hidden' })
  })

  test.each([
    ['withdrawn', async (_url: string, ask: Ask) => void (await ask.cancel())],
    ['unknown', async () => 'zzzzzzzzzzzzzzzzzzzzzz'],
    ['another user’s', async (url: string) => (await anotherUsers(url)).order.orderId],
  ])('a link to a request that is %s has a plain end, and the way to the others', async (_, end) => {
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    const userId = await signInUser(page, url)
    const ask = await Ask.start(url, userId)
    await Ask.start(url, userId, { displayTitle: 'Another one' })
    const orderId = (await end(url, ask)) ?? ask.order.orderId
    await page.goto(inbox(url, `?order=${orderId}`))
    await page.getByRole('heading', { name: 'This request is over' }).waitFor()
    await expectAccessible(page, 'over')
    await page.getByRole('link', { name: 'All your requests' }).click()
    await requests(page).filter({ hasText: 'Another one' }).waitFor()
  })

  test('opening the page takes nothing: neither the inbox nor the address of an order claims', async () => {
    const { url } = await startService(asking)
    const { page, trail } = await browser.open(phone)
    const userId = await signInUser(page, url)
    const { orderId } = (await Ask.start(url, userId)).order
    await page.goto(inbox(url, `/${orderId}`))
    await page.waitForURL(`**/inbox?order=${orderId}`)
    await page.getByRole('button', { name: 'Review the request' }).waitFor()
    expect(trail.requests.filter(({ method }) => method !== 'GET')).toEqual([])
  })

  test('two phones claim: the newer goes on, and the older says so and can still cancel', async () => {
    provokes(/401/)
    const { url } = await startService(asking)
    const wallet = makeWallet()
    const open = async (): Promise<Page> => {
      const { page } = await browser.open(phone)
      userId = await signInUser(page, url, wallet)
      return page
    }
    let userId = ''
    const [first, second] = [await open(), await open()]
    const ask = await Ask.start(url, userId)
    for (const page of [first, second]) {
      await page.goto(ask.order.approvalUrl)
      await tap(page.getByRole('button', { name: 'Review the request' }))
      await page.getByRole('button', { name: 'Decline' }).waitFor()
    }
    await expectHeading(first, 'Continued in another browser')
    await tap(first.getByRole('button', { name: 'Cancel' }))
    await expectHeading(first, 'Cancelled')
    await expectHeading(second, 'This request was declined')
    expect((await ask.finalize()).json.code).toBe('ORDER_REJECTED')
  })

  test('whose session ends meanwhile leads to the sign-in page, and from there back to it', async () => {
    provokes(/401/)
    const { url } = await startService(asking)
    const wallet = makeWallet()
    const { page } = await browser.open(phone)
    const token = await signIn(page, url, wallet)
    const { json } = await rest(url, '/session', undefined, { authorization: `Bearer ${token}` })
    const ask = await Ask.start(url, json.session.userId)
    await page.goto(ask.order.approvalUrl)
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await page.getByRole('button', { name: 'Decline' }).waitFor()
    await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
    await page.waitForURL('**/api/auth/sign-in?**')
    await signIn(page, url, wallet)
    await page.goto(ask.order.approvalUrl)
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await page.getByRole('button', { name: 'Decline' }).waitFor()
  })

  test('handed over to another browser it is the same request, without a computer and without a code', async () => {
    const { url } = await startService({ ...asking, confirmationCode: 'return' })
    const [{ page }, other] = [await browser.open(phone), await browser.open(phone)]
    const ask = await Ask.start(url, await signInWithDemoWallet(page, url))
    await page.goto(ask.order.approvalUrl)
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await tap(page.getByRole('button', { name: 'Continue in another browser' }))
    await other.page.goto(await handOverLink(page))
    await tap(other.page.getByRole('button', { name: 'Continue', exact: true }))
    await other.page.getByRole('heading', { name: 'Approve this request?' }).waitFor()
    expect(await seen(other.page)).not.toMatch(/code|computer/)
    await expectHeading(page, 'Continued in another browser')
    await ask.cancel()
    await expectHeading(other.page, 'This request was withdrawn')
  })

  test('goes on after a reload and after a claim whose answer was lost', async () => {
    const { url } = await startService(asking)
    const { page, trail } = await browser.open(phone)
    await page.addInitScript(() => {
      const send = globalThis.fetch
      let isLost = false
      globalThis.fetch = async (...call) => {
        const answer = await send(...call)
        if (isLost || !answer.url.endsWith('/inbox/claim')) return answer
        isLost = true
        throw new TypeError('the answer is lost')
      }
    })
    const userId = await signInWithDemoWallet(page, url)
    const ask = await Ask.start(url, userId)
    await page.goto(ask.order.approvalUrl)
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await page.reload()
    await tap(page.getByRole('button', { name: 'Approve' }))
    await expectHeading(page, 'Approved')
    expect(trail.requests.filter(({ url: to }) => to.endsWith('/inbox/claim'))).toHaveLength(2)
  })

  test('a session that ends before the claim leads to the sign-in page and back to the request', async () => {
    provokes(/401/)
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    const userId = await signInUser(page, url)
    const ask = await Ask.start(url, userId)
    await page.goto(ask.order.approvalUrl)
    await page.getByRole('button', { name: 'Review the request' }).waitFor()
    await page.context().clearCookies()
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await page.waitForURL(/sign-in\?returnTo=.*inbox%3Forder%3D/)
  })

  test('declining ends it, and leads back to the list', async () => {
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    const userId = await signInWithDemoWallet(page, url)
    const ask = await Ask.start(url, userId)
    await page.goto(inbox(url))
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await tap(page.getByRole('button', { name: 'Decline' }))
    await expectHeading(page, 'Declined')
    expect((await ask.finalize()).json.code).toBe('ORDER_REJECTED')
    await page.getByRole('link', { name: 'Your requests' }).click()
    await page.getByText(empty).waitFor()
  })

  test('a wallet that the user added just now is refused, and the page says why', async () => {
    provokes(/403/)
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    // Its user's first wallet is not on this phone, which has the demo wallet.
    const userId = await signInUser(page, url)
    await page.goto(`${url}/api/auth/account`)
    await page.getByText('can’t approve requests in its first 24 hours').waitFor()
    await page.getByRole('button', { name: 'Add a wallet', exact: true }).click()
    await page.getByRole('button', { name: /demo/i }).click()
    await page.locator('#wallets li').nth(1).waitFor()
    const ask = await Ask.start(url, userId)
    await page.goto(ask.order.approvalUrl)
    await tap(page.getByRole('button', { name: 'Review the request' }))
    await tap(page.getByRole('button', { name: 'Approve' }))
    await page.getByText('added less than 24 hours before the request').waitFor()
    expect((await ask.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
  })

  test('the account page counts what waits', async () => {
    const { url } = await startService(asking)
    const { page } = await browser.open(phone)
    const userId = await signInUser(page, url)
    await page.goto(`${url}/api/auth/account`)
    await page.locator('#requests').getByText(empty).waitFor()
    await Ask.start(url, userId)
    await Ask.start(url, userId)
    await page.reload()
    await page.getByText('Waiting for you: 2').waitFor()
    await page.getByRole('link', { name: 'Open your requests' }).click()
    await requests(page).nth(1).waitFor()
  })
})

/** A request that waits for another user. */
async function anotherUsers(url: string): Promise<Ask> {
  const { json } = await rest(url, '/wallet/nonce', {})
  const { session } = (await rest(url, '/wallet/verify', proofOf(makeWallet(), json))).json
  return await Ask.start(url, session.userId)
}

/** Has a page be hidden or seen, as by switching to another app. */
async function setVisibility(page: Page, state: DocumentVisibilityState): Promise<void> {
  await page.evaluate((now) => {
    Object.defineProperty(document, 'visibilityState', { value: now, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, state)
}
