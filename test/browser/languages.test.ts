import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { signIn } from './flows.ts'
import { hasBrowser, inFirefox, provokes, useBrowser } from './support.ts'

/** The languages whose texts a page has loaded, by the names of their files. */
const loadedIn = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const scripts = performance.getEntriesByType('resource').map(({ name }) => name)
    return scripts.flatMap((name) => /\/(german|spanish|japanese)(?:-element)?-\w+\.js/.exec(name)?.[1] ?? [])
  })

describe.skipIf(!hasBrowser || inFirefox)('in a language,', () => {
  const browser = useBrowser()

  test.each([
    ['en-GB', '', 'en-GB', 'Sign in', []],
    ['es-MX', '', 'es-MX', 'Iniciar sesión', ['spanish']],
    ['ja-JP', '', 'ja-JP', 'ログイン', ['japanese']],
    ['en-GB', '?ui_locales=es', 'es', 'Iniciar sesión', ['spanish']],
  ])('a browser in %s that opens the sign-in page%s loads that one only', async (locale, query, lang, title, files) => {
    const { url } = await startService()
    const { page } = await browser.open({ locale })
    await page.goto(`${url}/api/auth/sign-in${query}`)
    await page.getByRole('heading', { name: title, exact: true }).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe(lang)
    // With the list of wallets, which has all of its texts of the page.
    await page.locator('countersign-sign-in [part=this-device]').click()
    await page.locator('countersign-wallets [part=status]').waitFor()
    expect(await loadedIn(page)).toEqual(files)
  })

  test('that cannot be loaded, a page is in English', async () => {
    provokes(/ERR_FAILED/)
    const { url } = await startService()
    const { page } = await browser.open({ locale: 'ja-JP' })
    await page.route(/japanese/, (route) => route.abort())
    await page.goto(`${url}/api/auth/sign-in`)
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
  })

  test.each([
    ['es-MX', 1, 'Cerrar sesión en todos los demás', '¿Cerrar sesión en otro navegador más?', 'Añadida: {date}'],
    ['es-MX', 2, 'Cerrar sesión en todos los demás', '¿Cerrar sesión en otros 2 navegadores?', 'Añadida: {date}'],
    ['ja-JP', 2, 'ほかをすべてログアウト', 'ほかの2個のブラウザをログアウトしますか？', '{date}に追加'],
  ])('%s, the account page counts %i and writes dates', async (locale, count, button, question, added) => {
    const { url } = await startService()
    const { page } = await browser.open({ locale })
    const wallet = makeWallet()
    const at = Date.now() - 3 * 86_400_000
    vi.useFakeTimers({ toFake: ['Date'], now: at })
    onTestFinished(() => void vi.useRealTimers())
    await signIn(page, url, wallet)
    vi.useRealTimers()
    for (let others = 0; others < count; others++) {
      await rest(url, '/wallet/verify', proofOf(wallet, (await rest(url, '/wallet/nonce', {})).json))
    }
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: button }).click()
    await page.getByRole('group', { name: question, exact: true }).waitFor()
    const date = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' }).format(at)
    await page
      .getByRole('listitem')
      .filter({ hasText: added.replace('{date}', date) })
      .waitFor()
  })
})
