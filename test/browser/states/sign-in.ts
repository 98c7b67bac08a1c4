import type { BrowserContextOptions, Page } from 'playwright-core'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { freePort } from '../../support/redis-server.ts'
import { makeWallet } from '../../support/wallet.ts'
import { signIn } from '../flows.ts'
import { android } from '../phones.ts'
import {
  claim,
  code,
  enterCode,
  foundWallets,
  noWallet,
  orderEnded,
  orderStates,
  type StateParts,
  type States,
  wallets,
  withoutScripts,
} from './order-states.ts'

const path = '/api/auth/sign-in?returnTo=/welcome'

async function opened(
  { serve, open }: StateParts,
  settings?: CountersignOptions,
  device?: BrowserContextOptions,
): Promise<Page> {
  const [url, page] = [await serve(settings), await open(device)]
  await page.goto(url + path)
  return page
}

/** Opens the page in a browser that is signed in. */
async function signedIn({ serve, open }: StateParts, query = ''): Promise<Page> {
  const [url, page] = [await serve(), await open()]
  await signIn(page, url)
  await page.goto(url + path + query)
  await page.locator('#signed-in').waitFor()
  return page
}

export const signInStates: States = {
  ...orderStates(opened),
  async waiting({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    await page.route('**/cross-device/start', () => {})
    await page.goto(url + path)
    await page.locator('[part=status]:not(:empty)').waitFor()
    return page
  },
  wallets: async (parts) => await wallets(await code(await opened(parts))),
  'no wallet': async (parts) => await wallets(await code(await opened(parts, noWallet))),
  async 'on a phone'(parts) {
    const page = await opened(parts, {}, android)
    return await foundWallets(page)
  },
  async 'code on a phone'(parts) {
    const page = await opened(parts, {}, android)
    await page.locator('[part=other-device]').click()
    return await code(page)
  },
  async claimed(parts) {
    const page = await opened(parts)
    await claim(page)
    return page
  },
  async stopped(parts) {
    const page = await opened(parts, { confirmationCode: 'return' })
    await (await enterCode(page)).order.decline()
    return await orderEnded(page)
  },
  async cancelled(parts) {
    const page = await opened(parts)
    await page.locator('[part=cancel]').click()
    return await orderEnded(page)
  },
  async unreachable({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    await page.route('**/cross-device/start', (route) => route.abort())
    await page.goto(url + path)
    return await orderEnded(page)
  },
  async 'untrusted origin'({ serve, open }) {
    const port = await freePort()
    await serve({ port, publicUrl: `http://auth.localhost:${port}`, pages: { demoWallet: false } })
    const page = await open()
    await page.goto(`http://other.localhost:${port}${path}`)
    await page.locator('[part=picture]').waitFor()
    return page
  },
  async 'a code for a phone'({ serve, open }) {
    const port = await freePort()
    await serve({ port, publicUrl: `http://auth.localhost:${port}` })
    const page = await open()
    await page.goto(`http://auth.localhost:${port}${path}`)
    return await code(page)
  },
  async 'wallets only'(parts) {
    const page = await opened(parts, { orderStartKeys: ['k'.repeat(43)] })
    return await wallets(page)
  },
  async 'a wallet that was asked for'({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    await page.goto(`${url}${path}&wallet=nimiq:${makeWallet().address}`)
    return await code(page)
  },
  'signed in': async (parts) => await signedIn(parts),
  'signed in with another wallet': async (parts) => await signedIn(parts, `&wallet=nimiq:${makeWallet().address}`),
  'no JavaScript': async (parts) => await opened(parts, {}, withoutScripts),
}
