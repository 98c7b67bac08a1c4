import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { BrowserContext, Page } from 'playwright-core'

/**
 * Address of the stand-in for the Nimiq Hub. Not at https, because the page is not: from there it would get no
 * referrer.
 */
export const hubOrigin = 'http://hub.example'

/** The page: it does with the chooser what an application does, and keeps what happened in `seen`. */
const pageScript = `
  import * as wallets from './src/browser/wallets/index.ts'
  import HubApi from '@nimiq/hub-api'
  globalThis.seen = []
  globalThis.loads = 0
  globalThis.hubUrl = '${hubOrigin}'
  globalThis.loadHub = async () => {
    globalThis.loads++
    return { default: HubApi }
  }
  globalThis.takeAnswer = async () => {
    const { error, ...answer } = (await wallets.takeHubAnswer({ load: globalThis.loadHub, appName: 'Tally', url: hubUrl })) ?? {}
    return answer.message === undefined ? undefined : { ...answer, ...(error && { code: error.code }) }
  }
  const keep = (entry) => void globalThis.seen.push(entry)
  globalThis.start = ({ address, language, finder: options, ...properties } = {}) => {
    wallets.defineWalletChooser()
    if (language !== undefined) document.documentElement.lang = language
    const chooser = document.createElement('countersign-wallets')
    globalThis.finder = wallets.findWallets(options)
    Object.assign(chooser, { finder: globalThis.finder, ...properties })
    if (address !== undefined) chooser.appAddress = address
    chooser.addEventListener('countersign:wallet', async ({ detail: { wallet: found } }) => {
      const inGesture = navigator.userActivation.isActive
      keep({ chosen: found.id, inGesture })
      try {
        const wallet = await found.connect()
        const account = await wallet.getAccount?.()
        globalThis.account = account
        const answer = await wallet.sign('Text zum Unterschreiben')
        keep({ account, signature: [...answer.signature], key: [...(answer.publicKey ?? answer.signerPublicKey ?? [])] })
      } catch (error) {
        keep({ code: error.code })
      }
    })
    chooser.addEventListener('countersign:open-in', ({ detail }) => keep({ opened: detail.app.id }))
    chooser.addEventListener('countersign:link-error', ({ detail }) => keep({ failed: detail.app.id }))
    document.querySelector('.card').append(chooser)
  }
`

/** What the test puts into the page before its scripts, as an extension does. */
const injectedScript = `
  import * as made from './test/browser/wallets/wallets.ts'
  globalThis.made = made
  globalThis.announce = (info, provider = new made.TestEthereum()) => {
    const detail = Object.freeze({ info: { uuid: crypto.randomUUID(), ...info }, provider })
    const dispatch = () => dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
    addEventListener('eip6963:requestProvider', dispatch)
    dispatch()
    return provider
  }
  globalThis.register = (wallet = new made.TestSolana()) => {
    const callback = (api) => void (globalThis.unregister = api.register(wallet))
    dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: callback }))
    addEventListener('wallet-standard:app-ready', ({ detail: api }) => callback(api))
    return wallet
  }
`

/** A strict policy, like that of the service's own pages. */
const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; img-src data:; style-src 'unsafe-inline'; require-trusted-types-for 'script'; trusted-types 'none'",
  'referrer-policy': 'no-referrer',
}

const html = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Tally</title>
  <style>:root { color-scheme: light dark } .card { padding: 1rem; max-width: 24rem; margin: auto }</style>
  <script type="module" src="/page.js"></script><main class="card"><h1>Tally</h1></main></html>`

/** The bare page with the chooser, served at an origin of its own. */
export interface ChooserPage {
  readonly origin: string
  /**
   * Puts wallets into a context's pages: `script` runs before the page's own and can call \`announce\` and
   * \`register\`.
   */
  inject(context: BrowserContext, script: string): Promise<void>
  /** Opens the page and starts the chooser with the properties that \`options\` evaluates to. */
  open(page: Page, options?: string): Promise<void>
}

/** Serves the page until the test file ends. Call it once in a file. */
export async function serveChooser(): Promise<ChooserPage & { close(): void }> {
  const [page, injected] = await Promise.all([bundle(pageScript, 'esm'), bundle(injectedScript, 'iife')])
  const server = createServer((request, response) => {
    if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(page)
    else response.setHeaders(new Map(Object.entries(headers))).end(html)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`
  return {
    origin,
    close() {
      server.closeAllConnections()
      server.close()
    },
    async inject(context, script) {
      await context.addInitScript({ content: injected })
      await context.addInitScript({ content: script })
    },
    async open(page, options = '{}') {
      await page.goto(`${origin}/sign-in?of=test#fragment`)
      await page.waitForFunction('globalThis.start !== undefined')
      await page.evaluate(`start(${options})`)
    },
  }
}

const hubScript = `
  import { RpcServer } from '@nimiq/rpc'
  const server = new RpcServer('*')
  server.onRequest('sign-message', ({ origin }, { appName, message }) => new Promise((resolve, reject) => {
    globalThis.askHub({ origin, appName, message })
    document.querySelector('pre').textContent = message
    const signed = { signer: 'NQ07', signerPublicKey: new Uint8Array(32).fill(1), signature: new Uint8Array(64).fill(2) }
    document.querySelector('#sign').onclick = () => resolve(signed)
    document.querySelector('#cancel').onclick = () => reject(new Error('CANCELED'))
  }))
  server.init()
`

/**
 * Answers a context's requests to the Nimiq Hub with a stand-in, which speaks by Nimiq's own library and signs with
 * bytes of no meaning. Returns what it is asked, with the origin that the browser tells it.
 */
export async function serveHub(context: BrowserContext): Promise<readonly unknown[]> {
  const asked: unknown[] = []
  await context.exposeBinding('askHub', (_, request) => void asked.push(request))
  const script = (await bundle(hubScript, 'iife')).replaceAll('</script', '<\\/script')
  const body = `<!doctype html><pre></pre><button id="sign">Sign</button><button id="cancel">Cancel</button><script>${script}</script>`
  await context.route(`${hubOrigin}/**`, (route) => route.fulfill({ contentType: 'text/html', body }))
  return asked
}

export async function bundle(contents: string, format: 'esm' | 'iife'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('../..', import.meta.url)), loader: 'ts' },
    bundle: true,
    write: false,
    format,
    platform: 'browser',
    logLevel: 'warning',
  })
  return outputFiles[0]?.text ?? ''
}
