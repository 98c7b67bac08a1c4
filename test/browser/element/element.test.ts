import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import {
  type ClaimedOrder,
  type CountersignClient,
  createCountersignClient,
} from '../../../src/browser/client/index.ts'
import { freePort } from '../../support/redis-server.ts'
import { CuttableProxy } from '../client/proxy.ts'
import { fetchFrom } from '../client/support.ts'
import { expectAccessible, hasBrowser, inFirefox, provokes, scan, useBrowser } from '../support.ts'
import { answer, code, detailOf, polling, renew, seen, setUp, status, wallet } from './steps.ts'

/** Approves an order on the phone and lets the computer be remembered. Returns the code that the phone shows. */
async function approveAndRemember(phone: CountersignClient, claimUrl: string): Promise<string> {
  const claim = await phone.claimOrder(claimUrl)
  const challenge = await phone.getOrderChallenge(claim)
  return (await phone.approveOrder(claim, { challenge, rememberComputer: true })).returnCode!
}

describe.runIf(hasBrowser)('<countersign-sign-in> in Chromium', () => {
  const browser = useBrowser()

  test('speaks German where the page does, and the page’s own texts where it has some', async () => {
    const { url, show } = await setUp()
    const { page } = await browser.open()
    const element = `<countersign-sign-in base-url="${url}"></countersign-sign-in>`
    // Also what stood there before the language had come.
    await page.route('**/cross-device/start', () => {})
    await show(page, `<div lang="de-AT">${element}</div>`, url)
    await status(page).filter({ hasText: 'Code wird erstellt' }).waitFor()
    await page.unrouteAll()
    await show(page, `<div lang="de-AT">${element}</div>`, url)
    await status(page).filter({ hasText: 'Ein Handy kann diesen Code nicht öffnen' }).waitFor()
    await page.evaluate(() => {
      Object.assign(document.querySelector('countersign-sign-in') as object, { texts: { cancel: 'Stop' } })
    })
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await show(page, element, url)
    await status(page).filter({ hasText: 'A phone can’t open this code' }).waitFor()
  })

  test('is dark on a dark page and light on a light one, in any colour scheme of the system', async () => {
    const { url, show } = await setUp()
    const { page } = await browser.open({ colorScheme: 'dark' })
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await code(page).waitFor()
    const card = page.locator('[part=card]')
    const styleOf = (property: 'backgroundColor' | 'padding' | 'borderWidth') =>
      card.evaluate((one, name) => getComputedStyle(one)[name], property)
    const background = async (colorScheme: string) => {
      await page.evaluate((scheme) => document.documentElement.style.setProperty('color-scheme', scheme), colorScheme)
      return await styleOf('backgroundColor')
    }
    const [none, light, dark, either] = [
      await background(''),
      await background('light'),
      await background('dark'),
      await background('light dark'),
    ]
    // Firefox's driver has no dark system.
    expect([none, either]).toEqual([light, inFirefox ? light : dark])
    expect(light).not.toBe(dark)
    // A page that says nothing of its scheme, with the reset and a colour of Tailwind.
    await background('')
    await page.evaluate(() => {
      const reset = new CSSStyleSheet()
      reset.replaceSync('*{margin:0;padding:0;border:0 solid}')
      document.adoptedStyleSheets.push(reset)
    })
    const oklchBlack = 'oklch(0.145 0 0)'
    const onPageOf = async (colour: string) => {
      await page.evaluate((one) => document.body.style.setProperty('background', one), colour)
      // The element looks each second.
      await expect.poll(() => styleOf('backgroundColor')).toBe(colour === oklchBlack ? dark : light)
    }
    await onPageOf(oklchBlack)
    await onPageOf('white')
    expect([await styleOf('padding'), await styleOf('borderWidth')]).toEqual(['24px', '1px'])
  })

  test('declined, then cancelled, then again, with the keyboard alone, in the dark', async () => {
    const { url, phone, show } = await setUp()
    const { page } = await browser.open({ colorScheme: 'dark', viewport: { width: 320, height: 640 } })
    await show(page, `<countersign-sign-in base-url="${url}" cross-device-only></countersign-sign-in>`, url)
    await code(page).waitFor()
    await expectAccessible(page, 'scan in the dark')
    const first = await scan(code(page))
    await answer(phone, first, false)
    await status(page).filter({ hasText: 'Declined on the phone.' }).waitFor()
    await expectAccessible(page, 'declined in the dark')

    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await code(page).waitFor()
    expect(await scan(code(page))).not.toBe(first)
    // It comes before the button that was pressed.
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await status(page).filter({ hasText: 'Cancelled.' }).waitFor()
    // The button that was pressed is gone; the focus is on the one that is left.
    await page.keyboard.press('Enter')
    await code(page).waitFor()
  })

  test('a code that expires is replaced while the page is seen, and waits for a press when it is not', async () => {
    const { url, show } = await setUp({ orderTtlSeconds: 10 })
    const html = `<countersign-sign-in base-url="${url}"></countersign-sign-in>`
    const { page } = await browser.open()
    const { page: hidden } = await browser.open()
    await show(page, html, url)
    await show(hidden, html, url)
    await code(page).waitFor()
    const first = await scan(code(page))
    await code(hidden).waitFor()
    await hidden.evaluate(() => Object.defineProperty(document, 'visibilityState', { value: 'hidden' }))

    const started = async () => (await seen(page)).filter(({ detail }) => detail.status === 'created')
    await expect.poll(started, polling).toHaveLength(2)
    expect(await scan(code(page))).not.toBe(first)
    await status(hidden).filter({ hasText: 'The code has expired.' }).waitFor()
    await expectAccessible(hidden, 'expired')
    expect(await code(hidden).count()).toBe(0)
    expect(await renew(hidden).isVisible()).toBe(true)
  })

  test('a code in place of an expired one is said to be new, because its digits are others', async () => {
    const port = await freePort()
    const publicUrl = `http://auth.localhost:${port}`
    const { show } = await setUp({ port, publicUrl, orderTtlSeconds: 10 })
    const { page } = await browser.open()
    await show(
      page,
      `<countersign-sign-in base-url="http://localhost:${port}"></countersign-sign-in>`,
      `http://localhost:${port}`,
    )
    await status(page).filter({ hasText: 'Scan the code with your phone.' }).waitFor()
    await status(page).filter({ hasText: 'Here’s a new code.' }).waitFor()
  })

  test('a stream that died unseen is opened again when the network returns', async () => {
    const { url, phone, show } = await setUp()
    const proxy = await CuttableProxy.start(url)
    const { page } = await browser.open()
    await show(page, `<countersign-sign-in base-url="${proxy.url}"></countersign-sign-in>`, proxy.url)
    await code(page).waitFor()
    const claimUrl = await scan(code(page))
    await expect.poll(() => seen(page), polling).toHaveLength(1)
    proxy.silence('GET /api/auth/cross-device/events')
    await phone.claimOrder(claimUrl)
    await page.context().setOffline(true)
    await page.context().setOffline(false)
    await status(page).filter({ hasText: 'A phone has opened the request.' }).waitFor()
  })

  test('says when the connection is lost, and when the service cannot be reached at all', async () => {
    provokes(/net::ERR/)
    const { url, show } = await setUp()
    const proxy = await CuttableProxy.start(url)
    const { page } = await browser.open()
    await show(page, `<countersign-sign-in base-url="${proxy.url}"></countersign-sign-in>`, proxy.url)
    await expect.poll(() => seen(page), polling).toHaveLength(1)
    await proxy.refuse()
    await status(page).filter({ hasText: 'Connection lost. Trying again …' }).waitFor()

    await page.locator('countersign-sign-in').evaluate((element) => element.setAttribute('display-title', 'another'))
    await status(page).filter({ hasText: 'Can’t reach the sign-in service.' }).waitFor()
    const { error } = await page.evaluate(() => {
      const { detail } = Reflect.get(globalThis, 'seen').at(-1)
      return { error: { code: detail.error.code, name: detail.error.name } }
    })
    expect(error).toEqual({ code: 'NETWORK', name: 'CountersignClientError' })
    await expectAccessible(page, 'failed')
    proxy.forward()
    await page.getByRole('button', { name: 'Try again' }).click()
    await code(page).waitFor()
  })

  test('speaks another language, with a client of the page\u2019s own', async () => {
    const { url, show } = await setUp()
    const { page } = await browser.open()
    await show(page, '', url)
    await page.evaluate((baseUrl) => {
      const element = document.createElement('countersign-sign-in')
      element.texts = { localOnly: 'Nur auf {host}.', cancel: 'Abbrechen' }
      element.setAttribute('base-url', baseUrl)
      document.querySelector('main')?.append(element)
    }, url)
    await status(page).filter({ hasText: 'Nur auf localhost.' }).waitFor()
    expect(await page.getByRole('button', { name: 'Abbrechen' }).isVisible()).toBe(true)
    expect(await page.getByRole('button', { name: 'Copy link' }).isVisible()).toBe(true)
  })

  test('where something else answers it says so, and a developer which address it was', async () => {
    const { origin, show } = await setUp()
    const { page } = await browser.open()
    const warnings: string[] = []
    page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()))
    await show(page, '<countersign-sign-in base-path="/wrong"></countersign-sign-in>', origin)
    await status(page).filter({ hasText: 'No sign-in service answers at this address.' }).waitFor()
    expect(warnings).toEqual([
      `<countersign-sign-in> looks for the service at ${origin}/wrong: Unexpected answer: HTTP 200. Check base-url and base-path.`,
    ])
    expect(await page.getByRole('button', { name: 'Try again' }).isVisible()).toBe(true)
  })

  test('on a page whose origin the service does not trust there is no new code to show', async () => {
    provokes(/Access to fetch|net::ERR_FAILED|403/)
    const { url, show } = await setUp({ trustedOrigins: ['https://tally.example'] })
    const { page } = await browser.open()
    for (const attribute of ['cross-device-only', '']) {
      await show(page, `<countersign-sign-in base-url="${url}" ${attribute}></countersign-sign-in>`, url)
      await status(page).filter({ hasText: 'This site isn’t set up for signing in here.' }).waitFor()
      expect(await page.getByRole('button').count()).toBe(0)
    }
  })

  test('each ending has its sign and one filled button, that of the way that was used last', async () => {
    provokes(/net::ERR/)
    const { url, phone, show } = await setUp({ orderTtlSeconds: 10 })
    const { page } = await browser.open()
    const main = () =>
      page.locator('button:visible').evaluateAll((all) => {
        const filled = all.filter((one) => getComputedStyle(one).backgroundColor !== 'rgba(0, 0, 0, 0)')
        return filled.map(({ textContent }) => textContent)
      })
    const sign = () => page.locator('[part=picture] path').getAttribute('d')
    const thisDevice = page.getByRole('button', { name: 'Use a wallet on this device' })
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await code(page).waitFor()
    await answer(phone, await scan(code(page)), false)
    await status(page).filter({ hasText: 'Declined on the phone.' }).waitFor()
    const declined = await sign()
    expect(await main()).toEqual(['Show a new code'])
    await thisDevice.click()
    await thisDevice.click()
    await page.mouse.move(0, 0)
    expect(await main()).toEqual(['Use a wallet on this device'])

    await renew(page).click()
    await code(page).waitFor()
    await page.evaluate(() => Object.defineProperty(document, 'visibilityState', { value: 'hidden' }))
    await status(page).filter({ hasText: 'The code has expired.' }).waitFor()
    const expired = await sign()
    expect(await main()).toEqual(['Show a new code'])

    await page.route(/cross-device\/start|healthz/, (route) => route.abort())
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await status(page).filter({ hasText: 'Can’t reach the sign-in service.' }).waitFor()
    expect(await page.locator('button:visible').allTextContents()).toEqual(['Try again'])
    expect(await main()).toEqual(['Try again'])
    expect(new Set([declined, expired, await sign()]).size).toBe(3)
  })

  test('a page can style its parts, and those of the list of wallets in it', async () => {
    const { url, show } = await setUp({ pages: { demoWallet: true } })
    const { page } = await browser.open()
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await page.evaluate(() => {
      const sheet = new CSSStyleSheet()
      sheet.replaceSync(`countersign-sign-in { --countersign-accent: rgb(1, 2, 3) }
        countersign-sign-in::part(wallet) { border-color: rgb(4, 5, 6) }`)
      document.adoptedStyleSheets = [sheet]
    })
    const button = page.getByRole('button', { name: 'Use a wallet on this device' })
    await button.click()
    const wallet = page.getByRole('button', { name: 'Demo wallet' })
    expect(await wallet.evaluate((one) => getComputedStyle(one).borderTopColor)).toBe('rgb(4, 5, 6)')
    await page.mouse.move(0, 0)
    expect(await button.evaluate((one) => getComputedStyle(one).backgroundColor)).toBe('rgb(1, 2, 3)')
  })

  describe('where the phone shows a return code', () => {
    const field = (page: Page) => page.getByLabel('Code on your phone')
    const withReturnCodes = { confirmationCode: 'return' } as const
    const wrong = (right: string): string => (right === '000000' ? '000001' : '000000')

    /** Has the page show an order, and the phone approve it. Returns the code that the phone shows. */
    async function approved(
      page: Page,
      phone: CountersignClient,
    ): Promise<{ claim: ClaimedOrder; returnCode: string }> {
      await code(page).waitFor()
      const claim = await phone.claimOrder(await scan(code(page)))
      const challenge = await phone.getOrderChallenge(claim)
      await status(page).filter({ hasText: 'Continue on your phone.' }).waitFor()
      const { returnCode } = await phone.approveOrder(claim, { challenge })
      await field(page).waitFor()
      return { claim, returnCode: returnCode! }
    }

    test('takes it with its sixth digit, and says how many tries are left after a wrong one', async () => {
      provokes(/401 .*finalize/)
      const { url, phone, show } = await setUp(withReturnCodes)
      const { page, trail } = await browser.open()
      await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
      const { returnCode } = await approved(page, phone)
      await page
        .getByRole('timer')
        .filter({ hasText: /Expires in (3:00|2:[345]\d)/ })
        .waitFor()
      expect(await field(page).getAttribute('inputmode')).toBe('numeric')
      expect(await field(page).getAttribute('autocomplete')).toBe('one-time-code')
      await expectAccessible(page, 'return code')

      // The page has no other control in use, so the digits need no click.
      await page.keyboard.type(wrong(returnCode))
      await status(page).filter({ hasText: '2 attempts left.' }).waitFor()
      expect(await field(page).inputValue()).toBe('')
      expect(await field(page).getAttribute('aria-invalid')).toBe('true')
      // Instruction, boxes, what was wrong, time.
      const places = [
        page.getByText('Approved. Enter the code that your phone shows.'),
        page.locator('.digits'),
        page.getByText('2 attempts left.'),
        page.getByRole('timer'),
      ].map(async (one) => (await one.boundingBox())!.y)
      const tops = await Promise.all(places)
      expect(tops).toEqual(tops.toSorted((a, b) => a - b))
      await expectAccessible(page, 'wrong return code')
      await page.keyboard.type('12')
      expect(await page.locator('[part=return-code-digit]').allTextContents()).toEqual(['1', '2', '', '', '', ''])
      await page.keyboard.press('Backspace')
      await page.keyboard.press('Backspace')
      for (const inScript of ['٣٩', '３９', 'Code: ३–९.']) {
        await field(page).fill(inScript)
        expect(await field(page).inputValue(), inScript).toBe('39')
      }
      await field(page).fill('')
      await page.keyboard.type(`${returnCode.slice(0, 3)} ${returnCode.slice(3)}`)
      expect(await detailOf(page, 'countersign:signed-in')).toMatchObject({ session: { address: wallet.address } })
      await status(page).filter({ hasText: 'You’re signed in.' }).waitFor()
      expect(await field(page).isVisible()).toBe(false)
      const statuses = (await seen(page)).map(({ detail }) => detail.status).slice(0, -1)
      expect(statuses).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized'])
      expect(trail.faults).toEqual([])
    })

    test('ends after three wrong ones, in the dark, and starts again', async () => {
      provokes(/401 .*finalize/)
      const { url, phone, show } = await setUp(withReturnCodes)
      const { page } = await browser.open({ colorScheme: 'dark', viewport: { width: 320, height: 640 } })
      await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
      const { returnCode } = await approved(page, phone)
      await expectAccessible(page, 'return code in the dark')
      for (const left of [2, 1]) {
        await page.keyboard.type(wrong(returnCode))
        await status(page)
          .filter({ hasText: left === 1 ? '1 attempt left.' : `${left} attempts left.` })
          .waitFor()
      }
      await page.keyboard.type(wrong(returnCode))
      await status(page).filter({ hasText: 'Three wrong codes: the request was cancelled. Start again.' }).waitFor()
      await expectAccessible(page, 'codes used up in the dark')
      const statuses = (await seen(page)).map(({ detail }) => detail.status)
      expect(statuses).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'rejected'])
      // The focus is on the button, although the field that had it is gone.
      await page.keyboard.press('Enter')
      await code(page).waitFor()
    })

    test('says when the phone stops the request, and cancels the request when the page leaves it', async () => {
      const { url, phone, show } = await setUp(withReturnCodes)
      const { page } = await browser.open()
      const html = `<countersign-sign-in base-url="${url}"></countersign-sign-in>`
      await show(page, html, url)
      const { claim } = await approved(page, phone)
      await field(page).pressSequentially('123')
      await phone.rejectOrder(claim)
      await status(page).filter({ hasText: 'Cancelled on the phone.' }).waitFor()
      expect(await field(page).isVisible()).toBe(false)
      await renew(page).click()

      const second = await approved(page, phone)
      const cancelled = page.waitForResponse((response) => response.url().endsWith('/cross-device/cancel'))
      await page.locator('countersign-sign-in').evaluate((element) => element.remove())
      await cancelled
      expect(await phone.getOrderChallenge(second.claim).catch((error) => error.code)).toBe('ORDER_CANCELLED')
    })

    test('leaves the focus to a control that the user is at', async () => {
      const { url, phone, show } = await setUp(withReturnCodes)
      const { page } = await browser.open()
      const note = '<label>Note <input></label>'
      await show(page, `${note}<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
      await page.getByLabel('Note').pressSequentially('Buy ')
      const { returnCode } = await approved(page, phone)
      await page.keyboard.type('tulips')
      expect(await page.getByLabel('Note').inputValue()).toBe('Buy tulips')
      await field(page).fill(returnCode)
      await detailOf(page, 'countersign:signed-in')
    })

    test('can be cancelled with the keyboard', async () => {
      const { url, phone, show } = await setUp(withReturnCodes)
      const { page } = await browser.open()
      await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
      await approved(page, phone)
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await status(page).filter({ hasText: 'Cancelled.' }).waitFor()
      await page.keyboard.press('Enter')
      await code(page).waitFor()
    })

    test('keeps the digits while the service does not answer', async () => {
      provokes(/net::ERR/)
      const { url, phone, show } = await setUp(withReturnCodes)
      const proxy = await CuttableProxy.start(url)
      const { page } = await browser.open()
      await show(page, `<countersign-sign-in base-url="${proxy.url}"></countersign-sign-in>`, proxy.url)
      const { returnCode } = await approved(page, phone)
      await proxy.refuse()
      await field(page).fill(returnCode)
      await status(page).filter({ hasText: 'Connection lost. Trying again …' }).waitFor()
      expect(await field(page).inputValue()).toBe(returnCode)
      proxy.forward()
      await detailOf(page, 'countersign:signed-in')
    })

    test('asks for none on a computer that the phone’s user let be remembered', async () => {
      const { url, phone, show } = await setUp(withReturnCodes)
      const { page } = await browser.open()
      const html = `<countersign-sign-in base-url="${url}"></countersign-sign-in>`
      await show(page, html, url)
      await code(page).waitFor()
      const returnCode = await approveAndRemember(phone, await scan(code(page)))
      await field(page).fill(returnCode)
      await detailOf(page, 'countersign:signed-in')

      await show(page, html, url)
      await code(page).waitFor()
      await answer(phone, await scan(code(page)), true)
      await detailOf(page, 'countersign:signed-in')
      expect(await field(page).isVisible()).toBe(false)
    })
  })

  describe('with an order that the page’s backend starts', () => {
    const startKey = 'a-start-key-for-tests-and-for-nothing-else'

    test('signs in, and the backend gets the key of the computer', async () => {
      const { origin, url, phone, show } = await setUp({ orderStartKeys: [startKey] })
      const { page } = await browser.open()
      const asked: object[] = []
      const backend = createCountersignClient({ baseUrl: url })
      await page.exposeFunction('askBackend', async (request: { computerKey?: string }) => {
        asked.push(request)
        const requester = { origin, ip: '198.51.100.7' }
        return await backend.startOrder({ kind: 'login', returnTo: '/desk', requester, startKey, ...request })
      })
      await show(page, '', url)
      await page.evaluate((baseUrl) => {
        const element = document.createElement('countersign-sign-in')
        element.setAttribute('base-url', baseUrl)
        element.startOrder = ({ computerKey }) => Reflect.get(globalThis, 'askBackend')({ computerKey })
        document.querySelector('main')?.append(element)
      }, url)
      await code(page).waitFor()
      expect(asked).toEqual([{ computerKey: expect.stringMatching(/^[\w-]{122}$/) }])
      await answer(phone, await scan(code(page)), true)
      expect(await detailOf(page, 'countersign:signed-in')).toMatchObject({ redirectTo: '/desk' })
    })

    test('cancels one that arrives when the page has left', async () => {
      const { origin, url, phone, show } = await setUp()
      const { page } = await browser.open()
      await show(page, '', url)
      const backend = createCountersignClient({ baseUrl: url, fetch: fetchFrom(origin) })
      const order = await backend.startOrder({ kind: 'login' })
      const cancelled = page.waitForResponse((response) => response.url().endsWith('/cross-device/cancel'))
      await page.evaluate(
        async ({ baseUrl, order }) => {
          const element = document.createElement('countersign-sign-in')
          element.setAttribute('base-url', baseUrl)
          element.startOrder = async () => {
            element.remove()
            return order
          }
          document.querySelector('main')?.append(element)
        },
        { baseUrl: url, order },
      )
      await cancelled
      expect(await phone.claimOrder(order.claimUrl).catch((error) => error.code)).toBe('ORDER_CANCELLED')
    })

    test('says that it did not work if the backend fails', async () => {
      const { url, show } = await setUp()
      const { page } = await browser.open()
      await show(page, '', url)
      await page.evaluate((baseUrl) => {
        const element = document.createElement('countersign-sign-in')
        element.setAttribute('base-url', baseUrl)
        element.startOrder = async () => {
          throw new Error('the backend is away')
        }
        document.querySelector('main')?.append(element)
      }, url)
      await status(page).filter({ hasText: 'Something went wrong.' }).waitFor()
      expect(await page.getByRole('button', { name: 'Try again' }).isVisible()).toBe(true)
    })
  })
})
