import type { BrowserContextOptions, Page } from 'playwright-core'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { rest } from '../../support/rest.ts'
import { makeWallet } from '../../support/wallet.ts'
import { signIn } from '../flows.ts'
import { android } from '../phones.ts'
import { claim, code, type StateParts, type States, withoutScripts } from './order-states.ts'

async function opened(
  { serve, open }: StateParts,
  settings?: CountersignOptions,
  device?: BrowserContextOptions,
): Promise<Page> {
  const [url, page] = [await serve(settings), await open(device)]
  await page.goto(url)
  await page.locator('#signed-out').waitFor()
  return page
}

async function signedIn({ serve, open }: StateParts) {
  const [url, page, wallet] = [await serve(), await open(), makeWallet()]
  // On two computers.
  await signIn(page, url, wallet)
  const token = await signIn(page, url, wallet)
  await page.goto(url)
  await page.locator('#sessions li').nth(1).waitFor()
  return { url, page, token }
}

async function withProof(parts: StateParts): Promise<Page> {
  const page = await opened(parts)
  await page.locator('#sign-form button').click()
  await (await claim(page, page.locator('#sign-order'))).approve()
  await page.locator('#proof').waitFor()
  return page
}

export const demoStates: States = {
  async 'signed out'(parts) {
    const page = await opened(parts)
    await page.locator('#show-code-button').click()
    return await code(page)
  },
  async 'link on a phone'(parts) {
    const page = await opened(parts, {}, android)
    await page.locator('[part=other-device]').click()
    await page.locator('.claim-notes a').waitFor()
    return page
  },
  'signed in': async (parts) => (await signedIn(parts)).page,
  async 'session ended elsewhere'(parts) {
    const { url, page, token } = await signedIn(parts)
    await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
    await page.locator('#end-others-button').click()
    await page.locator('.ask .button').first().click()
    await page.locator('#ended').waitFor()
    return page
  },
  async 'not JSON'(parts) {
    const page = await opened(parts)
    await page.locator('#sign-order-payload').fill('{')
    await page.locator('#sign-form button').click()
    await page.locator('#payload-error:not(:empty)').waitFor()
    return page
  },
  async 'signature, with its code'(parts) {
    const page = await opened(parts)
    await page.locator('#sign-form button').click()
    return await code(page, page.locator('#sign-order'))
  },
  signature: async (parts) => await withProof(parts),
  async 'details of the signature'(parts) {
    const page = await withProof(parts)
    await page.locator('#proof summary').click()
    return page
  },
  async offline(parts) {
    const { page } = await signedIn(parts)
    await page.context().setOffline(true)
    await page.locator('#sign-out-button').click()
    await page.locator('#notice').waitFor()
    return page
  },
  async 'no JavaScript'({ serve, open }) {
    const [url, page] = [await serve(), await open(withoutScripts)]
    await page.goto(url)
    return page
  },
}
