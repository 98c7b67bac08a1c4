import { describe, expect, onTestFinished, test } from 'vitest'
import { RedisServer } from '../support/redis-server.ts'
import { spawnService, startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { makeWallet } from '../support/wallet.ts'
import { phoneClient } from './client/phone.ts'
import {
  addressOf,
  approvedHeading,
  expectAnswerAwaited,
  expectHeading,
  expectSignedIn,
  openForPhone,
  openOnPhone,
  qrCode,
  reviewOnPhone,
  signCard,
  signInCard,
} from './flows.ts'
import { hasBrowser, provokes, scan, useBrowser } from './support.ts'

const secret = 'a secret for tests and for nothing else'

describe.skipIf(!hasBrowser)('when something comes between', () => {
  const browser = useBrowser()

  /** A desktop with the demo of a service, and a phone that reviews its request. */
  async function reviewing(url?: string) {
    const [desktop, phone] = [await browser.open(), await browser.open()]
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url ?? (await startService()).url))
    return { desktop, phone }
  }

  test('an order that expires makes way for a new code; the phones are told', async () => {
    const { url } = await startService({ orderTtlSeconds: 10 })
    const desktop = await browser.open()
    const [early, late] = [await browser.open(), await browser.open()]
    const code = await openForPhone(desktop.page, url)
    const first = await openOnPhone(late.page, code)
    await signCard(desktop.page).getByRole('button', { name: 'Ask the phone' }).click()
    await reviewOnPhone(early.page, qrCode(signCard(desktop.page)))
    // One is reading when its order expires, the other comes after it did.
    await expectHeading(early.page, 'This request has expired')
    await expect.poll(async () => await scan(code).catch(() => first), { timeout: 20_000 }).not.toBe(first)
    await expectHeading(late.page, 'This request has expired')
    // Without a page: on a busy machine, the steps there may take longer than the new order lives.
    const wallet = makeWallet()
    const phone = phoneClient(url, wallet)
    const claim = await phone.claimOrder(await scan(code))
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    await expectSignedIn(desktop.page, wallet.address)
  })

  test('the phone is offline for a while in the middle', async () => {
    provokes(/net::ERR/)
    const { desktop, phone } = await reviewing()
    await phone.page.context().setOffline(true)
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await phone.page.getByText('You’re offline').waitFor()
    await phone.page.waitForTimeout(1000)
    await phone.page.context().setOffline(false)
    await expectHeading(phone.page, approvedHeading)
    await expectSignedIn(desktop.page)
  })

  test('a decline counts while an approval is held up', async () => {
    provokes(/net::ERR/)
    const { desktop, phone } = await reviewing()
    await phone.page.context().setOffline(true)
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await phone.page.getByText('You’re offline').waitFor()
    await phone.page.getByRole('button', { name: 'Decline' }).click()
    await phone.page.context().setOffline(false)
    await expectHeading(phone.page, 'Declined')
    await signInCard(desktop.page).getByText('Declined on the phone').waitFor()
  })

  test('the phone reloads the page in the middle', async () => {
    const { desktop, phone } = await reviewing()
    await phone.page.reload()
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(phone.page, approvedHeading)
    await expectSignedIn(desktop.page)
    // What the tab keeps from now on is for taking it back.
    await phone.page.reload()
    await expectHeading(phone.page, 'Your computer is signed in')
    await phone.page.getByRole('button', { name: 'Sign that computer out' }).click()
    await expectHeading(phone.page, 'Signed out')
    await phone.page.reload()
    await expectHeading(phone.page, 'This link is incomplete')
  })

  test('a wallet in the page signs; when its user declines there, nothing is lost', async () => {
    const { url } = await startService()
    const wallet = makeWallet()
    const desktop = await browser.open()
    const phone = await browser.open()
    let asked = 0
    await phone.page.exposeFunction('signForTest', (message: string) =>
      ++asked === 1
        ? { error: { type: 'PermissionDenied', message: 'The user said no' } }
        : { publicKey: wallet.publicKeyHex, signature: wallet.sign(message) },
    )
    await phone.page.addInitScript(() => {
      // biome-ignore lint/suspicious/noExplicitAny: a wallet app puts its provider into the window.
      const page = globalThis as any
      page.nimiq = { sign: (message: string) => page.signForTest(message), listAccounts: async () => [] }
    })
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    await phone.page.locator('#signer').getByText('Nimiq Pay').waitFor()
    expect(await phone.page.getByText('Demo wallet').filter({ visible: true }).count()).toBe(0)
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await phone.page.getByText('You declined in your wallet').waitFor()
    // What it signs after that is signed once, though the answer to the call is lost.
    const approveCall = '**/cross-device/approve'
    await phone.page.route(approveCall, (route) =>
      route.fulfill({ contentType: 'text/html', body: 'Log in to the Wi-Fi' }),
    )
    await phone.page.getByRole('button', { name: 'Try again' }).click()
    await phone.page.getByText('Something went wrong').waitFor()
    await phone.page.unroute(approveCall)
    await phone.page.getByRole('button', { name: 'Try again' }).click()
    await expectHeading(phone.page, approvedHeading)
    // Its answer names no address, but has a key.
    expect(await phone.page.locator('#outcome-who bdi').getAttribute('title')).toBe(wallet.address)
    await expectSignedIn(desktop.page, wallet.address)
    expect(asked).toBe(2)
  })

  describe.skipIf(redisUrl === undefined)('on Redis', () => {
    test('the desktop’s instance is killed: its stream goes on from another', async () => {
      provokes(/net::ERR/)
      const proxy = await startTcpProxy(0)
      const publicUrl = `http://localhost:${proxy.port}`
      const leadTo = (instance: { readonly url: string }) => {
        proxy.targetPort = Number(new URL(instance.url).port)
      }
      const environment = {
        COUNTERSIGN_STORE: await redisUrl!(),
        COUNTERSIGN_SECRET: secret,
        COUNTERSIGN_PUBLIC_URL: publicUrl,
      }
      const [one, two] = await Promise.all([spawnService(environment), spawnService(environment)])
      leadTo(one)
      const { desktop, phone } = await reviewing(publicUrl)
      await expectAnswerAwaited(signInCard(desktop.page))
      const wallet = await addressOf(phone.page)
      await one.stop('SIGKILL')
      leadTo(two)
      await phone.page.getByRole('button', { name: 'Approve' }).click()
      await expectHeading(phone.page, approvedHeading)
      await expectSignedIn(desktop.page, wallet)
      expect(desktop.trail.requests.filter(({ url }) => url === `${publicUrl}/`)).toHaveLength(1)
    })

    test('the store is away for a while: the page keeps trying', async () => {
      provokes(/503/)
      const redis = await RedisServer.start()
      onTestFinished(() => redis[Symbol.asyncDispose]())
      const { url } = await startService({ store: redis.url, secret })
      const { desktop, phone } = await reviewing(url)
      redis.freeze()
      await phone.page.getByRole('button', { name: 'Approve' }).click()
      await phone.page.getByText('Still trying').waitFor()
      redis.thaw()
      await expectHeading(phone.page, approvedHeading)
      await expectSignedIn(desktop.page)
      expect(await qrCode(signInCard(desktop.page)).count()).toBe(0)
    })
  })
})
