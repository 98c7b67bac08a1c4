import type { Page } from 'playwright-core'
import { clientsFile, connect, shop } from '../../oidc/support.ts'
import { newComputerKey } from '../../relay/devices.ts'
import { makeWallet, type TestWallet } from '../../support/wallet.ts'
import { phoneClient } from '../client/phone.ts'
import { Desktop } from '../desktop.ts'
import { keepCookie, signIn } from '../flows.ts'
import { foundWallets, noWallet, orderStates, type StateParts, type States, withoutScripts } from './order-states.ts'

const windows =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

async function show(page: Page, url: string, query = ''): Promise<Page> {
  await page.goto(`${url}/api/auth/account${query}`)
  await page.locator('#account').waitFor()
  return page
}

async function opened({ serve, open }: StateParts, settings?: Parameters<StateParts['serve']>[0]): Promise<Page> {
  const [url, page] = [await serve(settings), await open()]
  await signIn(page, url)
  return await show(page, url)
}

/** Signs a computer in with a phone, which lets the computer be known. */
async function signInWithPhone(url: string, wallet: TestWallet) {
  const desktop = await Desktop.start(url, undefined, { key: newComputerKey(), headers: { 'user-agent': windows } })
  const phone = phoneClient(url, wallet)
  const order = await phone.claimOrder(desktop.order.claimUrl)
  const challenge = await phone.getOrderChallenge(order)
  const { returnCode } = await phone.approveOrder(order, { challenge, rememberComputer: true })
  return await desktop.finalize(returnCode)
}

async function addWallet(page: Page): Promise<Page> {
  await page.locator('#add-wallet-button').click()
  return await foundWallets(page)
}

/** The order on the device that adds a wallet of another one. */
const linking = orderStates(async (parts, settings) => {
  const page = await opened(parts, settings)
  await page.locator('#link-button').click()
  return page
})

export const accountStates: States = {
  'one wallet': async (parts) => await opened(parts),
  async 'all there is'({ serve, open }) {
    const url = await serve({ confirmationCode: 'return', oidc: { clients: clientsFile(shop) } })
    const page = await open()
    const { wallet } = await connect(url)
    await signInWithPhone(url, wallet)
    await signIn(page, url, wallet)
    await addWallet(await show(page, url))
    await page.locator('#adding countersign-wallets .demo').click()
    await page.locator('#wallets li').nth(1).waitFor()
    return page
  },
  async 'signed in with a phone'({ serve, open }) {
    const [url, page] = [await serve({ confirmationCode: 'return' }), await open()]
    await keepCookie(page, url, await signInWithPhone(url, makeWallet()))
    return await show(page, url)
  },
  async 'a wallet to remove'(parts) {
    const page = await accountStates['all there is']!(parts)
    await page.locator('#wallets li .button').click()
    await page.locator('#end-others-button').click()
    await page.locator('.ask').nth(1).waitFor()
    return page
  },
  'wallets to add': async (parts) => await addWallet(await opened(parts)),
  'no wallet to add': async (parts) => await addWallet(await opened(parts, noWallet)),
  'code for another device': linking.code,
  'code of another device': linking['code entry'],
  'wrong code of another device': linking['wrong code'],
  async 'with a way back'({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    await signIn(page, url)
    return await show(page, url, '?returnTo=/orders')
  },
  async offline(parts) {
    const page = await opened(parts)
    await page.context().setOffline(true)
    await page.locator('#sign-out-button').click()
    await page.locator('#notice').waitFor()
    return page
  },
  async 'offline in a row'({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    const wallet = makeWallet()
    await signIn(page, url, wallet)
    await signIn(page, url, wallet)
    await show(page, url)
    await page.context().setOffline(true)
    await page.locator('#sessions li .button').click()
    await page.locator('#notice').waitFor()
    return page
  },
  async 'no JavaScript'({ serve, open }) {
    const [url, page] = [await serve(), await open(withoutScripts)]
    await page.goto(`${url}/api/auth/account`)
    return page
  },
}
