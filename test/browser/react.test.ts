import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { listen } from '../support/listening.ts'
import { startService } from '../support/service.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
import { phoneClient } from './client/phone.ts'
import { App } from './react-app.tsx'
import { hasBrowser, provokes, scan, useBrowser } from './support.ts'

const polling = { timeout: 20_000 }

/**
 * React's development build, in which StrictMode runs every effect twice. What is imported on demand is a file of its
 * own.
 */
async function bundle(): Promise<ReadonlyMap<string, Uint8Array>> {
  const contents = `
    import { createElement, StrictMode } from 'react'
    import { hydrateRoot } from 'react-dom/client'
    import { App } from './react-app.tsx'
    globalThis.noted = []
    const root = document.querySelector('#root')
    const app = createElement(App, { service: root.dataset.service })
    hydrateRoot(root, createElement(StrictMode, null, app))
  `
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)), sourcefile: 'page.js' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"development"' },
    outdir: '/',
    entryNames: 'page',
    write: false,
    logLevel: 'silent',
  })
  return new Map(outputFiles.map(({ path, contents }) => [path, contents]))
}

/** A service, and at another origin the application that uses it, rendered on a server. */
async function setUp() {
  const files = await bundle()
  const rendered = { html: '' }
  const server = createServer(({ url = '' }, response) => {
    const file = files.get(url)
    response.setHeader('content-type', file === undefined ? 'text/html; charset=utf-8' : 'text/javascript')
    response.end(file ?? rendered.html)
  })
  const origin = `http://localhost:${await listen(server, 'localhost')}`
  const { url } = await startService({ trustedOrigins: [origin] })
  const root = renderToString(createElement(App, { service: url }))
  rendered.html = `<!doctype html><html lang="en"><title>Tally</title><script type="module" src="/page.js"></script><div id="root" data-service="${url}">${root}</div></html>`
  const wallet = makeWallet()
  const phone = phoneClient(url, wallet)
  return { origin, root, wallet, phone }
}

/** Gives the application a wallet that signs with this function. */
async function giveWallet(page: Page, sign: (message: string) => unknown): Promise<void> {
  await page.exposeFunction('sign', sign)
  await page.addInitScript('globalThis.wallet = { adapterId: "nimiq", sign: (message) => sign(message) }')
}

const signedBy = (wallet: TestWallet) => (message: string) => ({
  publicKey: wallet.publicKeyHex,
  signature: wallet.sign(message),
})
const text = (page: Page, id: string) => page.locator(`#${id}`).textContent()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const noted = (page: Page) => page.evaluate('globalThis.noted') as Promise<string[]>
const code = (page: Page) => page.getByRole('img', { name: 'QR code for your phone' })

