/**
 * Takes the pictures of README.md and docs/several-wallets.md from the real pages, through a whole sign-in or link: the
 * computer, and beside it the phone that has scanned its code. The first one moves, as an APNG: the code is scanned, the
 * phone asks, its code is entered, both are signed in. Writes them to docs/images. Needs Chromium and openssl:
 * `node scripts/pictures.ts`.
 */
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { PNG } from 'pngjs'
import { createCountersign } from '../src/index.ts'
import { makeTestWallet } from '../src/integrations/testing/index.ts'
import { passOn } from '../test/browser/forwarding.ts'
import { scan } from '../test/browser/support.ts'
import { programPath } from '../test/support/browser.ts'
import { Authority } from '../test/support/certificates.ts'

const folder = new URL('../docs/images/', import.meta.url)
const site = 'https://shop.example'

const computer = {
  viewport: { width: 1280, height: 720 },
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

/** What a picture is taken with. */
interface Camera {
  readonly browser: Browser
  /** Pixels of the picture for each pixel of a page. */
  readonly scale: number
}

/** Opens a page of a new browser. */
async function open({ browser, scale }: Camera, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({
    ...options,
    ignoreHTTPSErrors: true,
    deviceScaleFactor: scale,
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
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
  const code = page.getByRole('img', { name: /QR code/ })
  await code.waitFor()
  await code.evaluate((shown) => shown.scrollIntoView({ block: 'center' }))
  return page
}

/** Opens a claim URL in a browser that has a wallet, as that of Nimiq Pay has. */
async function openPhone(camera: Camera, claimUrl: string): Promise<Page> {
  const page = await open(camera, phone)
  const { address, publicKeyHex, sign } = makeTestWallet()
  await page.exposeFunction('signForPicture', (message: string) => ({
    publicKey: publicKeyHex,
    signature: sign(message),
  }))
  await page.addInitScript((account) => {
    const scope = globalThis as unknown as { signForPicture: (message: string) => Promise<object> }
    const sign = (message: string): Promise<object> => scope.signForPicture(message)
    Object.assign(globalThis, { nimiqPay: {}, nimiq: { listAccounts: async () => [account], sign } })
  }, address)
  await page.goto(claimUrl)
  await page.getByRole('button', { name: 'Continue', exact: true }).waitFor()
  return page
}

async function review(hand: Page): Promise<void> {
  await hand.getByRole('button', { name: 'Continue', exact: true }).click()
  await hand.locator('#signer-who').getByText('Nimiq Pay').waitFor()
}

type Picture = ReturnType<typeof PNG.sync.read>

/** What is seen of a computer: where its page has something. */
const clip = { x: 176, y: 0, width: 928, height: 600 }

/** One picture of both, on white, so that it fits pages that are light or dark. */
async function sideBySide({ browser, scale }: Camera, left: Buffer, right: Page): Promise<Picture> {
  const pictures = [left, await right.screenshot()]
  const page = await browser.newPage({ viewport: { width: 1160, height: 580 }, deviceScaleFactor: scale })
  const images = [clip, phone.viewport].map(({ width, height }, index) => {
    const data = pictures[index]?.toString('base64')
    return `<img alt="" width="${width * 0.8}" height="${height * 0.8}" src="data:image/png;base64,${data}">`
  })
  await page.setContent(`<!doctype html>
    <style>
      body { margin: 0; height: 100vh; display: flex; justify-content: center; align-items: center; gap: 48px; background: #fff }
      img { display: block; border: 1px solid #9aa8a4; border-radius: 8px }
      img + img { border: 8px solid #1c2523; border-radius: 32px }
    </style>
    ${images.join('')}`)
  const picture = PNG.sync.read(await page.screenshot())
  await page.close()
  return picture
}

/** Most colours of a picture, beside the transparent one. */
const mostColours = 255

/** A PNG of 256 colours; of several pictures, one that shows each for some seconds, over and over. */
function encode(pictures: readonly Picture[], seconds: number): Buffer {
  const [{ width, height } = { width: 0, height: 0 }] = pictures
  const colours = pictures.map(({ data }) => {
    const view = new DataView(data.buffer, data.byteOffset)
    return Uint32Array.from({ length: width * height }, (_, at) => view.getUint32(at * 4) >>> 8)
  })
  const counts = new Map<number, number>()
  for (const colour of colours.flatMap((picture) => [...picture])) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const most = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour)
  const palette = most.slice(0, mostColours)
  const parts = (colour: number): number[] => [colour >> 16, (colour >> 8) & 255, colour & 255]
  const distance = (a: number, b: number): number =>
    parts(a).reduce((sum, part, index) => sum + (part - (parts(b)[index] ?? 0)) ** 2, 0)
  const nearest = (colour: number): number =>
    palette.reduce((best, one, at) => (distance(one, colour) < distance(palette[best] ?? 0, colour) ? at : best), 0)
  // 0 is the transparent one.
  const indexes = new Map(most.map((colour, at) => [colour, 1 + (at < mostColours ? at : nearest(colour))]))
  const frames = colours.map((picture, number) => {
    const rows = Buffer.alloc((width + 1) * height)
    picture.forEach((colour, at) => {
      // What stays as it was is transparent: it takes the least.
      const isSame = colours[number - 1]?.[at] === colour
      rows[at + Math.floor(at / width) + 1] = isSame ? 0 : (indexes.get(colour) ?? 0)
    })
    return deflateSync(rows, { level: 9 })
  })
  const words = (...values: number[]): Buffer => {
    const buffer = Buffer.alloc(values.length * 4)
    for (const [at, value] of values.entries()) buffer.writeUInt32BE(value, at * 4)
    return buffer
  }
  const chunk = (type: string, ...contents: Uint8Array[]): Buffer => {
    const body = Buffer.concat([Buffer.from(type), ...contents])
    return Buffer.concat([words(body.length - 4), body, words(crc32(body))])
  }
  let sequence = 0
  const moving = frames.length > 1
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', words(width, height), Buffer.of(8, 3, 0, 0, 0)),
    ...(moving ? [chunk('acTL', words(frames.length, 0))] : []),
    chunk('PLTE', Buffer.from([0, ...palette].flatMap(parts))),
    chunk('tRNS', Buffer.of(0)),
    ...frames.flatMap((frame, number) => [
      // Over the one before, for seconds/1.
      ...(moving ? [chunk('fcTL', words(sequence++, width, height, 0, 0), Buffer.of(0, seconds, 0, 1, 0, 1))] : []),
      number === 0 ? chunk('IDAT', frame) : chunk('fdAT', words(sequence++), frame),
    ]),
    chunk('IEND'),
  ])
}

