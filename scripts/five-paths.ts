/**
 * Walks five people's paths in Chromium against a real service, and prints what each screen on the way asks of them: the
 * words that are in view when it comes, those of the whole page, and the tap that leads on.
 *
 *     node scripts/five-paths.ts [tree]
 *
 * The tree is another checkout with node_modules, such as a clone of an earlier commit. Its pages are built first.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Countersign, CountersignOptions } from '../src/index.ts'
import { makeTestWallet, type TestWallet } from '../src/integrations/testing/index.ts'
import { scan } from '../test/browser/support.ts'
import { programPath } from '../test/support/browser.ts'

const tree = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)))
const signInPath = '/api/auth/sign-in'
const shop = 'https://shop.example'

const computer: BrowserContextOptions = { viewport: { width: 1280, height: 720 }, locale: 'en-GB' }
const phone: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  locale: 'en-GB',
  userAgent:
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
}

/** A screen that a person has passed, and the control that led on. */
interface Seen {
  readonly screen: string
  readonly inView: number
  readonly onPage: number
  readonly tap: string
}

/** What a path is walked with. */
interface Parts {
  readonly serve: (options?: CountersignOptions) => Promise<string>
  /** Opens a page in a browser of its own. With a wallet, that is in the page, as in a wallet app's own browser. */
  readonly open: (options: BrowserContextOptions, wallet?: TestWallet) => Promise<Page>
  readonly seen: Seen[]
}

/** A person who wants something, and how far the pages lead there. */
const paths: Readonly<Record<string, (parts: Parts) => Promise<void>>> = {
  async 'evaluator: the code for a phone, and a demo sign-in'(parts) {
    const page = await parts.open(computer)
    await page.goto(await parts.serve())
    const code = page.getByRole('img', { name: /QR code/ }).first()
    await walk(parts, page, { goal: () => code.isVisible(), taps: [/^Show the code/] })
    await walk(parts, page, {
      goal: () => isSignedIn(page),
      taps: [/^(Sign in$|Use a wallet on this device)/, /demo wallet/i],
    })
  },
  async 'phone approver: signs a computer in'(parts) {
    const desktop = await parts.open(computer)
    await desktop.goto((await parts.serve()) + signInPath)
    const code = desktop.getByRole('img', { name: /QR code/ })
    await code.waitFor()
    await look(parts, desktop, 'scans the code')
    const page = await parts.open(phone, makeTestWallet())
    await page.goto(await scan(code))
    await walk(parts, page, {
      goal: () => isSignedIn(desktop),
      taps: [/^(Review the request|Continue)$/, /^Continue with/, /^Approve/],
    })
  },
  async 'second-wallet adder: from the account page'(parts) {
    const [url, page] = [await parts.serve(), await parts.open(computer, makeTestWallet())]
    await signInBefore(page, url)
    await page.goto(`${url}/api/auth/account`)
    const goal = () =>
      page.evaluate(async () => (await (await fetch('/api/auth/wallet/list')).json()).wallets.length === 2)
    await walk(parts, page, { goal, taps: [/^Add (a|another) wallet$/, /Nimiq Pay/] })
  },
  async 'OIDC user: signs in to an application, and out'(parts) {
    const metadata = {
      client_id: 'shop',
      client_secret: 's'.repeat(43),
      client_name: 'Tulip Shop',
      redirect_uris: [`${shop}/callback`],
      post_logout_redirect_uris: [`${shop}/bye`],
    }
    const clients = await fileWith({ clients: [{ metadata }] })
    const [url, page] = [await parts.serve({ oidc: { clients } }), await parts.open(computer, makeTestWallet())]
    await page.route(`${shop}/**`, (route) => route.fulfill({ body: 'The application' }))
    const query = new URLSearchParams({
      client_id: 'shop',
      redirect_uri: `${shop}/callback`,
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge: 'A'.repeat(43),
      code_challenge_method: 'S256',
    })
    await page.goto(`${url}/api/auth/oidc/authorize?${query}`)
    const isAt = (path: string) => async () => page.url().startsWith(shop + path)
    await walk(parts, page, { goal: isAt('/callback'), taps: [...thisDevice, /^Allow$/] })
    const out = new URLSearchParams({ client_id: 'shop', post_logout_redirect_uri: `${shop}/bye` })
    await page.goto(`${url}/api/auth/oidc/logout?${out}`)
    await walk(parts, page, { goal: isAt('/bye'), taps: [/^Sign out$/] })
  },
  async 'locked-out user: a wallet that may not sign in'(parts) {
    const page = await parts.open(computer, makeTestWallet())
    await page.goto((await parts.serve({ resolveLogin: () => null })) + signInPath)
    const refusal = page.getByText(/not allowed|isn’t (allowed|on the list)/)
    await walk(parts, page, { goal: () => refusal.isVisible(), taps: thisDevice })
  },
}

/** Controls that lead to the wallet in the page. */
const thisDevice = [/^Use a wallet on this device/, /Nimiq Pay/]

/** What a person wants to come to, and the names of the controls that they look for, the one to prefer first. */
interface Way {
  readonly goal: () => Promise<boolean>
  readonly taps: readonly RegExp[]
}

