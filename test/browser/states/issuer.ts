import type { Page } from 'playwright-core'
import { askCode, terminal } from '../../oidc/devices.ts'
import { authorizeAddress, documentOf, loopback, publish } from '../../oidc/documents.ts'
import { Browser, clientsFile, discover, fileWith, request, shop, signInByOrder } from '../../oidc/support.ts'
import { startInternet } from '../../support/internet.ts'
import { makeWallet } from '../../support/wallet.ts'
import { signIn } from '../flows.ts'
import type { StateParts, States } from './order-states.ts'

const internet = await startInternet()

/** Opens a client's request in a browser that is signed in. */
async function asked(
  { serve, open }: StateParts,
  parameters: Record<string, string>,
  metadata: typeof shop.metadata & { policy_uri?: string; tos_uri?: string } = shop.metadata,
): Promise<Page> {
  const scopes = { 'orders:read': 'See your orders' }
  const resources = [{ resource: 'https://orders.example', scopes }]
  const clients = fileWith({ clients: [{ metadata }], resources })
  const [url, page] = [await serve({ oidc: { clients, email: '{user_id}@users.example' } }), await open()]
  await signIn(page, url)
  const { address } = await request(await discover(url, metadata), parameters)
  await page.goto(address)
  return await shown(page)
}

/** Opens the request of a client that comes with a document, whose answer goes to a redirect URI. */
async function askedByDocument({ serve, open }: StateParts, redirectUri: string): Promise<Page> {
  const id = publish(internet, 'agent', { redirect_uris: [redirectUri] })
  const oidc = { clients: clientsFile(), clientDocuments: ['*'] }
  const [url, page] = [await serve({ oidc }), await open()]
  await signIn(page, url)
  await page.goto(authorizeAddress(url, id, redirectUri))
  return await shown(page)
}

/** Waits for a card whose buttons are live. */
async function shown(page: Page): Promise<Page> {
  await page.locator('section.card:not(#shell)').filter({ visible: true }).waitFor()
  await page.waitForFunction(() => document.querySelector('section:not([hidden]) [aria-disabled=true]') === null)
  return page
}

async function signingOut({ serve, open }: StateParts, query = ''): Promise<Page> {
  const [url, page] = [await serve({ oidc: { clients: clientsFile(shop) } }), await open()]
  await signIn(page, url)
  await page.goto(`${url}/api/auth/oidc/logout${query}`)
  return await shown(page)
}

/** Opens the page for codes of devices, as a browser on another network than the terminal's. */
async function typing({ serve, open }: StateParts) {
  const oidc = { clients: clientsFile(terminal), device: true }
  const [url, page] = [await serve({ oidc, trustProxy: 1 }), await open()]
  const from = (ip: string) => ({ 'x-forwarded-for': ip, 'x-forwarded-host': new URL(url).host })
  await page.setExtraHTTPHeaders(from('8.8.4.4'))
  const terminalAt = { ...from('185.220.101.7'), 'user-agent': 'curl/8.14.1' }
  const { userCode } = await askCode(url, { scope: 'openid profile wallet offline_access' }, terminalAt)
  await page.goto(`${url}/device`)
  const type = async (code: string) => {
    await page.locator('#return-code').fill(code)
  }
  return { url, page, userCode, type }
}

/** Types a code, and signs in. */
async function typed(parts: StateParts): Promise<Page> {
  const { url, page, userCode, type } = await typing(parts)
  await type(userCode)
  await page.waitForURL('**/sign-in?**')
  await signIn(page, url)
  await page.goto(`${url}/device?back=1`)
  return await shown(page)
}

/** Opens a page at a path of the issuer. */
async function at({ serve, open }: StateParts, path: string): Promise<Page> {
  const [url, page] = [await serve({ oidc: { clients: clientsFile(shop) } }), await open()]
  await page.goto(`${url}/api/auth/oidc/${path}`)
  return await shown(page)
}