async function write(name: string, pictures: readonly Picture[]): Promise<void> {
  const picture = encode(pictures, 3)
  await writeFile(new URL(name, folder), picture)
  console.log(`docs/images/${name} has ${picture.length} bytes`)
}

const codeOf = (page: Page) => page.getByRole('img', { name: /QR code/ })

/** A sign-in by phone, from the code to the account. */
async function takeSignIn(camera: Camera): Promise<void> {
  const desktop = await openComputer(camera)
  const claimUrl = await scan(codeOf(desktop))
  const scanned = await desktop.screenshot({ clip })
  const hand = await openPhone(camera, claimUrl)
  const pictures = [await sideBySide(camera, scanned, hand)]
  const take = async () => pictures.push(await sideBySide(camera, await desktop.screenshot({ clip }), hand))
  await review(hand)
  await take()
  await hand.getByRole('button', { name: 'Approve' }).click()
  const shown = hand.locator('#return-code > [aria-hidden]')
  await shown.waitFor()
  await desktop.getByText('Code on your phone').waitFor()
  const digits = ((await shown.textContent()) ?? '').replace(/\D/g, '')
  await desktop.keyboard.type(digits.slice(0, 4))
  await take()
  await desktop.keyboard.type(digits.slice(4))
  await desktop.getByRole('heading', { name: 'Your account' }).waitFor()
  await hand.getByRole('heading', { name: 'Your computer is signed in' }).waitFor()
  await take()
  await write('sign-in.png', pictures)
}

/** Adding the wallet of a phone to an account. */
async function takeLink(camera: Camera): Promise<void> {
  const desktop = await openAccount(camera)
  const scanned = await desktop.screenshot({ clip })
  const hand = await openPhone(camera, await scan(codeOf(desktop)))
  await review(hand)
  await write('add-wallet.png', [await sideBySide(camera, scanned, hand)])
}

const temporary = await mkdtemp(join(tmpdir(), 'countersign-pictures-'))
const { cert, key } = await (await Authority.create(temporary, 'authority')).issue(new URL(site).host)
const service = await createCountersign({
  appName: 'Tulip Shop',
  publicUrl: site,
  host: '127.0.0.1',
  port: 0,
  store: 'sqlite::memory:',
  trustProxy: 1,
  confirmationCode: 'return',
})
const local = `http://127.0.0.1:${await service.listen()}`
const proxy = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (from, to) =>
  passOn(from, to, local, 'https'),
)
await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
const { port } = proxy.address() as AddressInfo
const browser = await chromium.launch({
  executablePath: programPath('chromium'),
  args: ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP ${new URL(site).host} 127.0.0.1:${port}`],
})
try {
  await mkdir(folder, { recursive: true })
  // Code hosts show it at a part of its size.
  await takeSignIn({ browser, scale: 1.25 })
  await takeLink({ browser, scale: 1 })
} finally {
  await browser.close()
  proxy.closeAllConnections()
  proxy.close()
  await service.close(0)
  await rm(temporary, { recursive: true })
}
