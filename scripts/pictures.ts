/**
 * Takes the pictures of the documents from the running product, and writes them to docs/images. That of README.md moves,
 * as an APNG: the code is scanned, the phone asks, its code is entered, both are signed in. Needs Chromium, openssl, curl
 * and the built pages: `npm run build`, then `node scripts/pictures.ts`, or with the names of some.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32, deflateSync } from 'node:zlib'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { PNG } from 'pngjs'
import { type CountersignOptions, createCountersign } from '../src/index.ts'
import { makeTestWallet } from '../src/integrations/testing/index.ts'
import { passOn } from '../test/browser/forwarding.ts'
import { scan } from '../test/browser/support.ts'
import { programPath } from '../test/support/browser.ts'
import { Authority } from '../test/support/certificates.ts'
import { bundleClient, clientEntries } from './build-client.ts'

const folder = new URL('../docs/images/', import.meta.url)
const root = fileURLToPath(new URL('../', import.meta.url))
/** Where a picture has no other address. */
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

/** Signs a browser in at a service, with a wallet on the device itself. */
async function signIn(page: Page, url: string, wallet = makeTestWallet()): Promise<{ readonly userId: string }> {
  await page.goto(`${url}/api/auth/sign-in`)
  const post = async (path: string, body: object) =>
    await page.evaluate(
      async ([to, json]) =>
        await (await fetch(to, { method: 'POST', headers: { 'content-type': 'application/json' }, body: json })).json(),
      [`/api/auth/wallet/${path}`, JSON.stringify(body)] as const,
    )
  const { nonceId, message } = await post('nonce', {})
  const proof = { nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
  return (await post('verify', proof)).session
}

/** Signs a computer in with a wallet of its own, and has its account page show the code for another wallet. */
async function openAccount(camera: Camera): Promise<Page> {
  const page = await open(camera, computer)
  await signIn(page, site)
  await page.goto(`${site}/api/auth/account`)
  await page.getByRole('button', { name: 'Add a wallet from another device' }).click()
  const code = page.getByRole('img', { name: /QR code/ })
  await code.waitFor()
  await code.evaluate((shown) => shown.scrollIntoView({ block: 'center' }))
  return page
}

/** A browser that has a wallet, as that of Nimiq Pay has. */
async function openWallet(camera: Camera, wallet = makeTestWallet()): Promise<Page> {
  const page = await open(camera, phone)
  const { address, publicKeyHex, sign } = wallet
  await page.exposeFunction('signForPicture', (message: string) => ({
    publicKey: publicKeyHex,
    signature: sign(message),
  }))
  await page.addInitScript((account) => {
    const scope = globalThis as unknown as { signForPicture: (message: string) => Promise<object> }
    const sign = (message: string): Promise<object> => scope.signForPicture(message)
    Object.assign(globalThis, { nimiqPay: {}, nimiq: { listAccounts: async () => [account], sign } })
  }, address)
  return page
}

/** Opens a claim URL in the browser of a wallet. */
async function openPhone(camera: Camera, claimUrl: string): Promise<Page> {
  const page = await openWallet(camera)
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

/** A part of a picture, as wide as it is to be. */
interface Part {
  readonly shot: Buffer
  readonly width: number
  /** Whether it is seen on a phone. */
  readonly isPhone?: boolean
}

/** Parts beside each other, on white, so that they fit pages that are light or dark. */
async function beside({ browser, scale }: Camera, ...parts: readonly Part[]): Promise<Picture> {
  const page = await browser.newPage({ viewport: { width: 1300, height: 720 }, deviceScaleFactor: scale })
  const images = parts.map(({ shot, width, isPhone }) => {
    const kind = isPhone ? ' class="phone"' : ''
    return `<img${kind} alt="" width="${width}" src="data:image/png;base64,${shot.toString('base64')}">`
  })
  await page.setContent(`<!doctype html>
    <style>
      body { margin: 0; display: flex; justify-content: center; align-items: center; gap: 48px; background: #fff }
      body { width: fit-content; padding: 10px 24px }
      img { display: block; border: 1px solid #9aa8a4; border-radius: 8px }
      .phone { border: 8px solid #1c2523; border-radius: 32px }
    </style>
    ${images.join('')}`)
  const picture = PNG.sync.read(await page.locator('body').screenshot())
  await page.close()
  return picture
}

async function onPhone(page: Page): Promise<Part> {
  return { shot: await page.screenshot(), width: phone.viewport.width * 0.8, isPhone: true }
}

/** A computer, and the phone that has scanned its code. */
async function sideBySide(camera: Camera, left: Buffer, right: Page): Promise<Picture> {
  return await beside(camera, { shot: left, width: clip.width * 0.8 }, await onPhone(right))
}

/** A terminal with what programs have printed. */
async function terminal({ browser, scale }: Camera, columns: number, text: string): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 1600, height: 800 }, deviceScaleFactor: scale })
  await page.setContent(`<!doctype html>
    <style>
      body { margin: 0; width: fit-content; background: #15201d; color: #e4ece9 }
      pre { box-sizing: content-box; margin: 0; width: ${columns}ch; padding: 1rem 1.25rem; font: 14px/1.5 monospace }
      pre { white-space: pre-wrap; overflow-wrap: anywhere }
    </style>
    <pre></pre>`)
  await page.locator('pre').evaluate((shown, printed) => {
    shown.textContent = printed
  }, text)
  const shot = await page.locator('body').screenshot()
  await page.close()
  return shot
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

