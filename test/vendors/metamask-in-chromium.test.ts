import { join } from 'node:path'
import { build } from 'esbuild'
import type { BrowserContext, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { createCountersignClient } from '../../src/browser/client/index.ts'
import { ethereumWallet } from '../../src/browser/wallets/index.ts'
import { codeOf, fetchFrom, MapStorage } from '../browser/client/support.ts'
import { servePage } from '../browser/element/page.ts'
import { serveSite } from '../browser/other-site.ts'
import { hasBrowser, useBrowser } from '../browser/support.ts'
import { announceEthereum } from '../browser/wallets/ethereum.ts'
import { minuteMs, serveFolder } from '../examples/tools.ts'
import { hasPart } from '../support/optional.ts'
import { root } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { filesIn, writeFiles } from '../support/snippets.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { type MetaMask, openMetaMask } from './metamask.ts'
import { installMetaMask } from './packages.ts'

vi.setConfig({ testTimeout: minuteMs })

const button = (page: Page, name: string) => page.getByRole('button', { name })

describe.skipIf(!hasBrowser || !hasPart('npm registry'))('MetaMask’s controllers behind a provider of EIP-6963', () => {
  const browser = useBrowser()
  const folder = folderOfFile()
  let metaMask: MetaMask
  beforeAll(async () => {
    metaMask = await openMetaMask(await installMetaMask(folder, { '@wagmi/core': '3.6.5', viem: '2.57.20' }))
  }, 15 * minuteMs)

  const announce = (context: BrowserContext) =>
    announceEthereum(context, { name: 'MetaMask', rdns: 'io.metamask' }, async (method, params = [], origin) => {
      if (method === 'eth_chainId') return '0x1'
      if (/^eth_(accounts|requestAccounts)$/.test(method)) return [metaMask.address.toLowerCase()]
      if (method !== 'personal_sign') throw { code: 4200, message: `${method} is not supported` }
      return await metaMask.personalSign(String(params[0]), origin).catch(({ code, message }) => {
        throw { code, message }
      })
    })

  /** A page with the provider, and a service that trusts this origin. */
  async function open(origin: string) {
    const { url } = await startService({ adapters: ['ethereum'], trustedOrigins: [origin] })
    const { page } = await browser.open()
    await announce(page.context())
    const before = metaMask.shown.length
    /** What MetaMask showed its user since then. */
    const shown = () => metaMask.shown.slice(before)
    return { url, page, shown }
  }

  /** What MetaMask shows of a sign-in at this origin. */
  const shownFor = (origin: string, warns: boolean) => ({
    form: expect.objectContaining({ domain: new URL(origin).host, address: metaMask.address }),
    warns,
  })

  test('<countersign-sign-in> signs in without a warning, once the user has declined and chosen it again', async () => {
    const site = await servePage()
    const { url, page, shown } = await open(site.origin)
    await site.show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await button(page, 'Use a wallet on this device').click()
    metaMask.declineNext()
    await button(page, 'MetaMask').click()
    await page.getByRole('status').filter({ hasText: 'You declined in your wallet.' }).waitFor()
    expect(await page.context().cookies(url)).toEqual([])
    await button(page, 'MetaMask').click()
    await page.getByRole('status').filter({ hasText: 'You’re signed in.' }).waitFor()
    const [detail] = (await page.evaluate(
      `seen.filter(({ type }) => type === 'countersign:signed-in').map(({ detail }) => detail)`,
    )) as { session: { address: string } }[]
    expect(detail).toMatchObject({ ok: true, session: { adapterId: 'ethereum', address: metaMask.address } })
    expect(await page.context().cookies(url)).toMatchObject([{ httpOnly: true }])
    expect(shown()).toEqual([shownFor(site.origin, false), shownFor(site.origin, false)])
  })

  test('wagmi signs in without a warning, once the user has declined', async () => {
    const cwd = join(folder, 'wagmi')
    const origin = await serveFolder(() => cwd)
    const { url, page, shown } = await open(origin)
    const own = [...(await filesIn('examples/wagmi/wagmi'))]
    const html = '<!doctype html><meta charset="utf-8"><body><script type="module" src="main.js"></script>'
    const files = own.map(([path, code]) => [path, code.replace('https://auth.example', url)] as const)
    await writeFiles(cwd, new Map([...files, ['index.html', html]]))
    await build({
      ...{ entryPoints: [join(cwd, 'main.tsx')], outfile: join(cwd, 'main.js'), bundle: true, format: 'esm' },
      alias: { 'countersign/client': join(root, 'src/browser/client') },
    })
    await page.goto(origin)
    await page.getByText('Signed out').waitFor()
    await button(page, 'Connect').click()
    await expect.poll(() => page.evaluate('localStorage.getItem("wagmi.recentConnectorId")')).toContain('io.metamask')
    metaMask.declineNext()
    await button(page, 'Sign in').click()
    await page.getByText('User rejected the request').waitFor()
    await button(page, 'Sign in').click()
    await page.getByText(`Signed in as ${metaMask.address}`).waitFor()
    expect(shown()).toEqual([shownFor(origin, false), shownFor(origin, false)])
  })

  test('a page of a foreign origin that relays the text of a sign-in gets a warning, and nothing if its user declines', async () => {
    const origin = 'https://tally.example'
    const { url, page, shown } = await open(origin)
    await page.goto((await serveSite('<!doctype html><title>Evil</title>')).url)
    const wallet = ethereumWallet({
      request: (request) =>
        page
          .evaluate(
            (request) =>
              new Promise((resolve) => {
                addEventListener('eip6963:announceProvider', (event) =>
                  resolve((event as CustomEvent).detail.provider.request(request)),
                )
                dispatchEvent(new Event('eip6963:requestProvider'))
              }).then(
                (result) => ({ result }),
                ({ code }) => ({ code }),
              ),
            request,
          )
          .then((answer) => {
            if ('code' in answer) throw answer
            return answer.result
          }),
    })
    // The page's own server calls the service with the origin that it imitates.
    const storage = new MapStorage()
    const client = createCountersignClient({ baseUrl: url, storage, fetch: fetchFrom(origin), wallet })
    metaMask.declineNext()
    expect(await codeOf(client.signInWallet())).toBe('WALLET_DECLINED')
    expect(await client.getCurrentSession()).toBeUndefined()
    expect(shown()).toEqual([shownFor(origin, true)])
  })
})
