import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { lanHosts } from '../../src/service/lan.ts'
import { type ServiceProcess, spawnService, startService } from '../support/service.ts'
import {
  approvedHeading,
  expectAnswerAwaited,
  expectSignedIn,
  openForPhone,
  qrCode,
  reviewOnPhone,
  showWallets,
  signCard,
  signInCard,
  signInCode,
} from './flows.ts'
import {
  expectAccessible,
  expectNoFaults,
  expectNoSidewaysScroll,
  hasBrowser,
  look,
  provokes,
  scan,
  useBrowser,
} from './support.ts'

const [lanHost] = lanHosts()
if (lanHost === undefined) console.warn('NOT TESTED: the first scan over a network, because this machine is in none')

/** A phone, as far as a page can tell. */
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 }

const noWallet = 'No wallet extension found. You can still use:'
const thisComputerOnly = 'A phone can’t open this code: it leads to localhost, which is this computer.'

async function startOnLan(): Promise<{ here: string; lan: string; service: ServiceProcess }> {
  const service = await spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:' }, ['--lan'])
  return { here: service.url, lan: `http://${lanHost}:${new URL(service.url).port}`, service }
}

describe.skipIf(!hasBrowser)('a new user', () => {
  const { open } = useBrowser()

  test.skipIf(lanHost === undefined)('scans the code of a fresh --lan with a phone and is signed in', async () => {
    // On plain http, which --lan is for trying things out with.
    provokes(/Opener-Policy header has been ignored/)
    const { here, lan } = await startOnLan()
    const desktop = await open()
    const device = await open(phone)
    const code = await openForPhone(desktop.page, here)
    expect(await signInCard(desktop.page).textContent()).not.toContain(thisComputerOnly)
    const claimUrl = await reviewOnPhone(device.page, code)
    expect(new URL(claimUrl).origin).toBe(lan)
    await device.page.getByText('Demo wallet: for trying this out, not a real one').waitFor()
    await device.page.getByRole('button', { name: 'Approve' }).click()
    await device.page.getByRole('heading', { name: approvedHeading }).waitFor()
    await expectSignedIn(desktop.page)
    expectNoFaults(desktop.trail, device.trail)
  })

  test.skipIf(lanHost === undefined)('who has no clipboard gets the link as text to select', async () => {
    // On plain http, which --lan is for trying things out with.
    provokes(/Opener-Policy header has been ignored/)
    const { lan } = await startOnLan()
    const desktop = await open()
    const device = await open(phone)
    const code = await openForPhone(desktop.page, lan)
    const link = signInCard(desktop.page).getByLabel('Sign-in link')
    expect(await link.inputValue()).toBe(await scan(code))
    expect(await signInCard(desktop.page).getByRole('button', { name: /copy/i }).count()).toBe(0)
    await link.focus()
    expect(await link.evaluate((field: HTMLInputElement) => [field.selectionStart, field.selectionEnd])).toEqual([
      0,
      (await link.inputValue()).length,
    ])
    await expectAccessible(desktop.page, 'the demo without a clipboard')
    await reviewOnPhone(device.page, code)
    await expectAnswerAwaited(signInCard(desktop.page))
    expect(await link.count()).toBe(0)
    expectNoFaults(desktop.trail, device.trail)
  })

  test('reads on a loopback name that the code works on this computer only, and what to run', async () => {
    const { url } = await startService()
    const desktop = { viewport: { width: 1280, height: 900 } }
    const narrow = { viewport: { width: 390, height: 844 } }
    const tablet = { viewport: { width: 820, height: 1180 }, hasTouch: true, isMobile: true }
    for (const device of [desktop, narrow, tablet]) {
      const { page, trail } = await open(device)
      await openForPhone(page, url)
      await signInCard(page).getByText(thisComputerOnly).waitFor()
      const note = signInCard(page).getByText('To try it with a phone, start with')
      expect(await note.textContent()).toContain('npm start -- --lan')
      // The steps would contradict it.
      expect(await signInCard(page).getByRole('listitem').count()).toBe(0)
      expect(await signInCard(page).getByRole('link', { name: 'Open here' }).count()).toBe(0)
      await expectNoSidewaysScroll(page, 'the demo on this computer only')
      expectNoFaults(trail)
    }
  })

  test('reads the same under a code for something to sign', async () => {
    const { url } = await startService()
    const { page } = await open()
    await page.goto(url)
    const [signing, asking] = [signInCard(page), signCard(page)]
    await signing.waitFor()
    // What works at once comes first, in the window, with the whole width; the other says what it needs.
    const [first, second] = await Promise.all([signing.boundingBox(), asking.boundingBox()])
    expect([first?.x, first?.width]).toEqual([second?.x, second?.width])
    const button = await signing.getByRole('button').first().boundingBox()
    expect(button?.y).toBeLessThan(600)
    await asking.getByText('To try it with a phone, start with npm start -- --lan').waitFor()
    await asking.getByRole('button', { name: 'Ask the phone' }).click()
    await asking.getByText(thisComputerOnly).waitFor()
  })

  test('on a phone gets a code for another device on request, and can open its link on the phone itself', async () => {
    const { url } = await startService()
    const userAgent = 'Mozilla/5.0 (Linux; Android 15) Chrome/142.0.0.0 Mobile Safari/537.36'
    const { page, trail } = await open({ ...phone, userAgent })
    await page.goto(url)
    const card = signInCard(page)
    await card.getByRole('button', { name: 'Use another device' }).click()
    const link = card.getByRole('link', { name: 'Open here' })
    await link.waitFor()
    expect(await qrCode(card).isVisible()).toBe(true)
    await look(page, 'demo-on-a-phone')
    const opened = page.waitForEvent('popup')
    await link.click()
    const approval = await opened
    await approval.getByRole('button', { name: 'Continue', exact: true }).click()
    await approval.getByRole('button', { name: 'Approve' }).click()
    await approval.getByRole('heading', { name: approvedHeading }).waitFor()
    await expectSignedIn(page)
    expectNoFaults(trail)
  })

  test('is offered no demo wallet if it is off: no page has one, makes one or keeps a key', async () => {
    const { url } = await startService({ pages: { demoWallet: false } })
    const desktop = await open()
    await desktop.page.goto(url)
    await showWallets(desktop.page)
    await desktop.page.getByText(noWallet).waitFor()
    expect(await desktop.page.getByText('Demo wallet').filter({ visible: true }).count()).toBe(0)
    const device = await open(phone)
    await device.page.goto(await scan(await signInCode(desktop.page)))
    await device.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await device.page.getByText(noWallet).waitFor()
    expect(await device.page.getByRole('button', { name: 'Decline' }).isVisible()).toBe(true)
    expect(await device.page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false)
    for (const { page } of [desktop, device]) {
      expect(await keptKeys(page)).toEqual([])
      // As left behind by a service that offered it.
      await page.evaluate(() => localStorage.setItem('countersign.demo-wallet', '11'.repeat(32)))
      await page.reload()
      await expect.poll(() => keptKeys(page)).toEqual([])
    }
    expectNoFaults(desktop.trail, device.trail)
  })

  test('is offered none on https, even by a service that does not know that a proxy has put it there', async () => {
    provokes(/403 .*(IssueNonce|StartOrder)/)
    const { url } = await startService()
    const { page } = await open()
    await page.context().route('https://wallet.example/**', async (route) => {
      const { pathname } = new URL(route.request().url())
      await route.fulfill({ response: await route.fetch({ url: url + pathname }) })
    })
    await page.goto('https://wallet.example/')
    await showWallets(page)
    await page.getByText(noWallet).waitFor()
    expect(await keptKeys(page)).toEqual([])
    await page.goto(url)
    await showWallets(page)
    await page.getByRole('button', { name: 'Demo wallet' }).waitFor()
    expect(await keptKeys(page)).toEqual(['countersign.demo-wallet'])
  })
})

/** What a page keeps that could be a wallet's. */
async function keptKeys(page: Page): Promise<string[]> {
  return await page.evaluate(() => Object.keys(localStorage).filter((key) => key.endsWith('-wallet')))
}
