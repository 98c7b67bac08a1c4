import { describe, expect, test } from 'vitest'
import { expectAccessible, hasBrowser, scan, screenshot, useBrowser } from '../support.ts'
import { answer, code, detailOf, seen, setUp, status, wallet } from './steps.ts'

describe.runIf(hasBrowser)('<countersign-sign-in> in Chromium', () => {
  const browser = useBrowser()

  test('signs a desktop in with a phone that scans its code', async () => {
    const { url, phone, show } = await setUp()
    const { page, trail } = await browser.open()
    await show(
      page,
      `<countersign-sign-in base-url="${url}" display-title="Sign in to Tally" return-to="/desk" token-storage></countersign-sign-in>`,
      url,
    )
    await code(page).waitFor()
    await page
      .getByRole('timer')
      .filter({ hasText: /Expires in (2:00|1:[345]\d)/ })
      .waitFor()
    await expectAccessible(page, 'scan')
    await screenshot(page, 'element-scan')
    // What to do, step by step, as long as no phone has scanned the code; and that no phone can scan this one.
    const steps = page.getByRole('listitem')
    expect(await steps.allTextContents()).toEqual([
      'Open your phone’s camera',
      'Scan the code and open the page',
      'Approve with your wallet',
    ])
    const hint = page.getByText('A phone can’t open this code: it leads to localhost, which is this computer.')
    expect(await hint.isVisible()).toBe(true)

    const claim = await phone.claimOrder(await scan(code(page)))
    const challenge = await phone.getOrderChallenge(claim)
    await status(page).filter({ hasText: 'Compare the confirmation code' }).waitFor()
    expect([await steps.count(), await hint.isVisible()]).toEqual([0, false])
    expect(await page.locator('[part=code] span').first().textContent()).toBe(challenge.confirmationCode)
    expect(await code(page).count()).toBe(0)
    await expectAccessible(page, 'answer')
    await screenshot(page, 'element-answer')

    await phone.approveOrder(claim, { challenge })
    const detail = await detailOf(page, 'countersign:signed-in')
    expect(detail).toMatchObject({ kind: 'login', redirectTo: '/desk', session: { address: wallet.address } })
    await status(page).filter({ hasText: 'Done.' }).waitFor()
    await screenshot(page, 'element-done')
    expect(
      (await seen(page)).filter(({ type }) => type === 'countersign:status').map((one) => one.detail.status),
    ).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized'])
    expect(await page.evaluate('localStorage.getItem("countersign.token")')).toBe(detail.token)
    expect(trail.faults).toEqual([])
    expect(trail.requests.filter((request) => /cs[a-z]_/.test(request.url + request.referer))).toEqual([])
  })

  test('puts no token into the DOM, in any state', async () => {
    const { url, phone, show } = await setUp()
    const { page } = await browser.open()
    await show(page, '', url)
    // Every text and attribute that the element ever had.
    await page.evaluate((baseUrl) => {
      const element = document.createElement('countersign-sign-in')
      element.setAttribute('base-url', baseUrl)
      document.querySelector('main')?.append(element)
      const texts: string[] = []
      Reflect.set(globalThis, 'texts', texts)
      const note = (): void => void texts.push(element.outerHTML, element.shadowRoot?.innerHTML ?? '')
      const options = { subtree: true, childList: true, attributes: true, characterData: true }
      const observer = new MutationObserver(note)
      observer.observe(element, options)
      observer.observe(element.shadowRoot as ShadowRoot, options)
    }, url)
    await code(page).waitFor()
    await answer(phone, await scan(code(page)), true)
    await detailOf(page, 'countersign:signed-in')
    const texts = (await page.evaluate('globalThis.texts')) as string[]
    expect(texts.length).toBeGreaterThan(5)
    expect(texts.join('\n')).not.toMatch(/cs[a-z]_/)
  })

  test('has something signed, keeps no token when told so', async () => {
    const { url, phone, show } = await setUp()
    const { page } = await browser.open()
    await show(
      page,
      `<countersign-sign-in base-url="${url}" kind="sign" payload-hash="sha256:abc"></countersign-sign-in>`,
      url,
    )
    await code(page).waitFor()
    await answer(phone, await scan(code(page)), true)
    expect(await detailOf(page, 'countersign:signed')).toMatchObject({ proofArtifact: { payloadHash: 'sha256:abc' } })

    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await code(page).waitFor()
    await answer(phone, await scan(code(page)), true)
    expect(await detailOf(page, 'countersign:signed-in')).toMatchObject({ token: expect.stringMatching(/^css_/) })
    expect(await page.evaluate('localStorage.length')).toBe(0)
    expect(await page.context().cookies(url)).toMatchObject([{ httpOnly: true }])
  })

  test('an order that the page has left is taken back', async () => {
    const { url, phone, show } = await setUp()
    const { page } = await browser.open()
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    const codeOfClaim = async (claimUrl: string): Promise<string> =>
      await phone.claimOrder(claimUrl).then(
        () => 'claimed',
        (error) => error.code,
      )
    const cancelled = () => page.waitForResponse((response) => response.url().endsWith('/cross-device/cancel'))

    await code(page).waitFor()
    const first = await scan(code(page))
    const changed = cancelled()
    await page.locator('countersign-sign-in').evaluate((element) => element.setAttribute('display-title', 'another'))
    await changed
    expect(await codeOfClaim(first)).toBe('ORDER_CANCELLED')

    await code(page).waitFor()
    const second = await scan(code(page))
    const removed = cancelled()
    await page.locator('countersign-sign-in').evaluate((element) => element.remove())
    await removed
    expect(await codeOfClaim(second)).toBe('ORDER_CANCELLED')
  })
})
