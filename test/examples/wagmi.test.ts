import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { provokes, useBrowser } from '../browser/support.ts'
import { run } from '../support/command.ts'
import { DappWallet } from '../support/dapp-wallet.ts'
import { startService } from '../support/service.ts'
import { filesIn, writeFiles } from '../support/snippets.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { environment, minuteMs, serveFolder } from './tools.ts'

/** Newest versions: RainbowKit is for wagmi 2, AppKit and wagmi alone are at wagmi 3. */
const stacks = {
  rainbowkit: ['@rainbow-me/rainbowkit', 'wagmi@2'],
  appkit: ['@reown/appkit', '@reown/appkit-adapter-wagmi', '@reown/appkit-adapter-solana', 'wagmi', '@wagmi/core'],
} as const
const shared = ['@tanstack/react-query', 'react', 'react-dom', '@types/react', '@types/react-dom', 'viem@2', 'vite@8']
const dapps = { rainbowkit: 'rainbowkit', appkit: 'appkit', wagmi: 'appkit' } as const
type Dapp = keyof typeof dapps

const compilerOptions = {
  ...{ strict: true, skipLibCheck: true, noEmit: true, jsx: 'react-jsx' },
  ...{ module: 'esnext', target: 'es2023', moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable'] },
  types: ['vite/client'],
}

/** In place of AppKit's dapp: its own networks do not fit its option `networks` with the newest viem. */
const siwxConfig = `import type { SIWXConfig } from '@reown/appkit'
import { createCountersignClient } from 'countersign/client'
import { siwx } from 'countersign/client/siwe'
export const config: SIWXConfig = siwx(createCountersignClient())
`

const root = folderOfFile()
const sources = await filesIn('examples/wagmi')

/** Installs each stack once, as few other things as its dapps need, and has tsc check them. */
beforeAll(async () => {
  const tarball = await packPackage()
  for (const [name, packages] of Object.entries(stacks)) {
    const cwd = join(root, name)
    await writeFiles(cwd, new Map([['package.json', '{"private":true,"type":"module"}']]))
    const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
    const options = { cwd, env: environment, timeout: 10 * minuteMs }
    await run('npm', [...install, ...packages, ...shared, 'typescript@5', tarball], options)
    const own = [...sources].filter(([path]) => dapps[path.split('/')[0] as Dapp] === name)
    await writeFiles(cwd, new Map([...own, ['siwx/config.tsx', name === 'appkit' ? siwxConfig : '']]))
    await writeFile(
      join(cwd, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, include: ['*/*.tsx'], exclude: ['appkit'] }),
    )
    await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', '.'], options)
  }
}, 30 * minuteMs)