const onDevice = { ...shop.metadata, application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'] }

/** Opens a request of an application with a scheme of its own, and answers it. */
async function answered(parts: StateParts, button: 'allow' | 'decline'): Promise<Page> {
  const redirect_uri = 'com.example.shop:/callback'
  const metadata = { ...onDevice, redirect_uris: [redirect_uri], post_logout_redirect_uris: [] }
  const page = await asked(parts, { redirect_uri }, metadata)
  await page.locator(`#${button}-button`).click()
  return await ended(page)
}

async function ended(page: Page): Promise<Page> {
  await page.locator('#ending').waitFor()
  return page
}

async function typedAndAnswered(parts: StateParts, button: 'allow' | 'decline'): Promise<Page> {
  const page = await typed(parts)
  await page.locator(`#${button}-button`).click()
  return await ended(page)
}

/** The endings of a sign-in or a sign-out, by name. */
export const issuerEndings: States = {
  'allowed on a device': async (parts) => await typedAndAnswered(parts, 'allow'),
  'declined on a device': async (parts) => await typedAndAnswered(parts, 'decline'),
  async 'signed in with another device, for a device'(parts) {
    const { url, page, userCode, type } = await typing(parts)
    await type(userCode)
    await page.waitForURL('**/sign-in?**')
    const browser = new Browser(url)
    await signInByOrder(browser, makeWallet())
    await page.context().addCookies([...browser.cookies.values()].map(({ name, value }) => ({ name, value, url })))
    await page.goto(`${url}/device?back=1`)
    return await ended(page)
  },
  'opened in an application on this device': async (parts) => await answered(parts, 'allow'),
  'declined for an application on this device': async (parts) => await answered(parts, 'decline'),
  async 'signed out'(parts) {
    const page = await signingOut(parts)
    await page.locator('#logout-button').click()
    return await ended(page)
  },
  async 'signed out by an application'(parts) {
    const page = await signingOut(parts, '?client_id=shop')
    await page.locator('#logout-button').click()
    return await ended(page)
  },
  error: async (parts) => await asked(parts, { redirect_uri: 'https://other.example/callback' }),
  'error of an unknown application': async (parts) => await at(parts, 'authorize?client_id=unknown'),
  async 'unreachable application'({ serve, open }) {
    const { id } = documentOf('unreachable')
    internet.take('unreachable')
    const url = await serve({ oidc: { clients: clientsFile(), clientDocuments: ['*'] } })
    const page = await open()
    await page.goto(authorizeAddress(url, id))
    return await ended(page)
  },
  over: async (parts) => await at(parts, 'interaction/unknown'),
  async 'not for this account'({ serve, open }) {
    const [url, page] = [await serve({ oidc: { clients: clientsFile({ ...shop, groups: ['staff'] }) } }), await open()]
    await signIn(page, url)
    await page.goto((await request(await discover(url))).address)
    return await ended(page)
  },
  async failure({ serve, open }) {
    const url = await serve({
      oidc: { clients: clientsFile(shop) },
      rateLimit: true,
      limits: { rates: { session: 1 } },
    })
    const page = await open()
    await page.goto(`${url}/api/auth/oidc/logout`)
    await page.reload()
    return await ended(page)
  },
}

export const issuerStates: States = {
  consent: async (parts) => await asked(parts, {}),
  'consent to all': async (parts) =>
    await asked(
      parts,
      {
        scope: 'openid profile wallet email groups offline_access orders:read',
        resource: 'https://orders.example',
        prompt: 'consent',
      },
      {
        ...shop.metadata,
        policy_uri: 'https://shop.example/privacy',
        tos_uri: 'https://shop.example/terms',
      },
    ),
  'consent for an application on this device': async (parts) =>
    await asked(parts, { redirect_uri: 'http://127.0.0.1:4000/callback' }, onDevice),
  'consent for a client with a document, on this device': async (parts) => await askedByDocument(parts, loopback.used),
  'consent for a client with a document, elsewhere': async (parts) =>
    await askedByDocument(parts, 'https://elsewhere.example/callback'),
  'code of a device': async (parts) => (await typing(parts)).page,
  async 'wrong code of a device'(parts) {
    const { page, type } = await typing(parts)
    await type('BBBB-BBBB')
    await page.locator('#code-error:not(:empty)').waitFor()
    return page
  },
  // What a person sees who was talked into typing the code of a stranger's device.
  'consent for a device on another network': async (parts) => await typed(parts),
  async unreachable(parts) {
    const page = await asked(parts, {})
    await page.route('**/api/auth/**', (route) => route.abort())
    await page.locator('#allow-button').click()
    await page.locator('#notice').waitFor()
    return page
  },
  'sign-out': async (parts) => await signingOut(parts),
  ...issuerEndings,
}
