import type { Page } from 'playwright-core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { shortAddress } from '../../src/shared/wallet-address.ts'
import { newComputerKey } from '../relay/devices.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  approve,
  phoneSize,
  returnCode,
  review,
  reviewingIn,
  seen,
  signedIn,
  usual,
  windows,
  wrongOf,
} from './approval-steps.ts'
import { Desktop } from './desktop.ts'
import { expectHeading, expectReview, handOverLink } from './flows.ts'
import { expectNoFaults, expectNoSidewaysScroll, hasBrowser, provokes, tap, useBrowser } from './support.ts'

declare global {
  interface Window {
    /** Number of taps on the page. */
    taps: number
    /** Whether a tap would have reached the answers as soon as they were there. */
    reached: boolean | undefined
  }
}

/** Has a page count the taps on it. */
function countTaps(): void {
  window.taps = 0
  addEventListener('click', () => window.taps++, true)
}

describe.skipIf(!hasBrowser)('on a phone,', () => {
  const browser = useBrowser()
  afterEach(() => void vi.useRealTimers())

  const reviewing = reviewingIn(browser)

  describe('who asks comes first:', () => {
    test('an order that the site’s own backend started is worded as the site’s', async () => {
      const key = 'start-key-of-the-backend-of-the-application'
      const { page } = await reviewing(
        { orderStartKeys: [key], trustedOrigins: ['https://app.example'] },
        { ...usual, requester: { origin: 'https://app.example', userAgent: windows } },
        { headers: { authorization: `Bearer ${key}` } },
      )
      await expectReview(page, /^Sign in to /)
      const text = await seen(page)
      expect(text).toMatch(/^Sign in to app\.example\? .* Chrome on Windows/)
      expect(text).toContain('Message from app.example:')
      expect(text).not.toContain('Were you just')
    })

    test.each([
      ['203.0.113.99', 'On the same network as this phone'],
      ['198.51.100.1', 'On another network, as on mobile data'],
      ['2001:db8::1', undefined],
    ])('a phone at %s is told of the networks: %s', async (address, told) => {
      const { page } = await reviewing({ trustProxy: 1 }, usual, {
        headers: { 'x-forwarded-for': '203.0.113.7' },
        phone: { extraHTTPHeaders: { 'x-forwarded-for': address } },
      })
      const network = page.locator('#request .network')
      expect(await network.isVisible()).toBe(told !== undefined)
      if (told !== undefined) expect(await network.textContent()).toBe(told)
    })

    test('times are the service’s, also with a wrong clock on the phone', async () => {
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      await page.addInitScript(() => {
        const now = Date.now
        Date.now = () => now() + 5 * 3_600_000
      })
      await review(page, desktop)
      expect(await page.locator('[data-slot=ago]').textContent()).toBe('just now')
      expect(await page.locator('#countdown').textContent()).toMatch(/^Expires in (2:00|1:[345]\d)\. Then get/)
    })
  })

  describe('a usual request needs no scrolling:', () => {
    test.each([
      ['compare', undefined],
      ['return', newComputerKey()],
    ] as const)('%s', async (confirmationCode, key) => {
      const { url } = await startService({ confirmationCode, trustProxy: 1 })
      const headers = { 'user-agent': windows, 'x-forwarded-for': '203.0.113.7' }
      const desktop = await Desktop.start(url, usual, { headers, ...(key === undefined ? {} : { key }) })
      const { page } = await browser.open({
        viewport: phoneSize,
        isMobile: true,
        hasTouch: true,
        extraHTTPHeaders: { 'x-forwarded-for': '198.51.100.1' },
      })
      await page.goto(desktop.order.claimUrl)
      const continueButton = await page.getByRole('button', { name: 'Continue', exact: true }).boundingBox()
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      const bar = (await page.locator('.bottom').boundingBox())!
      expect(bar.y + bar.height).toBeLessThanOrEqual(phoneSize.height)
      const parts = [
        'h1',
        '.gives',
        '.asks',
        '.network',
        '.unverified',
        '.code-box, .code-before',
        '.says',
        '.remember',
        '#review > .facts',
      ]
      for (const part of parts) {
        for (const element of await page.locator(`#request :is(${part})`).filter({ visible: true }).all()) {
          const box = (await element.boundingBox())!
          expect(box.y, part).toBeGreaterThanOrEqual(0)
          expect(box.y + box.height, part).toBeLessThanOrEqual(bar.y)
        }
      }
      for (const name of ['Approve', 'Decline']) {
        const button = (await page.getByRole('button', { name }).boundingBox())!
        expect(button.height, name).toBeGreaterThanOrEqual(48)
        expect(button.y, name).toBeGreaterThan(bar.y)
        // The bar does not move under the thumb.
        expect(button.y, name).toBe(continueButton!.y)
      }
    })
  })

  describe('while it can be approved, nothing covers the digits and what they are compared for:', () => {
    /** Whether the first and the last of a part can be seen. */
    const isSeen = (page: Page, part: string): Promise<boolean> =>
      page.locator(`#request ${part}`).evaluate((element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect()
        const ends = [
          [left + 1, top + 1],
          [right - 1, bottom - 1],
        ] as const
        return ends.every(([x, y]) => element.contains(document.elementFromPoint(x, y)))
      })

    test.each([
      ['a phone on its side', { width: 844, height: 390 }],
      ['a computer', { width: 1280, height: 720 }],
    ])('on %s they are on one screen with who asks', async (_, viewport) => {
      const { page } = await reviewing({}, usual, { headers: { 'user-agent': windows }, phone: { viewport } })
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      await page.evaluate(() => scrollTo(0, 0))
      const parts = ['h1', '.asks-with', '.code', '.code-box > :first-child']
      for (const part of parts) expect(await isSeen(page, part), part).toBe(true)
    })

    test('on a phone with everything twice as large they are seen together', async () => {
      const { page } = await reviewing({}, usual, { phone: { viewport: { width: 195, height: 422 } } })
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      await page.locator('.code-box').evaluate((box) => box.scrollIntoView({ block: 'end' }))
      for (const part of ['.code', '.code-box > :first-child']) expect(await isSeen(page, part), part).toBe(true)
    })
  })

  test('the digits are read one by one, as on the computer', async () => {
    const { desktop, page } = await reviewing({})
    const [first, second] = desktop.order.confirmationCode
    expect(await page.locator('#code').ariaSnapshot()).toMatch(new RegExp(`paragraph: "?${first} ${second}"?$`))
  })

  describe('the requester’s texts stay in their place:', () => {
    test.each([
      ['long', { displayTitle: 'W'.repeat(120), displaySummary: 'm'.repeat(500) }],
      ['empty', { displayTitle: '\u2003 ', displaySummary: ' ' }],
      [
        'rtl',
        {
          displayTitle: 'طلب تسجيل الدخول إلى المخبز',
          displaySummary: 'אתה מתבקש לאשר את הכניסה (app.example) לחשבון שלך.',
        },
      ],
      [
        'hostile',
        {
          displayTitle: '” Approved by Countersign ✓ <b>100 NIM</b> “',
          displaySummary: `Z̷͍̈́a̸̡͒l̴͉̊g̶̨̏o̵̢̍ ${'🎁'.repeat(40)} {host} [[start.title]] {{appName}} &amp; Tap “Approve” to decline.`,
        },
      ],
    ])('%s', async (name, texts) => {
      const { page, trail } = await reviewing({}, { kind: 'login', ...texts })
      const says = page.locator('#says')
      // Before the window changes its size, after which long texts are looked for once more.
      const buttons = await says.getByRole('button', { name: 'Show more' }).count()
      if (name !== 'hostile') expect(buttons).toBe(name === 'long' ? 2 : 0)
      expect(await says.isVisible()).toBe(name !== 'empty')
      const more = says.getByRole('button', { name: 'Show more' })
      if (name === 'long') {
        expect((await says.boundingBox())!.height).toBeLessThan(330)
        await more.last().click()
        const summary = (await says.locator('p').last().boundingBox())!
        expect(summary.height).toBeGreaterThan(200)
        await says.getByRole('button', { name: 'Show less' }).click()
        expect(await more.count()).toBe(2)
      }
      if (name === 'rtl') {
        const direction = await says
          .locator('p')
          .last()
          .evaluate((line) => getComputedStyle(line).direction)
        expect(direction).toBe('rtl')
      }
      for (const size of [phoneSize, { width: 320, height: 480 }]) {
        await page.setViewportSize(size)
        await expectNoSidewaysScroll(page, name)
        for (const button of ['Approve', 'Decline']) {
          const box = (await page.getByRole('button', { name: button, exact: true }).boundingBox())!
          expect(box.y + box.height).toBeLessThanOrEqual(size.height)
        }
      }
      expectNoFaults(trail)
    })
  })

  describe('what is to be signed is read as a table:', () => {
    const payload = {
      payee: 'Green Bakery',
      amount: 1234567.5,
      invoice: { 'amount.paid': '250', lines: [{ item: 'Bread <b>' }, { item: 'Wine', note: '' }], tags: [], '': null },
      terms: { due_date: 1, dueDate: 2 },
      long: 'x'.repeat(400),
      isPaid: false,
    }

    test('every name and value is shown as it was written, before the requester’s texts, and the hash with the exact text', async () => {
      const wallet = makeWallet()
      const { page } = await reviewing(
        {},
        {
          kind: 'sign',
          displayTitle: 'Approve invoice 1042',
          payload: JSON.stringify(payload),
          adapterId: 'nimiq',
          expectedAddress: wallet.address,
        },
      )
      await expectReview(page, /^Sign for /)
      const table = page.locator('#payload')
      const leaves = await table.locator('dt, dd span').allTextContents()
      expect(leaves).toEqual([
        ...['Payee', 'Green Bakery', 'Amount', '1,234,567.5', 'Invoice', 'amount.paid', '250'],
        ...['Lines', 'Item', 'Bread <b>', 'Item', 'Wine', 'Note', 'empty', 'Tags', 'no entries'],
        ...['without a name', 'null'],
        // Two names that would read alike stay as they are.
        ...['Terms', 'due_date', '1', 'dueDate', '2'],
        ...['Long', payload.long, 'Is paid', 'false'],
      ])
      const order = await page.evaluate(() =>
        [...document.querySelectorAll('#request :is(.asks, #payload, #says, #compare, #signer)')].map(
          ({ id, className }) => id || className,
        ),
      )
      expect(order).toEqual(['asks', 'compare', 'payload', 'says', 'signer'])
      await page.getByText(wallet.address).waitFor()
      await table.getByRole('button', { name: 'Show more' }).click()
      await page.getByText('The exact text that is signed').click()
      const message = (await page.locator('pre').textContent())!
      const hash = /Payload Hash: (sha256:\S+)/.exec(message)![1]!
      expect(await page.locator('details .facts').textContent()).toContain(hash)
      await page.setViewportSize({ width: 320, height: 640 })
      await expectNoSidewaysScroll(page, 'payload')
    })
  })

  test('of many values, it can be approved once the last was in view and what is folded was opened', async () => {
    const values = Array.from({ length: 60 }, (_, index) => ({ item: `Loaf ${index}` }))
    const payload = JSON.stringify({ values, note: 'n'.repeat(400) })
    const { page } = await reviewing({}, { kind: 'sign', payload })
    const button = page.getByRole('button', { name: 'Approve' })
    const more = page.locator('[data-more]')
    await page.getByText('To approve, read to the end. Values: 61').waitFor()
    expect([await button.isEnabled(), await more.count()]).toEqual([false, 1])
    await page.locator('#payload').evaluate((place) => place.scrollIntoView({ block: 'end' }))
    await page.mouse.wheel(0, 200)
    await page.getByText('Loaf 59').waitFor()
    expect(await button.isEnabled()).toBe(false)
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.evaluate(() => scrollTo(0, 9999))
    await expect.poll(async () => [await button.isEnabled(), await more.count()]).toEqual([true, 0])
    expect(await page.getByText('To approve, read to the end').isVisible()).toBe(false)
    await approve(page)
    await expectHeading(page, 'Approved')
  })

  test('a payload without a space is whole in the exact text, and scrolls nothing sideways', async () => {
    const { url } = await startService()
    const payload = `{"a":"${'b'.repeat(392)}"}`
    const desktop = await Desktop.start(url, { kind: 'sign', payload })
    const { page } = await browser.open({ viewport: { width: 320, height: 640 } })
    await page.goto(desktop.order.claimUrl)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await page.getByText('The exact text that is signed').click()
    expect(await page.locator('pre').textContent()).toContain(`\nPayload: ${payload}`)
    await expectNoSidewaysScroll(page, 'a payload without a space')
  })

  test('a request for another wallet says so before it can be approved, and another one can be chosen', async () => {
    const { url } = await startService()
    const expected = { adapterId: 'nimiq', expectedAddress: makeWallet().address }
    const desktop = await Desktop.start(url, { kind: 'sign', displayTitle: 'Sell the house', ...expected })
    const { page } = await browser.open({ viewport: phoneSize })
    await page.goto(desktop.order.claimUrl)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await page.getByText(`Use ${shortAddress(expected.expectedAddress)}. Demo wallet is another wallet.`).waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Choose another wallet' }).click()
    await page.getByRole('button', { name: 'Demo wallet' }).waitFor()
    expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
  })

  describe('the first screen', () => {
    test.each([
      ['cancelled', 'Cancelled on your computer'],
      ['expired', 'This request has expired'],
    ])('of an order that is %s says so without a tap', async (how, heading) => {
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      await page.goto(desktop.order.claimUrl)
      await expectHeading(page, /^Sign in to /)
      if (how === 'cancelled') await desktop.cancel()
      else vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
      await expectHeading(page, heading)
      expect(await page.locator('#ended .about').textContent()).toMatch(/^http:\/\/localhost:\d+ · \d\d:\d\d$/)
    })

    test('claims in a tap that opens its rest: what was there stays where it was, and two taps approve', async () => {
      const { url } = await startService()
      const desktop = await Desktop.start(url, usual, { headers: { 'user-agent': windows } })
      const { page } = await browser.open({ viewport: phoneSize, isMobile: true, hasTouch: true })
      await page.addInitScript(countTaps)
      await page.goto(desktop.order.claimUrl)
      await page.locator('#code > [aria-hidden]').getByText(desktop.order.confirmationCode).waitFor()
      const places = () =>
        page.evaluate(() =>
          ['h1', '#asks', '#compare'].map(
            (part) => document.querySelector(`#request ${part}`)!.getBoundingClientRect().y,
          ),
        )
      const before = await places()
      await tap(page.getByRole('button', { name: 'Continue', exact: true }))
      await expectReview(page, /^Sign in to /)
      // The heading was read before the tap.
      await expectHeading(page, 'Review a request')
      expect(await places()).toEqual(before)
      await tap(page.getByRole('button', { name: 'Approve' }))
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).status).toBe(200)
      expect(await page.evaluate(() => window.taps)).toBe(2)
    })

    test('can be left without an answer: the order stays for the phone that it is for', async () => {
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      await page.goto(desktop.order.claimUrl)
      await page.getByRole('button', { name: 'Not me' }).click()
      await expectHeading(page, 'You didn’t continue')
      const other = await browser.open({ viewport: phoneSize })
      await review(other.page, desktop)
    })

    test.each(['answer', 'refusal'])('stays left when the %s about who asks comes late', async (late) => {
      if (late === 'refusal') provokes(/4\d\d .*preview/)
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      const isLeft = Promise.withResolvers<void>()
      await page.route('**/cross-device/preview**', async (route) => {
        await isLeft.promise
        await route.continue()
      })
      await page.goto(desktop.order.claimUrl)
      await page.getByRole('button', { name: 'Not me' }).click()
      await expectHeading(page, 'You didn’t continue')
      if (late === 'refusal') await desktop.cancel()
      const answered = page.waitForResponse(/preview/)
      isLeft.resolve()
      await (await answered).finished()
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)))
      await expectHeading(page, 'You didn’t continue')
      expect(await page.getByRole('button', { name: 'Continue', exact: true }).isVisible()).toBe(false)
    })

    test('cannot be left once the request may be this tab’s, also after a reload', async () => {
      provokes(/claim/)
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      await page.route('**/cross-device/claim', () => {})
      await page.goto(desktop.order.claimUrl)
      await page.locator('#not-me-button:enabled').waitFor()
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.locator('#not-me-button:disabled').waitFor()
      await page.reload()
      await page.locator('#not-me-button:disabled').waitFor()
      await page.unroute('**/cross-device/claim')
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
    })

    test('has answers that the second half of a double tap does not reach', async () => {
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: { width: 390, height: 500 } })
      await page.addInitScript(() => {
        // Where the answers appear, at once.
        new MutationObserver(() => {
          const button = document.querySelector('#approve-button')!
          const { x, y, width, height } = button.getBoundingClientRect()
          if (width > 0) window.reached ??= button.contains(document.elementFromPoint(x + width / 2, y + height / 2))
        }).observe(document, { subtree: true, attributeFilter: ['hidden'] })
      })
      await review(page, desktop)
      expect(await page.evaluate(() => window.reached)).toBe(false)
      for (const id of ['#decline-button', '#approve-button']) {
        const settling = await page.locator(id).evaluate((button) => getComputedStyle(button).animation)
        expect(settling, id).toMatch(/^0\.[5-9]s .*settle/)
      }
      await approve(page)
      await expectHeading(page, 'Approved')
    })

    test('keeps its places while the service is slow, and goes on without who asks after four seconds', async () => {
      const { url } = await startService()
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      await page.route('**/cross-device/preview**', () => {})
      await page.goto(desktop.order.claimUrl)
      const button = page.getByRole('button', { name: 'Continue', exact: true })
      await page.locator('#review-button[disabled]').waitFor()
      const place = await button.boundingBox()
      await expectHeading(page, 'A request is waiting for you')
      expect(await button.boundingBox()).toEqual(place)
      await button.click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
    })

    test('says that another phone has the request, but not to the tab that may have it itself', async () => {
      const { url, desktop } = await reviewing({})
      const other = await browser.open({ viewport: phoneSize })
      await other.page.goto(desktop.order.claimUrl)
      await expectHeading(other.page, 'This request is open on another phone')

      const next = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      // The answer to the claim is lost, and the phone reloads the page.
      const reloaded = Promise.withResolvers<void>()
      let tries = 0
      await page.route('**/cross-device/claim', async (route) => {
        if (tries++ > 0) return route.abort()
        await route.fetch()
        await page.reload()
        await page.unroute('**/cross-device/claim')
        reloaded.resolve()
      })
      await page.goto(next.order.claimUrl)
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await reloaded.promise
      await page.locator('#request').waitFor()
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
    })
  })

  describe('the return code:', () => {
    test('three wrong codes are the end, on the phone too', async () => {
      const { desktop, page } = await reviewing({ confirmationCode: 'return' })
      await approve(page)
      const wrong = wrongOf(await returnCode(page))
      for (let times = 0; times < 3; times++) await desktop.finalize(wrong)
      await expectHeading(page, 'Three wrong codes were entered')
    })

    test('a code that is not typed in time is good for nothing', async () => {
      const { desktop, page } = await reviewing({ confirmationCode: 'return' })
      await approve(page)
      const code = await returnCode(page)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 185_000 })
      await expectHeading(page, 'The code wasn’t entered in time')
      await page.getByText('No one is signed in').waitFor()
      expect((await desktop.finalize(code)).json.code).toBe('ORDER_EXPIRED')
    })

    test('while it is shown, the phone can stop everything, and hears of a cancellation', async () => {
      const first = await reviewing({ confirmationCode: 'return' })
      await approve(first.page)
      const code = await returnCode(first.page)
      await first.page.getByRole('button', { name: 'Cancel' }).click()
      await expectHeading(first.page, 'Cancelled')
      expect((await first.desktop.finalize(code)).json.code).toBe('ORDER_REJECTED')

      const second = await reviewing({ confirmationCode: 'return' })
      await approve(second.page)
      await returnCode(second.page)
      await second.desktop.cancel()
      await expectHeading(second.page, 'Cancelled on your computer')
    })

    test('a reload of the tab keeps the code, and the way to take it back', async () => {
      const { desktop, page } = await reviewing({ confirmationCode: 'return' })
      await approve(page)
      const code = await returnCode(page)
      await page.reload()
      expect(await returnCode(page)).toBe(code)
      await page.getByText(/^Expires in (3:00|2:\d\d)$/).waitFor()
      const { token } = (await desktop.finalize(code)).json
      await page.reload()
      await expectHeading(page, signedIn)
      await page.getByRole('button', { name: 'Not you?' }).click()
      await expectHeading(page, 'Signed out')
      expect(await desktop.isSignedIn(token)).toBe(false)
      // What the tab kept for this is gone.
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
    })

    test('a computer is remembered only if the user ticks the box', async () => {
      const { url } = await startService({ confirmationCode: 'return' })
      const { page } = await browser.open({ viewport: phoneSize })
      const key = newComputerKey()
      const signIn = async (remember: boolean): Promise<string | undefined> => {
        const desktop = await Desktop.start(url, usual, { key })
        await review(page, desktop)
        const box = page.getByRole('checkbox', { name: 'Remember this computer' })
        expect(await box.isChecked()).toBe(false)
        if (remember) await page.getByText('Remember this computer').click()
        await approve(page)
        await page.getByRole('heading', { name: /^(Enter this code|Approved)/ }).waitFor()
        const code = (await page.locator('#return-code > [aria-hidden]').textContent()) ?? undefined
        expect((await desktop.finalize(code || undefined)).status).toBe(200)
        await expectHeading(page, signedIn)
        return code || undefined
      }
      expect(await signIn(false)).toMatch(/^\d{6}$/)
      expect(await signIn(true)).toMatch(/^\d{6}$/)
      expect(await signIn(false)).toBe(undefined)
    })

    test('without a key of the computer, or in another mode, there is nothing to tick', async () => {
      const { page } = await reviewing({ confirmationCode: 'return' })
      expect(await page.getByRole('checkbox').count()).toBe(0)
      const other = await reviewing({}, usual, { key: newComputerKey() })
      expect(await other.page.getByRole('checkbox').count()).toBe(0)
    })
  })

  describe('taking it back', () => {
    test('is offered without return codes too; it says so if the session had already ended', async () => {
      const { url, desktop, page } = await reviewing({})
      await approve(page)
      await expectHeading(page, 'Approved')
      const { token } = (await desktop.finalize()).json
      await expectHeading(page, signedIn)
      const headers = { authorization: `Bearer ${token}` }
      await fetch(`${url}/api/auth/sign-out`, { method: 'POST', headers })
      await page.getByRole('button', { name: 'Not you? Sign that computer out' }).click()
      await expectHeading(page, 'That session had already ended')
    })

    test('is over when the order is forgotten', async () => {
      provokes(/404 .*reject/)
      const { desktop, page } = await reviewing({})
      await approve(page)
      await expectHeading(page, 'Approved')
      await desktop.finalize()
      await expectHeading(page, signedIn)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 20 * 60_000 })
      await page.getByRole('button', { name: 'Not you? Sign that computer out' }).click()
      await expectHeading(page, 'You can’t undo this here anymore')
    })

    test('is not offered for a signature, which the computer keeps', async () => {
      provokes(/409 .*reject/)
      const { desktop, page } = await reviewing({}, { ...usual, kind: 'sign' })
      await approve(page)
      await expectHeading(page, 'Approved')
      await desktop.finalize()
      // The tap comes before the page has heard of it.
      await page.getByRole('button', { name: 'Not you? Cancel it' }).click()
      await expectHeading(page, 'It’s too late to cancel')
    })
  })

  describe('every ending has the site, the time and what to do next:', () => {
    const about = /^http:\/\/localhost:\d+ · \d\d:\d\d$/

    test('of an order that was used, which leads to the account page', async () => {
      const { url, desktop, page } = await reviewing({})
      await approve(page)
      await expectHeading(page, 'Approved')
      await desktop.finalize()
      await expectHeading(page, signedIn)
      expect(await page.locator('#outcome .about').first().textContent()).toMatch(about)
      const { page: late } = await browser.open({ viewport: phoneSize })
      await late.goto(desktop.order.claimUrl)
      await expectHeading(late, 'This request is complete')
      expect(await late.locator('#ended .about').textContent()).toMatch(about)
      const link = late.getByRole('link', { name: 'Your account' })
      expect(await link.getAttribute('href')).toBe('/api/auth/account')
      await link.click()
      await late.waitForURL(`${url}/api/auth/sign-in?**`)
    })

    test('of a link that is cut short, without such a link', async () => {
      const { url } = await startService()
      const { page } = await browser.open({ viewport: phoneSize })
      await page.goto((await Desktop.start(url)).order.claimUrl.split('#')[0]!)
      await expectHeading(page, 'This link is incomplete')
      expect(await page.locator('#ended .about').textContent()).toMatch(about)
      expect(await page.getByRole('link').count()).toBe(0)
    })

    test('of a service without accounts of its own, without such a link', async () => {
      const { url } = await startService({ resolveLogin: ({ address }) => ({ id: address }) })
      const desktop = await Desktop.start(url)
      const { page } = await browser.open({ viewport: phoneSize })
      await review(page, desktop)
      await approve(page)
      await expectHeading(page, 'Approved')
      await desktop.finalize()
      await expectHeading(page, signedIn)
      const { page: late } = await browser.open({ viewport: phoneSize })
      await late.goto(desktop.order.claimUrl)
      await expectHeading(late, 'This request is complete')
      expect(await late.getByRole('link').count()).toBe(0)
    })
  })

  describe('another browser can go on,', () => {
    test('once and within a minute', async () => {
      provokes(/401 .*redeem/)
      const { page } = await reviewing({})
      await page.getByRole('button', { name: 'Continue in another browser' }).click()
      const link = await handOverLink(page)
      const [taker, late] = [await browser.open(), await browser.open()]
      await taker.page.goto(link)
      await taker.page.getByRole('button', { name: 'Continue', exact: true }).click()
      await taker.page.getByRole('button', { name: 'Approve' }).waitFor()
      await late.page.goto(link)
      await late.page.getByRole('button', { name: 'Continue', exact: true }).click()
      await expectHeading(late.page, 'This link has already been used')
    })
  })

  describe('in the user’s language:', () => {
    test('German, down to the last text', async () => {
      const { url } = await startService({ confirmationCode: 'return' })
      const desktop = await Desktop.start(url, usual, { key: newComputerKey(), headers: { 'user-agent': windows } })
      const { page } = await browser.open({ viewport: phoneSize, locale: 'de-CH' })
      await page.goto(desktop.order.claimUrl)
      await page.getByRole('button', { name: 'Weiter' }).click()
      await page.getByRole('button', { name: 'Ablehnen' }).waitFor()
      await page.getByRole('heading', { name: /^Bei http:.* anmelden\?$/ }).waitFor()
      expect(await page.locator('html').getAttribute('lang')).toBe('de-CH')
      expect(await page.locator('#request').textContent()).toMatch(/Chrome auf Windows · gerade eben/)
      await page.getByRole('button', { name: 'Bestätigen' }).click()
      await expectHeading(page, /^Gib diesen Code nur auf .* ein$/)
      await page.getByRole('button', { name: 'Abbrechen' }).click()
      await expectHeading(page, 'Abgebrochen')
    })

    test('one that the operator’s file adds, from right to left', async () => {
      const textsFile = new URL('./states/texts.json', import.meta.url).pathname
      const { url } = await startService({ pages: { textsFile: textsFile } })
      const desktop = await Desktop.start(url, usual, { headers: { 'user-agent': windows } })
      const { page, trail } = await browser.open({ viewport: phoneSize, locale: 'ar-EG' })
      await page.goto(desktop.order.claimUrl)
      await page.getByRole('button', { name: 'متابعة' }).click()
      await page.getByRole('button', { name: 'موافقة' }).waitFor()
      expect(await page.evaluate(() => [document.documentElement.lang, document.documentElement.dir])).toEqual([
        'ar-EG',
        'rtl',
      ])
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toMatch(/^تسجيل الدخول إلى .*؟$/)
      // A text that the file lacks is there in English.
      await page.locator('#request').getByRole('button', { name: 'Continue in another browser' }).waitFor()
      await page.setViewportSize({ width: 320, height: 640 })
      await expectNoSidewaysScroll(page, 'Arabic')
      expectNoFaults(trail)
    })
  })

  describe('the operator’s brand:', () => {
    const logo =
      '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40" rx="8" fill="#ffb300"/></svg>'

    test('name, logo and colour; of the logo’s site nothing but the logo', async () => {
      provokes(/violates .*img-src/)
      const { url } = await startService({
        appName: 'Green Bakery',
        pages: { accentColor: '#ffb300', logoUrl: 'https://cdn.example/logo.svg' },
      })
      const { page, trail } = await browser.open({ viewport: phoneSize })
      await page.route('https://cdn.example/**', (route) => route.fulfill({ contentType: 'image/svg+xml', body: logo }))
      const desktop = await Desktop.start(url)
      await page.goto(desktop.order.claimUrl)
      await page.locator('.logo').waitFor()
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      const { color, background } = await page.getByRole('button', { name: 'Approve' }).evaluate((button) => {
        const style = getComputedStyle(button)
        return { color: style.color, background: style.backgroundColor }
      })
      expect(color).toBe('rgb(0, 0, 0)')
      expect(background).toBe('rgb(255, 179, 0)')
      expectNoFaults(trail)
      expect(trail.requests.filter(({ referer }) => referer !== undefined)).toEqual([])
      const loads = (address: string): Promise<boolean> =>
        page.evaluate(async (src) => {
          const image = new Image()
          image.src = src
          return await image.decode().then(
            () => true,
            () => false,
          )
        }, address)
      expect(await loads('https://cdn.example/logo.svg')).toBe(true)
      expect(await loads('https://cdn.example/other.svg')).toBe(false)
    })

    test('a logo that does not load leaves the page as it is', async () => {
      provokes(/404 .*no-such-logo/)
      const { url } = await startService({ pages: { logoUrl: '/no-such-logo.svg' } })
      const { page } = await browser.open({ viewport: phoneSize })
      await page.goto((await Desktop.start(url)).order.claimUrl)
      await page.waitForLoadState('networkidle')
      expect(await page.locator('.mark').isVisible()).toBe(true)
      expect(await page.locator('.logo').count()).toBe(0)
    })
  })

  test('everything can be reached and seen with the keyboard alone', async () => {
    const { page } = await reviewing({ confirmationCode: 'return' }, usual, { key: newComputerKey() })
    // The answers take no tap at first.
    await page.getByRole('button', { name: 'Approve' }).click({ trial: true })
    const seen: string[] = []
    for (let times = 0; times < 8; times++) {
      await page.keyboard.press('Tab')
      const { name, hidden } = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement
        const { top, bottom, left } = element.getBoundingClientRect()
        const there = document.elementFromPoint(left + 5, (top + bottom) / 2)
        return { name: element.id || element.localName, hidden: there === null || !element.contains(there) }
      })
      expect(hidden, name).toBe(false)
      seen.push(name)
    }
    expect(seen.slice(0, 7)).toEqual([
      'remember-input',
      'other-wallet-button',
      'button',
      'summary',
      'hand-over-button',
      'decline-button',
      'approve-button',
    ])
  })
})
