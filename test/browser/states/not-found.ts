import type { Page } from 'playwright-core'
import { signIn } from '../flows.ts'
import type { StateParts, States } from './order-states.ts'

/** Opens a page behind forward auth that is for others, as its proxy asks for it. */
async function refused({ serve, open }: StateParts, headers: Record<string, string>): Promise<Page> {
  const [url, page] = [await serve({ trustProxy: 1 }), await open()]
  const host = { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-host': new URL(url).host }
  await signIn(page, url)
  await page.setExtraHTTPHeaders({ ...host, ...headers })
  await page.goto(`${url}/api/auth/forward-auth?groups=staff,admins`)
  await page.locator('#not-found').waitFor()
  return page
}

export const notFoundStates: States = {
  async 'unknown path'({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    await page.goto(`${url}/nothing`)
    await page.locator('#not-found').waitFor()
    return page
  },
  'for members of groups': (parts) => refused(parts, { 'x-forwarded-method': 'GET' }),
  'sent by another site': (parts) => refused(parts, { 'x-forwarded-method': 'POST' }),
}
