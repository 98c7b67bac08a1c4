import type { BrowserContextOptions, Page } from 'playwright-core'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { freePort } from '../../support/redis-server.ts'
import { servePage } from '../element/page.ts'
import { android } from '../phones.ts'
import {
  claim,
  code,
  foundWallets,
  noWallet,
  orderEnded,
  orderStates,
  type StateParts,
  type States,
  wallets,
} from './order-states.ts'

/** What happens besides in {@link opened}. */
interface Opening {
  readonly settings?: CountersignOptions
  readonly device?: BrowserContextOptions
  /** Called before the page is opened. */
  readonly prepare?: (page: Page) => Promise<void>
}

/** Opens a plain page of another site, light or dark as its user wants it, in which the element stands. */
async function opened({ locale, serve, open }: StateParts, { settings, device, prepare }: Opening = {}): Promise<Page> {
  const { origin, show } = await servePage()
  const [url, page] = [await serve({ trustedOrigins: [origin], ...settings }), await open(device)]
  await prepare?.(page)
  const direction = locale.startsWith('ar') ? 'rtl' : 'ltr'
  const element = `<countersign-sign-in base-url="${url}" display-title="Sign in to Tally"></countersign-sign-in>`
  const content = `<div lang="${locale}" dir="${direction}">${element}</div>`
  await show(page, `<meta name="color-scheme" content="light dark">${content}`, url)
  return page
}

export const elementStates: States = {
  ...orderStates((parts, settings) => opened(parts, settings === undefined ? {} : { settings })),
  'no wallet': async (parts) => await wallets(await code(await opened(parts, { settings: noWallet }))),
  async 'on a phone'(parts) {
    const page = await opened(parts, { device: android, settings: noWallet })
    return await foundWallets(page)
  },
  async done(parts) {
    const page = await opened(parts)
    await (await claim(page)).approve()
    await page.locator('[part=actions]').waitFor({ state: 'hidden' })
    return page
  },
  async unreachable(parts) {
    const prepare = (page: Page) => page.route(/cross-device\/start|healthz/, (route) => route.abort()).then(() => {})
    return await orderEnded(await opened(parts, { prepare }))
  },
  async 'untrusted origin'(parts) {
    const page = await opened(parts, { settings: { trustedOrigins: ['https://tally.example'] } })
    await page.locator('[part=picture]').waitFor()
    return page
  },
  async waiting(parts) {
    const page = await opened(parts, {
      prepare: (page) => page.route('**/cross-device/start', () => {}).then(() => {}),
    })
    await page.locator('[part=qr].bone').waitFor()
    return page
  },
  async 'a code for a phone'(parts) {
    const port = await freePort()
    return await code(await opened(parts, { settings: { port, publicUrl: `http://auth.localhost:${port}` } }))
  },
}
