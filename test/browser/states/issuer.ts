import type { Page } from 'playwright-core'
import { clientsFile, discover, request, shop } from '../../oidc/support.ts'
import { signIn } from '../flows.ts'
import type { StateParts, States } from './parts.ts'

/** Opens a client's request in a browser that is signed in. */
async function asked(
  { serve, open }: StateParts,
  parameters: Record<string, string>,
  metadata = shop.metadata,
): Promise<Page> {
  const [url, page] = [await serve({ oidc: { clients: clientsFile({ metadata }) } }), await open()]
  await signIn(page, url)
  const { address } = await request(await discover(url, metadata), parameters)
  await page.goto(address)
  await page.locator('section.card').filter({ visible: true }).waitFor()
  await page.waitForFunction(() => document.querySelector('section:not([hidden]) button:disabled') === null)
  return page
}

async function signingOut({ serve, open }: StateParts): Promise<Page> {
  const [url, page] = [await serve({ oidc: { clients: clientsFile(shop) } }), await open()]
  await signIn(page, url)
  await page.goto(`${url}/api/auth/oidc/logout`)
  await page.locator('#logout-button:enabled').waitFor()
  return page
}

const onDevice = { ...shop.metadata, application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'] }

export const issuerStates: States = {
  consent: async (parts) => await asked(parts, {}),
  'consent to all': async (parts) =>
    await asked(parts, { scope: 'openid profile wallet email groups offline_access', prompt: 'consent' }),
  'consent for an application on this device': async (parts) =>
    await asked(parts, { redirect_uri: 'http://127.0.0.1:4000/callback' }, onDevice),
  async unreachable(parts) {
    const page = await asked(parts, {})
    await page.route('**/api/auth/**', (route) => route.abort())
    await page.locator('#allow-button').click()
    await page.locator('#notice').waitFor()
    return page
  },
  'sign-out': async (parts) => await signingOut(parts),
  async 'signed out'(parts) {
    const page = await signingOut(parts)
    await page.locator('#logout-button').click()
    await page.locator('#signed-out').waitFor()
    return page
  },
  error: async (parts) => await asked(parts, { redirect_uri: 'https://other.example/callback' }),
}
