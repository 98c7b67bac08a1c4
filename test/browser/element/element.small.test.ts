import { describe, expect, test } from 'vitest'
import { freePort } from '../../support/redis-server.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { expectAccessible, hasBrowser, scan, useBrowser } from '../support.ts'
import { servePage } from './page.ts'
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
    const claim = await phone.claimOrder(await scan(code(page)))
    const challenge = await phone.getOrderChallenge(claim)
    await status(page).filter({ hasText: 'Check that both codes match' }).waitFor()
    expect(await page.locator('[part=code] span').allTextContents()).toEqual([
      challenge.confirmationCode,
      [...challenge.confirmationCode!].join(' '),
    ])
    expect(await code(page).count()).toBe(0)
    await expectAccessible(page, 'answer')

    await phone.approveOrder(claim, { challenge })
    const detail = await detailOf(page, 'countersign:signed-in')
    expect(detail).toMatchObject({ kind: 'login', redirectTo: '/desk', session: { address: wallet.address } })
    await status(page).filter({ hasText: 'You’re signed in.' }).waitFor()
    const [first, second, ...others] = wallet.address.split(' ')
    await page.getByText(`${first} ${second} … ${others.at(-1)}`, { exact: true }).waitFor()
    expect(
      (await seen(page)).filter(({ type }) => type === 'countersign:status').map((one) => one.detail.status),
    ).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized'])
    expect(await page.evaluate('localStorage.getItem("countersign.token")')).toBe(detail.token)
    expect(trail.faults).toEqual([])
    expect(trail.requests.filter((request) => /cs[a-z]_/.test(request.url + request.referer))).toEqual([])
  })

  test('tells beside a code for phones what to do in steps, until one has opened it; on localhost that none can', async () => {
    const port = await freePort()
    const { origin, show } = await servePage()
    const url = `http://auth.localhost:${port}`
    await startService({ port, publicUrl: url, trustedOrigins: [origin] })
    const { page } = await browser.open()
    const steps = page.getByRole('listitem')
    const button = page.getByRole('button', { name: 'Use a wallet on this device' })
    const isButtonFirst = async () => (await button.boundingBox())!.y < (await code(page).boundingBox())!.y
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await code(page).waitFor()
    expect(await steps.allTextContents()).toEqual([
      'Open your phone’s camera',
      'Scan the code and open the page',
      'Approve with your wallet',
    ])
    expect(await isButtonFirst()).toBe(false)
    const claimUrl = await scan(code(page))
    const [orderId, claimToken] = claimUrl.match(/[\w-]{22,}/g)!
    await rest(`http://localhost:${port}`, '/cross-device/claim', { orderId, claimToken }, { origin: url })
    await status(page).filter({ hasText: 'A phone has opened the request.' }).waitFor()
    expect(await steps.count()).toBe(0)

    const local = await setUp()
    await local.show(page, `<countersign-sign-in base-url="${local.url}"></countersign-sign-in>`, local.url)
    await status(page)
      .filter({ hasText: 'A phone can’t open this code: it leads to localhost, which is this computer.' })
      .waitFor()
    expect([await steps.count(), await isButtonFirst()]).toEqual([0, true])
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
    await status(page).filter({ hasText: 'Signed.' }).waitFor()

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
