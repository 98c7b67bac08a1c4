/**
 * Takes the pictures of README.md and docs/several-wallets.md from the real pages: the sign-in page or the account page
 * on a computer, and beside it the approval page on a phone that has scanned its code. Writes them to docs/images. Needs
 * Chromium: `node scripts/pictures.ts`.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { PNG } from 'pngjs'
import { createCountersign } from '../src/index.ts'
import { makeTestWallet } from '../src/integrations/testing/index.ts'
import { scan } from '../test/browser/support.ts'
import { programPath } from '../test/support/browser.ts'

const folder = new URL('../docs/images/', import.meta.url)
const site = 'https://shop.example'

/** What a picture is taken with. */
interface Camera {
  readonly browser: Browser
  /** Address of the local service. */
  readonly local: string
  /** Pixels of the picture for each pixel of a page. */
  readonly scale: number
}

const computer = {
  viewport: { width: 640, height: 860 },
  userAgent:
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
}

const phone = {
  viewport: { width: 380, height: 680 },
  isMobile: true,
  hasTouch: true,
  userAgent:
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
}

/** Opens a page of a browser that finds the site at the local service, as if a proxy with TLS stood between them. */
async function open({ browser, local, scale }: Camera, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({
    ...options,
    deviceScaleFactor: scale,
    colorScheme: 'light',
    locale: 'en-GB',
  })
  const forwarded = {
    'x-forwarded-proto': 'https',
    'x-forwarded-host': new URL(site).host,
    'x-forwarded-for': '203.0.113.7',
  }
  await context.route(`${site}/**`, async (route) => {
    const request = route.request()
    const { pathname, search } = new URL(request.url())
    // The events of an order would be waited for to the last. The picture needs none of them.
    if (pathname.endsWith('/events')) return
    const response = await route.fetch({
      url: local + pathname + search,
      headers: { ...request.headers(), ...forwarded },
    })
    await route.fulfill({ response })
  })
  return await context.newPage()
}

async function openComputer(camera: Camera): Promise<Page> {
  const page = await open(camera, computer)
  await page.goto(`${site}/api/auth/sign-in`)
  await page.getByRole('img', { name: /QR code/ }).waitFor()
  return page
}

/** Signs a computer in with a wallet of its own, and has its account page show the code for another wallet. */
async function openAccount(camera: Camera): Promise<Page> {
  const page = await open(camera, computer)
  await page.goto(`${site}/api/auth/sign-in`)
  const wallet = makeTestWallet()
  const post = async (path: string, body: object) =>
    await page.evaluate(
      async ([to, json]) =>
        await (await fetch(to, { method: 'POST', headers: { 'content-type': 'application/json' }, body: json })).json(),
      [`/api/auth/wallet/${path}`, JSON.stringify(body)] as const,
    )
  const { nonceId, message } = await post('nonce', {})
  await post('verify', { nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) })
  await page.goto(`${site}/api/auth/account`)
  await page.getByRole('button', { name: 'Add a wallet from another device' }).click()
  await page.getByRole('img', { name: /QR code/ }).waitFor()
  return page
}

/** Opens the approval page of a claim URL in a browser that has a wallet, as that of Nimiq Pay has. */
async function openPhone(camera: Camera, claimUrl: string): Promise<Page> {
  const page = await open(camera, phone)
  const { address } = makeTestWallet()
  await page.addInitScript((account) => {
    Object.assign(globalThis, { nimiqPay: {}, nimiq: { listAccounts: async () => [account], sign: () => {} } })
  }, address)
  await page.goto(claimUrl)
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await page.locator('[data-slot=wallet]').getByText('Nimiq Pay').waitFor()
  return page
}

/** One picture of both, on white, so that it fits pages that are light or dark. */
async function sideBySide({ browser, scale }: Camera, left: Buffer, right: Buffer): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 1160, height: 908 }, deviceScaleFactor: scale })
  const image = (name: string, png: Buffer, { width, height }: { width: number; height: number }): string =>
    `<img class="${name}" alt="" width="${width}" height="${height}" src="data:image/png;base64,${png.toString('base64')}">`
  await page.setContent(`<!doctype html>
    <style>
      body { margin: 0; height: 100vh; display: flex; justify-content: center; align-items: center; gap: 64px; background: #fff }
      img { display: block; border: 1px solid #9aa8a4; box-sizing: content-box }
      .computer { border-radius: 8px }
      .phone { border: 10px solid #1c2523; border-radius: 36px }
    </style>
    ${image('computer', left, computer.viewport)}${image('phone', right, phone.viewport)}`)
  return await page.screenshot()
}

/** The same picture without transparency. Without a filter, plain areas take the least. */
function compressed(png: Buffer): Buffer {
  return PNG.sync.write(PNG.sync.read(png), { colorType: 2, deflateLevel: 9, deflateStrategy: 0, filterType: 0 })
}

const service = await createCountersign({
  appName: 'Tulip Shop',
  publicUrl: site,
  host: '127.0.0.1',
  port: 0,
  store: 'sqlite::memory:',
  trustProxy: 1,
})
const local = `http://127.0.0.1:${await service.listen()}`
const browser = await chromium.launch({
  executablePath: programPath('chromium'),
  args: ['--no-sandbox', '--disable-gpu'],
})
try {
  await mkdir(folder, { recursive: true })
  // Code hosts show the first one at half of its size.
  for (const [name, openDesktop, scale] of [
    ['sign-in', openComputer, 1.5],
    ['add-wallet', openAccount, 1],
  ] as const) {
    const camera: Camera = { browser, local, scale }
    const desktop = await openDesktop(camera)
    const claimUrl = await scan(desktop.getByRole('img', { name: /QR code/ }))
    const code = await desktop.screenshot()
    const review = await (await openPhone(camera, claimUrl)).screenshot()
    const picture = compressed(await sideBySide(camera, code, review))
    await writeFile(new URL(`${name}.png`, folder), picture)
    console.log(`docs/images/${name}.png has ${picture.length} bytes`)
  }
} finally {
  await browser.close()
  await service.close(0)
}