const html = `<!doctype html><meta charset="utf-8"><title>Tulip Shop</title>
<body><div id="root"></div><script type="module" src="main.tsx"></script>`
describe('a dapp of examples/wagmi', () => {
  const browser = useBrowser()

  /** Builds a dapp for a service of its own, and opens it with the wallet of the test. Nothing else can be reached. */
  const open = async (dapp: Dapp) => {
    // What is blocked, and what AppKit says of that.
    provokes(/net::ERR_FAILED/, /Analytics SDK|SWIXUtil/)
    const cwd = join(root, dapps[dapp])
    const origin = await serveFolder(() => join(cwd, dapp, 'dist'))
    const { url } = await startService({ adapters: ['ethereum', 'solana'], trustedOrigins: [origin] })
    const own = [...sources].filter(([path]) => path.startsWith(`${dapp}/`))
    const text = own.map(([path, code]) => [path, code.replace('https://auth.example', url)] as const)
    await writeFiles(cwd, new Map([...text, [`${dapp}/index.html`, html]]))
    const build = ['node_modules/vite/bin/vite.js', 'build', dapp, '--logLevel', 'error']
    await run(process.execPath, build, { cwd, env: environment, timeout: 10 * minuteMs })
    const { page } = await browser.open()
    page.setDefaultTimeout(minuteMs)
    const wallet = new DappWallet()
    await wallet.install(page.context())
    await page.context().route(
      ({ hostname }) => hostname !== 'localhost',
      (route) => route.abort(),
    )
    await page.goto(origin)
    await page.getByText('Signed out').waitFor()
    return { page, wallet, origin }
  }
  const signedIn = (page: Page, address: string) => page.getByText(`Signed in as ${address}`).waitFor()
  const signedOut = (page: Page) => page.getByText('Signed out').waitFor()

  test(
    'with RainbowKit signs in, stays signed in over a reload and in two tabs, and signs out at another account or by its button',
    async () => {
      const { page, wallet, origin } = await open('rainbowkit')
      const sign = page.getByTestId('rk-auth-message-button')
      await page.getByRole('button', { name: 'Connect Wallet' }).click()
      await page.getByRole('button', { name: 'Test Wallet' }).first().click()
      wallet.declinesNext = true
      await sign.click()
      await expect.poll(() => wallet.prompts).toEqual(['connect', 'sign'])
      await sign.click()
      await signedIn(page, wallet.address)
      await page.reload()
      await signedIn(page, wallet.address)
      const tab = await page.context().newPage()
      await tab.goto(origin)
      await signedIn(tab, wallet.address)
      expect(wallet.prompts).toEqual(['connect', 'sign', 'sign'])
      // Once both tabs have connected again.
      await page.getByText(/0x.*…/).first().waitFor()
      await wallet.select(1)
      await Promise.all([signedOut(page), signedOut(tab)])
      // The other account signs in by its own signature, and the session ends with the connection.
      await page.getByRole('button', { name: 'Connect Wallet' }).click()
      await sign.click()
      await signedIn(page, wallet.address)
      expect(wallet.prompts.filter((prompt) => prompt === 'sign')).toHaveLength(3)
      await page.getByTestId('rk-account-button').click()
      await page.getByTestId('rk-disconnect-button').click()
      await Promise.all([signedOut(page), signedOut(tab)])
    },
    10 * minuteMs,
  )

  test(
    'with AppKit signs in, its session is not that of another account, and its button signs out',
    async () => {
      const { page, wallet, origin } = await open('appkit')
      await page.locator('appkit-button').click()
      await page.getByText('Test Wallet', { exact: true }).first().click()
      const sign = page.getByText('Sign', { exact: true }).first()
      wallet.declinesNext = true
      await sign.click()
      await expect.poll(() => wallet.prompts).toEqual(['connect', 'sign'])
      await sign.click()
      await signedIn(page, wallet.address)
      const first = wallet.address
      await page.reload()
      await signedIn(page, first)
      const tab = await page.context().newPage()
      await tab.goto(origin)
      await signedIn(tab, first)
      await tab.close()
      await wallet.select(1)
      // AppKit asks; the session is still the first account's.
      await sign.waitFor()
      await signedIn(page, first)
      expect(wallet.prompts).toEqual(['connect', 'sign', 'sign'])
      await sign.click()
      await signedIn(page, wallet.address)
      await page.locator('appkit-button').click()
      await page.getByTestId('disconnect-button').click()
      await signedOut(page)
    },
    10 * minuteMs,
  )

  test(
    'with AppKit signs in with Solana',
    async () => {
      const { page, wallet } = await open('appkit')
      await page.locator('appkit-button').click()
      await page.getByText('Test Wallet of Solana').first().click()
      await page.getByText('Sign', { exact: true }).first().click()
      await signedIn(page, wallet.solana.address)
      expect(wallet.prompts).toEqual(['connect', 'sign'])
    },
    10 * minuteMs,
  )

  test(
    'with wagmi alone signs in and out, and signs out at another account',
    async () => {
      const { page, wallet, origin } = await open('wagmi')
      const button = (name: string) => page.getByRole('button', { name, exact: true })
      await button('Connect').click()
      await expect.poll(() => wallet.prompts).toEqual(['connect'])
      wallet.declinesNext = true
      await button('Sign in').click()
      await page.getByText('User rejected the request').waitFor()
      await button('Sign in').click()
      await signedIn(page, wallet.address)
      const tab = await page.context().newPage()
      await tab.goto(origin)
      await signedIn(tab, wallet.address)
      await wallet.select(1)
      await Promise.all([signedOut(page), signedOut(tab)])
      await button('Sign in').click()
      await Promise.all([signedIn(page, wallet.address), signedIn(tab, wallet.address)])
      await button('Sign out').click()
      await Promise.all([signedOut(page), signedOut(tab)])
      expect(wallet.prompts).toEqual(['connect', 'sign', 'sign', 'sign'])
    },
    10 * minuteMs,
  )
})
