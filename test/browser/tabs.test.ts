import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { bundleClient } from '../../scripts/build-client.ts'
import { listen } from '../support/listening.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { phoneClient } from './client/phone.ts'
import { hasBrowser, scan, useBrowser } from './support.ts'

const wallet = makeWallet()
const polling = { timeout: 15_000 }

/** What the pages run: they keep what their client tells of the session, and what is said on channels. */
const pageScript = `
  import './src/browser/element/element.ts'
  import { createConnectTransport } from '@connectrpc/connect-web'
  import * as connect from './src/browser/client/connect.ts'
  import { createCountersignClient } from './src/browser/client/index.ts'

  const { searchParams } = new URL(location.href)
  const options = { ...JSON.parse(searchParams.get('options')), wallet: { adapterId: 'nimiq', sign: walletSigns } }
  const included = (input, init) => fetch(input, { ...init, credentials: 'include' })
  const transport = createConnectTransport({ baseUrl: options.baseUrl, fetch: included })
  const client = searchParams.has('connect')
    ? connect.createCountersignClient({ ...options, transport })
    : createCountersignClient(options)
  const told = []
  const stop = client.onSession((session) => told.push(session?.id ?? 'nobody'))
  Object.assign(globalThis, { client, told, stop })
`

const script = bundleClient({
  stdin: { contents: pageScript, resolveDir: fileURLToPath(new URL('../..', import.meta.url)), loader: 'ts' },
})

/** A service, and pages at an origin that it trusts. */
async function setUp() {
  const { code } = await script
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
    response.end(
      isScript ? code : '<!doctype html><title>Tab</title><main></main><script type="module" src="/page.js"></script>',
    )
  })
  const origin = `http://localhost:${await listen(server, 'localhost')}`
  const { url } = await startService({ trustedOrigins: [origin] })

  /** Opens a tab. `query` chooses the client that it has. */
  const openTab = async (context: BrowserContext, options: object = {}, query = ''): Promise<Page> => {
    const page = await context.newPage()
    await page.exposeFunction('walletSigns', (message: string) => ({
      publicKey: wallet.publicKeyHex,
      signature: wallet.sign(message),
    }))
    const client = encodeURIComponent(JSON.stringify({ baseUrl: url, ...options }))
    await page.goto(`${origin}/?options=${client}${query}`)
    await page.waitForFunction('globalThis.told !== undefined')
    return page
  }
  return { url, origin, openTab }
}

const toldTo = (page: Page): Promise<string[]> => page.evaluate('globalThis.told')

async function expectTold(page: Page, ids: readonly string[]): Promise<void> {
  await expect.poll(() => toldTo(page), polling).toEqual(ids)
}

async function signIn(page: Page): Promise<string> {
  return await page.evaluate('client.signInWallet().then(({ session }) => session.id)')
}

describe.runIf(hasBrowser)('the tabs of a page', () => {
  const browser = useBrowser()

  /** A context without tabs, whose pages run this before their own scripts. */
  async function contextWith(initScript: string): Promise<BrowserContext> {
    const { page } = await browser.open()
    const context = page.context()
    await page.close()
    await context.addInitScript(initScript)
    return context
  }

  test('all hear of a sign-in and of a sign-out, whichever client they have, and the channel carries no token', async () => {
    const { openTab } = await setUp()
    const context = await contextWith(`
      globalThis.said = []
      const post = BroadcastChannel.prototype.postMessage
      BroadcastChannel.prototype.postMessage = function (message) {
        said.push([this.name, message])
        post.call(this, message)
      }
    `)
    const [first, second, third] = [
      await openTab(context),
      await openTab(context),
      await openTab(context, {}, '&connect'),
    ]
    const id = await signIn(first)
    for (const tab of [first, second, third]) await expectTold(tab, [id])
    expect(await second.evaluate('client.getCurrentSession().then(({ address }) => address)')).toBe(wallet.address)
    await third.evaluate('client.signOut()')
    for (const tab of [first, second, third]) await expectTold(tab, [id, 'nobody'])
    expect(await first.evaluate('client.readStoredToken()')).toBeUndefined()

    const said = JSON.stringify([await first.evaluate('said'), await third.evaluate('said')])
    expect(said).toContain('changed')
    expect(said).not.toMatch(/css_/)
    // A listener that was ended hears nothing more.
    await second.evaluate('stop()')
    const again = await signIn(first)
    await expectTold(third, [id, 'nobody', again])
    await first.evaluate('client.signOut()')
    await expectTold(third, [id, 'nobody', again, 'nobody'])
    expect(await toldTo(second)).toEqual([id, 'nobody'])
  })

  test('hear each other without a stored token, by the cookie', async () => {
    const { openTab } = await setUp()
    const context = await contextWith('')
    const options = { autoPersistToken: false }
    const [first, second] = [await openTab(context, options), await openTab(context, options)]
    const id = await signIn(second)
    await expectTold(first, [id])
    await first.evaluate('client.signOut()')
    await expectTold(second, [id, 'nobody'])
    expect(await first.evaluate('localStorage.length')).toBe(0)
  })

  test('do not hear of other keys of the token', async () => {
    const { openTab } = await setUp()
    const context = await contextWith('')
    const [mine, other, third] = [
      await openTab(context, { tokenStorageKey: 'mine' }),
      await openTab(context),
      await openTab(context, { tokenStorageKey: 'mine' }),
    ]
    const id = await signIn(mine)
    await expectTold(third, [id])
    await mine.evaluate('client.signOut()')
    await expectTold(third, [id, 'nobody'])
    expect(await toldTo(other)).toEqual([])
  })

  test('hear of a sign-in with the element, in its own tab too', async () => {
    const { url, openTab } = await setUp()
    const context = await contextWith('')
    const [first, second] = [await openTab(context), await openTab(context)]
    await first.bringToFront()
    await first.evaluate((baseUrl) => {
      const element = document.createElement('countersign-sign-in')
      element.setAttribute('base-url', baseUrl)
      document.querySelector('main')?.append(element)
    }, url)
    const code = first.getByRole('img', { name: 'QR code for your phone' })
    await code.waitFor()
    const phone = phoneClient(url, wallet)
    const claim = await phone.claimOrder(await scan(code))
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    await expect.poll(async () => (await toldTo(first)).length, polling).toBe(1)
    const [id] = await toldTo(first)
    expect(await first.evaluate('client.getCurrentSession().then((session) => session.id)')).toBe(id)
    await expectTold(second, [id!])
  })
})
