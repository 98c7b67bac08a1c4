import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { CountersignClient, createCountersignClient, Wallet } from '../../src/browser/client/index.ts'
import { listen } from '../support/listening.ts'

/** What {@link applicationScript} puts into the window, for tests to use. */
export interface ApplicationWindow {
  readonly client: CountersignClient
  readonly createClient: typeof createCountersignClient
  readonly wallet: Wallet
  /** Shows the code for the phone. */
  showCode(): void
  /** The address of whoever signed in with a phone. */
  readonly signedIn: string | undefined
}

/**
 * A site of its own, on a port of its own; stopped when the test ends. Answers every path alike but for `/script.js`.
 */
export async function serveSite(html: string, script = ''): Promise<{ readonly port: number; readonly url: string }> {
  const server = createServer(({ url }, response) => {
    const isScript = url === '/script.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    // So that only a page's own rules can keep it from coming here.
    response.setHeader('access-control-allow-origin', '*').end(isScript ? script : html)
  })
  const port = await listen(server)
  return { port, url: `http://127.0.0.1:${port}` }
}

/** An application's page that uses the client and the element, with the service named in `?service=`. */
export const applicationPage = `<!doctype html><html lang="en"><title>An application</title><body><main></main>
  <script type="module" src="/script.js"></script></body></html>`

/** Bundles the client as applications do. */
export async function applicationScript(): Promise<string> {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { createCountersignClient } from './browser/client/index.ts'
        import { CountersignSignIn } from './browser/element/element.ts'
        import { openDemoWallet } from './browser/wallets/demo-wallet.ts'
        const baseUrl = new URLSearchParams(location.search).get('service')
        window.createClient = createCountersignClient
        window.client = createCountersignClient({ baseUrl })
        window.wallet = openDemoWallet()
        window.showCode = () => {
          const element = new CountersignSignIn()
          element.setAttribute('base-url', baseUrl)
          element.setAttribute('token-storage', '')
          element.addEventListener('countersign:signed-in', (event) => {
            window.signedIn = event.detail.session.address
          })
          document.querySelector('main').append(element)
        }`,
      resolveDir: fileURLToPath(new URL('../../src/', import.meta.url)),
    },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'warning',
  })
  return outputFiles[0]!.text
}
