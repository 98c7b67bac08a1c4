import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { createCountersignClient } from '../../../src/browser/client/index.ts'
import { requireComputerKey } from '../../../src/core/order/known-computers.ts'
import { type ApplicationWindow, applicationPage, applicationScript, serveSite } from '../other-site.ts'
import { hasBrowser, useBrowser } from '../support.ts'

/** The window in which functions run that a test hands to a page. */
declare const window: ApplicationWindow

const service = 'https://auth.example'

describe.skipIf(!hasBrowser)('the key of a computer, in Chromium', () => {
  const browser = useBrowser()
  let script = ''
  beforeAll(async () => {
    script = await applicationScript()
  })

  /** Opens an application's page, whose client is for a service at `baseUrl`. */
  async function openAt(page: Page, origin: string, baseUrl = service): Promise<void> {
    await page.goto(`${origin}/?service=${encodeURIComponent(baseUrl)}`)
    await page.waitForFunction(() => window.client !== undefined)
  }
  const keyOf = (page: Page): Promise<string | undefined> => page.evaluate(() => window.client.computerKey())

  /** Has an address answer with the application without a server there, and with these headers. */
  async function answerFor(page: Page, origin: string, headers: Record<string, string> = {}): Promise<void> {
    await page.context().route(`${origin}/**`, (route) => {
      const isScript = route.request().url().endsWith('/script.js')
      const contentType = isScript ? 'text/javascript' : 'text/html'
      return route.fulfill({ headers, contentType, body: isScript ? script : applicationPage })
    })
  }

  test('is made once and lasts over reloads and in other tabs', async () => {
    const { url } = await serveSite(applicationPage, script)
    const { page } = await browser.open()
    await openAt(page, url)
    const key = await keyOf(page)
    // Throws for anything but a P-256 key in the form that the service takes.
    requireComputerKey(key!)
    expect(await keyOf(page)).toBe(key)
    await page.reload()
    await page.waitForFunction(() => window.client !== undefined)
    expect(await keyOf(page)).toBe(key)
    const tab = await page.context().newPage()
    await openAt(tab, url)
    expect(await keyOf(tab)).toBe(key)
  })

  test('is one, even if several tabs make it at once', async () => {
    const { url } = await serveSite(applicationPage, script)
    const { page } = await browser.open()
    // So that each tab has seen that there is no key before the first one stores its own.
    await page.context().addInitScript(() => {
      const generateKey = crypto.subtle.generateKey.bind(crypto.subtle)
      const slow = async (...args: Parameters<typeof generateKey>) => {
        await new Promise((resolve) => setTimeout(resolve, 400))
        return await generateKey(...args)
      }
      Object.defineProperty(crypto.subtle, 'generateKey', { value: slow })
    })
    const tabs = [page, await page.context().newPage(), await page.context().newPage()]
    for (const tab of tabs) await openAt(tab, url)
    const keys = await Promise.all(tabs.map(keyOf))
    expect(keys[0]).toMatch(/^[\w-]{122}$/)
    expect(new Set(keys).size).toBe(1)
    await page.reload()
    await page.waitForFunction(() => window.client !== undefined)
    expect(await keyOf(page)).toBe(keys[0])
  })

  test('is another one for each service, however the address is written', async () => {
    const { url } = await serveSite(applicationPage, script)
    const { page } = await browser.open()
    const keyFor = async (baseUrl: string): Promise<string | undefined> => {
      await openAt(page, url, baseUrl)
      return await keyOf(page)
    }
    const key = await keyFor(service)
    expect(await keyFor(`${service}/`)).toBe(key)
    expect(await keyFor(`${service}/auth/`)).toBe(await keyFor(`${service}/auth`))
    expect(await keyFor('https://other.example')).not.toBe(key)
    expect(await keyFor(url)).toBe(await keyFor(''))
  })

  test('has a private key that no script can read', async () => {
    const { url } = await serveSite(applicationPage, script)
    const { page } = await browser.open()
    await openAt(page, url)
    await keyOf(page)
    const stolen = await page.evaluate(async () => {
      const database = await new Promise<IDBDatabase>((resolve) => {
        const request = indexedDB.open('countersign')
        request.onsuccess = () => resolve(request.result)
      })
      const [pair] = await new Promise<CryptoKeyPair[]>((resolve) => {
        const request = database.transaction('computer-keys').objectStore('computer-keys').getAll()
        request.onsuccess = () => resolve(request.result)
      })
      const { privateKey } = pair!
      const exported = (['pkcs8', 'jwk'] as const).map((format) => crypto.subtle.exportKey(format, privateKey))
      const results = await Promise.allSettled(exported)
      return { type: privateKey.type, exported: results.map(({ status }) => status) }
    })
    expect(stolen).toEqual({ type: 'private', exported: ['rejected', 'rejected'] })
  })

  test('is not made for a client with knownComputer: false', async () => {
    const { url } = await serveSite(applicationPage, script)
    const { page } = await browser.open()
    await openAt(page, url)
    const key = await page.evaluate(
      (baseUrl) => window.createClient({ baseUrl, knownComputer: false }).computerKey(),
      service,
    )
    expect(key).toBe(undefined)
    expect(await page.evaluate(() => indexedDB.databases())).toEqual([])
  })

  test('is missing on pages over plain http', async () => {
    const { page } = await browser.open()
    await answerFor(page, 'http://desk.example')
    await openAt(page, 'http://desk.example')
    expect(await page.evaluate(() => isSecureContext)).toBe(false)
    expect(await keyOf(page)).toBe(undefined)
    expect(await page.evaluate(() => indexedDB.databases())).toEqual([])
  })

  test('is missing if the browser forbids storage', async () => {
    const { page } = await browser.open()
    await answerFor(page, 'https://desk.example', { 'content-security-policy': 'sandbox allow-scripts' })
    await openAt(page, 'https://desk.example')
    expect(await keyOf(page)).toBe(undefined)
  })

  test('is missing, after a second, if the browser\u2019s database does not answer', async () => {
    const { url } = await serveSite(applicationPage, script)
    const { page } = await browser.open()
    await openAt(page, url)
    // A deletion waits for an open connection, and whoever opens the database afterwards waits for the deletion.
    await page.evaluate(async () => {
      const connection = await new Promise((resolve) => {
        const request = indexedDB.open('countersign')
        request.onsuccess = () => resolve(request.result)
      })
      Reflect.set(window, 'connection', connection)
      await new Promise((resolve) => {
        indexedDB.deleteDatabase('countersign').onblocked = resolve
      })
    })
    const { key, tookMs } = await page.evaluate(async () => {
      const startedAt = performance.now()
      return { key: await window.client.computerKey(), tookMs: performance.now() - startedAt }
    })
    expect(key).toBe(undefined)
    expect(tookMs).toBeGreaterThan(900)
    expect(tookMs).toBeLessThan(20_000)
  })
})

test('outside of browsers there is no key of the computer', async () => {
  expect(await createCountersignClient({ baseUrl: service }).computerKey()).toBe(undefined)
})