/** Taps one control after the other, as soon as it is there, until the goal is reached. */
async function walk(parts: Parts, page: Page, { goal, taps }: Way): Promise<void> {
  const left = [...taps]
  const end = performance.now() + 20_000
  // A page that is left answers nothing.
  while (!(await goal().catch(() => false))) {
    const next = await firstOf(page, left)
    if (next !== undefined) {
      await look(parts, page, next.name)
      await next.control.click()
      left.splice(left.indexOf(next.pattern), 1)
    }
    if (performance.now() > end) throw new Error(`no way on at ${page.url()} to: ${left.join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await page.waitForLoadState('networkidle').catch(() => {})
  if (page.url().startsWith('http://localhost')) await look(parts, page, '')
}

async function firstOf(page: Page, patterns: readonly RegExp[]) {
  for (const pattern of patterns) {
    const named = { name: pattern, disabled: false }
    const control = page.getByRole('button', named).or(page.getByRole('link', named)).filter({ visible: true }).first()
    if (!(await control.isVisible())) continue
    return { pattern, control, name: pattern.exec((await control.textContent())?.trim() ?? '')?.[0] ?? '' }
  }
  return undefined
}

/** Counts the words that a page shows now. */
async function look({ seen }: Parts, page: Page, tap: string): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  const counted = await page.evaluate(() => {
    const words = { inView: 0, onPage: 0 }
    const count = (root: Node): void => {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (node instanceof Element && node.shadowRoot !== null) count(node.shadowRoot)
        const parent = node.parentElement
        if (!(node instanceof Text) || parent?.checkVisibility({ visibilityProperty: true }) !== true) continue
        if (parent.closest('.spoken, style, script, noscript') !== null) continue
        const range = document.createRange()
        range.selectNodeContents(node)
        const { top, bottom, width } = range.getBoundingClientRect()
        const found = node.data.match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0
        // Of one pixel: for screen readers.
        if (width <= 1) continue
        words.onPage += found
        if (top < innerHeight && bottom > 0) words.inView += found
      }
    }
    count(document.body)
    return words
  })
  // The end of a way, from which the next one begins.
  if (seen.at(-1)?.tap === '' && tap !== '') seen.pop()
  seen.push({ screen: await titleOf(page), ...counted, tap })
}

/** The heading of a screen. */
async function titleOf(page: Page): Promise<string> {
  const heading = page.getByRole('heading').filter({ visible: true }).first()
  return (await heading.isVisible()) ? ((await heading.textContent()) ?? '') : await page.title()
}

async function isSignedIn(page: Page): Promise<boolean> {
  return await page.evaluate(async () => {
    const answer = await fetch('/api/auth/session?allowSignedOut=true')
    return answer.ok && (await answer.json()).session !== undefined
  })
}

/** Signs a wallet in before the path begins. */
async function signInBefore(page: Page, url: string): Promise<void> {
  const { publicKeyHex, sign } = makeTestWallet()
  const headers = { 'content-type': 'application/json', origin: url }
  const post = (path: string, body: object) =>
    page.request.post(`${url}/api/auth/wallet/${path}`, { headers, data: body }).then((answer) => answer.json())
  const { nonceId, message } = await post('nonce', {})
  await post('verify', { nonceId, publicKeyHex, signatureHex: await sign(message) })
}

const folder = await mkdtemp(join(tmpdir(), 'countersign-paths-'))

async function fileWith(content: object): Promise<string> {
  const file = join(folder, 'clients.json')
  await writeFile(file, JSON.stringify(content))
  return file
}

/** Puts a wallet into a page, as the app Nimiq Pay does. */
async function inject(page: Page, { address, publicKeyHex, sign }: TestWallet): Promise<void> {
  await page.exposeFunction('signForTest', async (message: string) => ({
    publicKey: publicKeyHex,
    signature: await sign(message),
  }))
  await page.addInitScript((account) => {
    const scope = globalThis as unknown as { signForTest: (message: string) => Promise<object> }
    const sign = (message: string): Promise<object> => scope.signForTest(message)
    Object.assign(globalThis, { nimiqPay: {}, nimiq: { listAccounts: async () => [account], sign } })
  }, address)
}

/** Walks a path, and prints a row for each screen, with the sums. */
async function print(name: string, browser: Browser, path: (parts: Parts) => Promise<void>): Promise<void> {
  const services: Countersign[] = []
  const seen: Seen[] = []
  const { createCountersign } = (await import(join(tree, 'src/index.ts'))) as typeof import('../src/index.ts')
  await path({
    seen,
    async serve(options = {}) {
      const service = await createCountersign({
        appName: 'Green Bakery',
        store: 'sqlite::memory:',
        port: 0,
        ...options,
      })
      services.push(service)
      return `http://localhost:${await service.listen()}`
    },
    async open(options, wallet) {
      const page = await (await browser.newContext({ reducedMotion: 'reduce', ...options })).newPage()
      if (wallet !== undefined) await inject(page, wallet)
      return page
    },
  })
  for (const service of services) await service.close(0)
  const sum = (of: (row: Seen) => number): number => seen.reduce((total, row) => total + of(row), 0)
  const all = { screen: `${seen.length} screens`, inView: sum((row) => row.inView), onPage: sum((row) => row.onPage) }
  const taps = seen.filter(({ tap }) => tap !== '').length
  console.log(`\n## ${name}\n\n| screen | words in view | on the page | tap |\n|---|---|---|---|`)
  for (const { screen, inView, onPage, tap } of [...seen, { ...all, tap: `${taps} taps` }]) {
    console.log(`| ${screen} | ${inView} | ${onPage} | ${tap} |`)
  }
}

await promisify(execFile)(process.execPath, ['scripts/build-pages.ts'], { cwd: tree })
const browser = await chromium.launch({
  executablePath: programPath('chromium'),
  args: ['--no-sandbox', '--disable-gpu'],
})
try {
  for (const [name, path] of Object.entries(paths)) await print(name, browser, path)
} finally {
  await browser.close()
  await rm(folder, { recursive: true })
}