describe.runIf(hasBrowser)('an application of React in Chromium', () => {
  const browser = useBrowser()

  /** Opens a page, and keeps what it logs as an error. */
  async function open() {
    const { page, trail } = await browser.open()
    const errors: string[] = []
    page.on('console', (message) => {
      // But for requests that a test itself has cut.
      if (message.type() === 'error' && !message.text().includes('net::ERR_FAILED')) errors.push(message.text())
    })
    page.on('pageerror', (error) => errors.push(String(error)))
    const count = (end: string) =>
      trail.requests.filter(({ url, method }) => method !== 'OPTIONS' && url.endsWith(end)).length
    return { page, errors, count }
  }

  test('is rendered on a server, goes on in StrictMode, and signs in with a phone', async () => {
    const { origin, root, wallet, phone } = await setUp()
    expect(root).toContain('<p id="session">loading')
    expect(root).toMatch(
      /<countersign-sign-in (?=[^>]*kind="login")(?=[^>]*display-title="Tally")(?=[^>]*wallets-first="")(?=[^>]*class="card")[^>]*>One moment/,
    )
    expect(root).not.toMatch(/cross-device-only|\[object|return-to/)

    const { page, errors, count } = await open()
    await giveWallet(page, signedBy(wallet))
    await page.goto(origin)
    await code(page).waitFor()
    await expect.poll(() => text(page, 'session'), polling).toMatch(/^signed-out/)
    expect(await text(page, 'badge')).toBe('signed-out')
    expect(await noted(page)).toEqual(['start 0', 'created 0'])
    // For two components, each of which came twice.
    expect(count('/api/auth/session?allowSignedOut=true')).toBe(1)

    // Functions and objects that are made at each rendering start no new order, and the latest ones are used.
    for (const _ of [1, 2, 3]) await press(page, 'Render')
    expect(await text(page, 'renderings')).toBe('3')
    await page.getByRole('button', { name: 'Stop 3' }).waitFor()
    expect(await noted(page)).toEqual(['start 0', 'created 0'])
    // Its effects are taken back, and run again.
    await press(page, 'Hide')
    await code(page).waitFor({ state: 'hidden' })
    await press(page, 'Hide')
    await code(page).waitFor()
    expect(await noted(page)).toEqual(['start 0', 'created 0'])
    await press(page, 'Rename')
    await expect.poll(() => noted(page), polling).toEqual(['start 0', 'created 0', 'start 3', 'created 3'])
    expect(count('/cross-device/start')).toBe(2)

    await code(page).waitFor()
    const claim = await phone.claimOrder(await scan(code(page)))
    const challenge = await phone.getOrderChallenge(claim)
    expect(challenge.displayTitle).toBe('Tulips')
    await phone.approveOrder(claim, { challenge })
    await expect.poll(() => text(page, 'session'), polling).toBe(`signed-in ${wallet.address} `)
    expect(await text(page, 'badge')).toBe('signed-in')
    expect((await noted(page)).slice(-2)).toEqual(['finalized 3', `signed in ${wallet.address}`])
    expect(await page.locator('countersign-sign-in').count()).toBe(0)

    await press(page, 'Sign out')
    await expect.poll(() => text(page, 'session'), polling).toMatch(/^signed-out/)
    await code(page).waitFor()
    expect(count('/cross-device/start')).toBe(3)

    // With a wallet on this device.
    await press(page, 'Use a wallet on this device')
    // A developer without a wallet has the demo wallet, whose service the client of the page names.
    await page.getByRole('button', { name: /^Demo wallet/ }).waitFor()
    await page.getByRole('button', { name: /^House wallet/ }).click()
    await expect.poll(() => text(page, 'session'), polling).toBe(`signed-in ${wallet.address} `)
    expect((await noted(page)).at(-1)).toBe(`signed in ${wallet.address}`)
    expect((await noted(page)).filter((note) => note.startsWith('signed in'))).toHaveLength(2)
    expect(errors).toEqual([])
  })

  test('signs in with a wallet, and tells an outage from a sign-out', async () => {
    provokes(/net::ERR/)
    const { origin, wallet } = await setUp()
    const { page, errors, count } = await open()
    const answers: ((message: string) => unknown)[] = []
    const signed = signedBy(wallet)
    await giveWallet(page, (message) => answers.shift()?.(message))
    await page.goto(origin)
    await expect.poll(() => text(page, 'session'), polling).toMatch(/^signed-out/)
    await press(page, 'Dialog')
    const nonces = () => count('/wallet/nonce')
    await expect.poll(nonces, polling).toBeGreaterThan(0)
    await page.waitForLoadState('networkidle')

    const prepared = nonces()
    answers.push(() => {
      throw new Error('Request denied')
    })
    await press(page, 'Use wallet')
    await expect.poll(() => text(page, 'sign-in'), polling).toBe('failed WALLET_DECLINED')
    expect(nonces()).toBe(prepared)
    await press(page, 'Reset')
    await expect.poll(() => text(page, 'sign-in'), polling).toBe('idle ')

    // The user leaves while the wallet waits; what it signs later signs nobody in.
    const late = Promise.withResolvers<void>()
    const answered = Promise.withResolvers<void>()
    answers.push(async (message) => {
      await late.promise
      setTimeout(answered.resolve, 500)
      return signed(message)
    })
    await press(page, 'Use wallet')
    await expect.poll(() => text(page, 'sign-in'), polling).toBe('signing-in ')
    await press(page, 'Dialog')
    late.resolve()
    await answered.promise
    expect(count('/wallet/verify')).toBe(0)
    expect(await text(page, 'session')).toMatch(/^signed-out/)

    await press(page, 'Dialog')
    answers.push(signed)
    await press(page, 'Use wallet')
    await expect.poll(() => text(page, 'session'), polling).toBe(`signed-in ${wallet.address} `)
    expect(await text(page, 'sign-in')).toBe('signed-in ')

    await page.route('**/api/auth/session?*', (route) => route.abort())
    await press(page, 'Refresh')
    await expect.poll(() => text(page, 'session'), polling).toBe(`unavailable ${wallet.address} NETWORK`)
    await page.unroute('**/api/auth/session?*')
    await page.evaluate('dispatchEvent(new Event("online"))')
    await expect.poll(() => text(page, 'session'), polling).toBe(`signed-in ${wallet.address} `)

    await press(page, 'Sign out')
    await expect.poll(() => text(page, 'session'), polling).toMatch(/^signed-out/)
    await expect.poll(() => text(page, 'sign-in'), polling).toBe('idle ')
    expect(errors).toEqual([])
  })
})
