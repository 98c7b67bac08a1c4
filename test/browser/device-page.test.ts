import { describe, expect, test } from 'vitest'
import { allowCode, askCode, poll, pollError, startDevices } from '../oidc/devices.ts'
import { postForm } from '../oidc/support.ts'
import { signIn } from './flows.ts'
import { expectAccessible, expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'

describe.skipIf(!hasBrowser)('the page for codes of devices', () => {
  const browser = useBrowser()

  test('takes a code, leads to the sign-in page and back, asks, and signs the device in', async () => {
    const { url } = await startDevices({ pages: { demoWallet: true } })
    const { userCode, deviceCode } = await askCode(url, {}, { 'user-agent': 'tulip/1.2' })
    const { page, trail } = await browser.open()
    await page.goto(`${url}/device`)
    await page.getByRole('heading', { name: 'Sign in on a device' }).waitFor()
    await expectAccessible(page, 'code of a device')
    await page.getByLabel('Code').fill(userCode.toLowerCase())
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    await signIn(page, url)
    await page.goto(`${url}/device?back=1`)
    await page.getByRole('heading', { name: 'Sign in to Tulip CLI on a device?' }).waitFor()
    await page.getByText('Did you start this on a device of yours?').waitFor()
    for (const text of [userCode, 'A program (tulip)']) await page.getByText(text, { exact: true }).waitFor()
    await expectAccessible(page, 'consent for a device')
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Your device is signed in' }).waitFor()
    expect((await poll(url, deviceCode)).status).toBe(200)
    expectNoFaults(trail)
  })

  test('says that no device waits with a wrong code, and takes the next one', async () => {
    const { url } = await startDevices()
    const { userCode, deviceCode } = await askCode(url)
    const { page } = await browser.open()
    provokes(/400/)
    await page.goto(`${url}/device`)
    const field = page.getByLabel('Code')
    await field.pressSequentially('BBBB-BBB')
    // Read from left to right in any language, in two groups.
    await page.evaluate(() => document.documentElement.setAttribute('dir', 'rtl'))
    const places = await page
      .locator('.digits span')
      .evaluateAll((boxes) => boxes.map((box) => box.getBoundingClientRect().x))
    expect(places).toEqual([...places].sort((one, other) => one - other))
    expect((places[4] ?? 0) - (places[3] ?? 0)).toBeGreaterThan((places[3] ?? 0) - (places[2] ?? 0))
    await field.pressSequentially('B')
    const error = page.getByText('No device is waiting with this code.')
    await error.waitFor()
    const [boxes, text] = await Promise.all([page.locator('.digits').boundingBox(), error.boundingBox()])
    expect((text?.y ?? 0) - (boxes?.y ?? 0) - (boxes?.height ?? 0)).toBeLessThan(30)
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    expect(await field.evaluate((input) => document.activeElement === input)).toBe(true)
    await expectAccessible(page, 'wrong code of a device')
    await field.fill(userCode)
    await page.waitForURL('**/sign-in?**')
    expect(await pollError(url, deviceCode)).toBe('authorization_pending')
  })

  test('leaves a client without redirect URIs on the account page, which disconnects it', async () => {
    const { url } = await startDevices()
    const { userCode, deviceCode } = await askCode(url, { scope: 'openid offline_access' })
    const { wallet } = await allowCode(url, userCode)
    const { json: tokens } = await poll(url, deviceCode)
    const { page, trail } = await browser.open()
    await signIn(page, url, wallet)
    await page.goto(`${url}/api/auth/account`)
    await page.getByText('Tulip CLI', { exact: true }).waitFor()
    await expectAccessible(page, 'account with a device')
    await page.getByRole('button', { name: 'Disconnect: Tulip CLI' }).click()
    await page.getByRole('heading', { name: 'Connected applications' }).waitFor({ state: 'hidden' })
    const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id: 'tulip-cli' }
    expect((await postForm(url, 'token', form)).json.error).toBe('invalid_grant')
    expectNoFaults(trail)
  })
})