/** A sign-in by phone, from the code to the account; while its code is entered, that is a picture of its own. */
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
  await write('return-code.png', pictures.slice(-1))
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

/** An agent's request, in the inbox and under review. */
async function takeInbox(camera: Camera): Promise<void> {
  const wallet = makeTestWallet()
  const page = await openWallet(camera, wallet)
  const { userId } = await signIn(page, site, wallet)
  const action = { tool: 'delete_repository', repository: 'tulips-2019', keepIssues: true }
  const asked = await fetch(`${local}/api/auth/cross-device/start`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${startKey}` },
    body: JSON.stringify({
      kind: 'sign',
      inboxUserId: userId,
      requester: { origin: site },
      displayTitle: 'Delete the repository tulips-2019',
      displaySummary: 'Its last change was five years ago.',
      payload: JSON.stringify({ typ: 'countersign/action', action, nonce: 'b3BhcXVlLW5vbmNl' }),
    }),
  })
  if (!asked.ok) throw new Error(await asked.text())
  await page.goto(`${site}/api/auth/inbox`)
  await page.locator('.request').waitFor()
  const listed = await onPhone(page)
  await page.locator('.request .button').click()
  await page.locator('#signer-who').getByText('Nimiq Pay').waitFor()
  await write('inbox.png', [await beside(camera, listed, await onPhone(page))])
}

/** What an application asks for, once its user has signed in. */
async function takeConsent(camera: Camera): Promise<void> {
  const page = await open(camera, computer)
  await signIn(page, issuer)
  const request = new URLSearchParams({
    client_id: 'shop',
    redirect_uri: `${site}/callback`,
    response_type: 'code',
    scope: 'openid profile wallet orders:read',
    resource: 'https://orders.example',
    code_challenge: 'A'.repeat(43),
    code_challenge_method: 'S256',
  })
  await page.goto(`${issuer}/api/auth/oidc/authorize?${request}`)
  await page.locator('#allow-button:not([aria-disabled=true])').waitFor()
  await write('consent.png', [
    await beside(camera, { shot: await page.screenshot({ clip: { ...clip, height: 500 } }), width: clip.width }),
  ])
}

/** A program in a terminal, and the page where its code was entered. */
async function takeDevice(camera: Camera): Promise<void> {
  const curl = await mkdtemp(join(temporary, 'curl-'))
  await writeFile(join(curl, '.curlrc'), `insecure\nconnect-to = "::127.0.0.1:${port}"\n`)
  const program = spawn('sh', ['sign-in.sh'], {
    cwd: join(root, 'examples/oidc/terminals'),
    env: { ...process.env, CURL_HOME: curl, ISSUER: issuer },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [printed] = await once(program.stderr.setEncoding('utf8'), 'data')
  const [code = ''] = /[A-Z]{4}-[A-Z]{4}/.exec(printed) ?? []
  const page = await open(camera, computer)
  await page.goto(`${issuer}/device`)
  await page.locator('#return-code').fill(code)
  await page.waitForURL('**/sign-in?**')
  await signIn(page, issuer)
  await page.goto(`${issuer}/device?back=1`)
  await page.locator('#allow-button:not([aria-disabled=true])').waitFor()
  const shot = await terminal(camera, 52, `$ export ISSUER=${issuer}\n$ sh sign-in.sh\n${printed}`)
  const asking = { shot: await page.screenshot({ clip: { ...clip, height: 690 } }), width: clip.width * 0.8 }
  await write('device.png', [await beside(camera, { shot, width: 400 }, asking)])
  program.kill()
}

/** The element as it is, on a dark page, and in the colours of a page. */
async function takeElement(camera: Camera): Promise<void> {
  const entry = clientEntries.find(({ name }) => name === 'countersign-sign-in')
  if (entry === undefined) throw new Error('the element is not among the bundles')
  const { code, onDemand } = await bundleClient(entry.source)
  const page = await open(camera, computer)
  const files = new Map([
    ['countersign-sign-in.js', code],
    ...[...onDemand].map(([name, part]) => [name, part.code] as const),
  ])
  await page.route(`${site}/skins/*`, async (route) => {
    const file = files.get(new URL(route.request().url()).pathname.replace('/skins/', ''))
    if (file !== undefined) return await route.fulfill({ contentType: 'text/javascript', body: Buffer.from(file) })
    const element = '<countersign-sign-in display-title="Sign in to the tulip shop"></countersign-sign-in>'
    await route.fulfill({
      contentType: 'text/html',
      body: `<!doctype html><html lang="en"><script type="module" src="countersign-sign-in.js"></script>
        <style>
          body { margin: 0; width: fit-content; display: flex }
          div { padding: 2rem 1.5rem }
          countersign-sign-in { width: 20rem }
          .dark { background: #14181f; color: #eceff4 }
          .own { background: #fdf3ea }
          .own countersign-sign-in {
            --countersign-color: #43233a; --countersign-background: #fffdfb; --countersign-accent: #c2410c;
            --countersign-on-accent: #fff; --countersign-radius: 2px; --countersign-border: #e6c9b3;
            font-family: serif;
          }
        </style>
        <div>${element}</div><div class="dark">${element}</div><div class="own">${element}</div>`,
    })
  })
  await page.goto(`${site}/skins/page`)
  await page.waitForFunction(() =>
    [...document.querySelectorAll('countersign-sign-in')].every((one) =>
      one.shadowRoot?.querySelector('[part=qr] svg'),
    ),
  )
  const shot = await page.locator('body').screenshot()
  await write('element.png', [await beside(camera, { shot, width: 954 })])
}

/** A run of the doctor on a setup that has a problem. */
async function takeDoctor(camera: Camera): Promise<void> {
  const cwd = await mkdtemp(join(temporary, 'doctor-'))
  const printed = await new Promise<string>((resolve) => {
    const env = { PATH: process.env.PATH, COUNTERSIGN_PUBLIC_URL: 'https://auth.invalid' }
    execFile(process.execPath, [join(root, 'src/main.ts'), 'doctor'], { cwd, env }, (_, stdout) => resolve(stdout))
  })
  const shot = await terminal(
    camera,
    120,
    `$ countersign doctor\n${printed.replaceAll(cwd, '/srv/countersign').trimEnd()}`,
  )
  await write('doctor.png', [await beside(camera, { shot, width: 1040 })])
}

const startKey = 'a-start-key-for-the-pictures-of-the-inbox'
const issuer = 'https://auth.example'

const clients = {
  clients: [
    {
      metadata: {
        client_id: 'shop',
        client_name: 'Tulip Shop',
        client_secret: 'a-secret-of-the-shop-long-enough',
        redirect_uris: [`${site}/callback`],
        policy_uri: `${site}/privacy`,
        tos_uri: `${site}/terms`,
      },
    },
    {
      metadata: {
        client_id: 'tulip-cli',
        client_name: 'Tulip CLI',
        token_endpoint_auth_method: 'none',
        redirect_uris: [],
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      },
    },
  ],
  resources: [{ resource: 'https://orders.example', scopes: { 'orders:read': 'See your orders' } }],
}

const temporary = await mkdtemp(join(tmpdir(), 'countersign-pictures-'))
await writeFile(join(temporary, 'clients.json'), JSON.stringify(clients))
const { cert, key } = await (await Authority.create(temporary, 'authority')).issue(new URL(site).host)
/** Address of the service that answers at all names. */
let local = ''
const proxy = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (from, to) =>
  passOn(from, to, local, 'https'),
)
await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
const { port } = proxy.address() as AddressInfo
const browser = await chromium.launch({
  executablePath: programPath('chromium'),
  args: ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP *.example 127.0.0.1:${port}`],
})

const atIssuer: CountersignOptions = {
  appName: 'Tulip Account',
  publicUrl: issuer,
  oidc: { device: true, clients: join(temporary, 'clients.json') },
}
/**
 * The pictures: how each is taken, and the settings of its service. Code hosts show that of README.md at a part of its
 * size.
 */
const takes: Readonly<Record<string, readonly [(camera: Camera) => Promise<void>, CountersignOptions, number?]>> = {
  'sign-in': [takeSignIn, {}, 1.25],
  'add-wallet': [takeLink, {}],
  inbox: [takeInbox, { orderStartKeys: [`deploy-agent=${startKey}`] }],
  consent: [takeConsent, atIssuer],
  device: [takeDevice, atIssuer],
  element: [takeElement, {}],
  doctor: [takeDoctor, {}],
}
const wanted = process.argv.slice(2)
try {
  await mkdir(folder, { recursive: true })
  for (const [name, [take, settings, scale = 1]] of Object.entries(takes)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    const service = await createCountersign({
      appName: 'Tulip Shop',
      publicUrl: site,
      host: '127.0.0.1',
      port: 0,
      store: 'sqlite::memory:',
      trustProxy: 1,
      confirmationCode: 'return',
      ...settings,
    })
    local = `http://127.0.0.1:${await service.listen()}`
    await take({ browser, scale }).finally(() => service.close(0))
  }
} finally {
  await browser.close()
  proxy.closeAllConnections()
  proxy.close()
  await rm(temporary, { recursive: true })
}
