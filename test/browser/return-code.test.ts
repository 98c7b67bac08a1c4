import type { Locator, Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
import { expectHeading, expectSignedIn, openForPhone, qrCode, signCard, signInCard, signInCode } from './flows.ts'
import { expectNoFaults, hasBrowser, look, provokes, scan, useBrowser } from './support.ts'

const desktopSize = { width: 1280, height: 900 }
const field = (card: Locator): Locator => card.getByLabel('Code on your phone')
const knownComputers = (desktop: Page): Locator => desktop.locator('#computers')

/** An order that a phone holds, and the code that it shows. */
interface HeldOrder {
  readonly phone: { readonly orderId: string; readonly challengeToken: string }
  readonly returnCode: string | undefined
}

/** Scans the code and approves, as a phone does. */
async function approve(url: string, wallet: TestWallet, code: Locator, rememberComputer = false): Promise<HeldOrder> {
  const claimUrl = new URL(await scan(code))
  const orderId = claimUrl.pathname.split('/').at(-1)!
  const claimToken = new URLSearchParams(claimUrl.hash.slice(1)).get('token')
  const { challengeToken } = (await rest(url, '/cross-device/claim', { orderId, claimToken })).json
  const phone = { orderId, challengeToken }
  const authorization = `Bearer ${challengeToken}`
  const challenge = (await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, { authorization })).json
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(challenge.message) }
  const { json } = await rest(url, '/cross-device/approve', { ...phone, proof, rememberComputer })
  expect(json.status).toBe('approved')
  return { phone, returnCode: json.returnCode }
}

/** Signs the desktop in with a phone that lets the computer be remembered. */
async function signInAndRemember(desktop: Page, url: string, wallet: TestWallet): Promise<HeldOrder> {
  const held = await approve(url, wallet, await openForPhone(desktop, url), true)
  await field(signInCard(desktop)).fill(held.returnCode!)
  await expectSignedIn(desktop, wallet.address)
  return held
}

async function signOut(desktop: Page): Promise<void> {
  await desktop.getByRole('button', { name: 'Sign out' }).click()
  await expectHeading(desktop, 'Sign in')
}

describe.skipIf(!hasBrowser)('a desktop that takes return codes', () => {
  const browser = useBrowser()
  // Another one for each test, because computers are known for a wallet.
  let wallet = makeWallet()
  beforeEach(() => {
    wallet = makeWallet()
  })

  test('needs no code once the phone let it be remembered, for either kind of order, until it is forgotten', async () => {
    const { url } = await startService({ confirmationCode: 'return' })
    const { page, trail } = await browser.open({ viewport: desktopSize })
    await signInAndRemember(page, url, wallet)
    const computer = knownComputers(page).getByText('this computer')
    await computer.waitFor()
    await look(page, 'demo-known-computer')

    await signCard(page).getByRole('button', { name: 'Ask the phone' }).click()
    await qrCode(signCard(page)).waitFor()
    expect((await approve(url, wallet, qrCode(signCard(page)))).returnCode).toBe(undefined)
    await signCard(page).getByText('the signature is valid').waitFor()

    await signOut(page)
    expect((await approve(url, wallet, await signInCode(page))).returnCode).toBe(undefined)
    await expectSignedIn(page, wallet.address)

    await knownComputers(page).getByRole('button', { name: 'Forget: Chrome on Linux' }).click()
    await expect.poll(() => knownComputers(page).isVisible()).toBe(false)
    await expectHeading(page, 'Where you’re signed in')
    await signOut(page)
    expect((await approve(url, wallet, await signInCode(page))).returnCode).toMatch(/^\d{6}$/)
    expectNoFaults(trail)
  })

  test('is another computer for every browser, although it presents the public key of a known one', async () => {
    provokes(/401 .*(session|FinalizeOrder)/)
    const { url } = await startService({ confirmationCode: 'return' })
    const victim = (await browser.open()).page
    const started = victim.waitForRequest((request) => request.url().endsWith('/StartOrder'))
    await signInAndRemember(victim, url, wallet)
    const { computerKey } = (await started).postDataJSON()

    const attacker = (await browser.open()).page
    // The attacker's browser sends the victim's key in place of its own.
    await attacker.route('**/*OrderService/StartOrder', (route) =>
      route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), computerKey }) }),
    )
    expect((await approve(url, wallet, await openForPhone(attacker, url))).returnCode).toBe(undefined)
    await signInCard(attacker).getByText('was cleared in the meantime. Start again.').waitFor()
    expect(await attacker.evaluate(async () => (await fetch('/api/auth/session')).status)).toBe(401)
  })

  test('is signed out by the phone that approved it, and no longer known', async () => {
    provokes(/401 .*(session|ForgetKnownComputer)/)
    const { url } = await startService({ confirmationCode: 'return' })
    const { page } = await browser.open({ viewport: desktopSize })
    const { phone } = await signInAndRemember(page, url, wallet)
    const takenBack = await rest(url, '/cross-device/reject', phone)
    expect(takenBack.json).toMatchObject({ status: 'finalized', sessionEnded: true })
    await knownComputers(page).getByRole('button', { name: 'Forget: Chrome on Linux' }).click()
    await page.getByText('You’re signed out: this session was ended on the phone').waitFor()
    expect(await page.getByRole('region', { name: 'You’re signed in', exact: true }).isVisible()).toBe(false)
    await look(page, 'demo-taken-back')
    expect(await page.evaluate(async () => (await fetch('/api/auth/session')).status)).toBe(401)

    const { returnCode } = await approve(url, wallet, await signInCode(page))
    await field(signInCard(page)).fill(returnCode!)
    await expectSignedIn(page, wallet.address)
    expect(await page.getByText('You’re signed out').isVisible()).toBe(false)
  })
})
