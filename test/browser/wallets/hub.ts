import { build } from 'esbuild'
import type { BrowserContext, Page } from 'playwright-core'
import { makeWallet, type TestWallet } from '../../support/wallet.ts'

/**
 * Address of the Nimiq Hub. No request of a test leaves this machine: the browser's requests to it are answered here.
 */
export const hubOrigin = 'https://hub.nimiq.com'

/** A stand-in for the Nimiq Hub. */
export interface HubStandIn {
  /** The account that its user signs with: the test can choose another. */
  wallet: TestWallet
  /** Origins of the pages that asked for a signature, as the browser named them, and what they asked for. */
  readonly requests: { readonly origin: string; readonly appName: string; readonly message: string }[]
}

/**
 * Serves a stand-in for the Nimiq Hub to the pages of a context: a site of another origin that speaks the Hub's
 * protocol by Nimiq's own library, has the buttons "Sign" and "Cancel", and signs with a wallet of Nimiq's own library.
 * Its address is the Hub's own by default.
 */
export async function serveHub(context: BrowserContext, origin: string = hubOrigin): Promise<HubStandIn> {
  const requests: { origin: string; appName: string; message: string }[] = []
  const hub: HubStandIn = { wallet: makeWallet(), requests }
  await context.exposeBinding('askHub', (_, asked: { origin: string; appName: string; message: string }) => {
    requests.push(asked)
  })
  await context.exposeBinding('signAtHub', (_, message: string) => ({
    signer: hub.wallet.address,
    signerPublicKey: hub.wallet.publicKeyHex,
    signature: hub.wallet.sign(message),
  }))
  const body = `<!doctype html><meta charset="utf-8"><title>Hub</title><h1>Sign in the Hub</h1>
    <pre></pre><button id="sign">Sign</button><button id="cancel">Cancel</button><script>${await script()}</script>`
  await context.route(`${origin}/**`, (route) => route.fulfill({ contentType: 'text/html', body }))
  return hub
}

/** The Hub's window, once it has been asked for a signature. */
export async function hubWindow(context: BrowserContext): Promise<Page> {
  const isHub = (page: Page): boolean => new URL(page.url()).origin === hubOrigin
  const page = context.pages().find(isHub) ?? (await context.waitForEvent('page', isHub))
  await expectAsked(page)
  return page
}

/** Waits until the Hub's page was asked for a signature. */
export async function expectAsked(hub: Page): Promise<void> {
  await hub.getByText('Nonce: ').waitFor()
}

let bundled: Promise<string> | undefined

function script(): Promise<string> {
  bundled ??= (async () => {
    const { outputFiles } = await build({
      stdin: { contents: source, resolveDir: import.meta.dirname, loader: 'js' },
      bundle: true,
      write: false,
      format: 'iife',
    })
    return (outputFiles[0]?.text ?? '').replaceAll('</script', '<\\/script')
  })()
  return bundled
}

const source = `
import { RpcServer } from '@nimiq/rpc'

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => Number.parseInt(pair, 16))
const server = new RpcServer('*')
server.onRequest('sign-message', (state, { appName, message }) => new Promise((resolve, reject) => {
  window.askHub({ origin: state.origin, appName, message })
  document.querySelector('pre').textContent = message
  document.querySelector('#sign').onclick = async () => {
    const { signer, signerPublicKey, signature } = await window.signAtHub(message)
    resolve({ signer, signerPublicKey: bytes(signerPublicKey), signature: bytes(signature) })
  }
  document.querySelector('#cancel').onclick = () => reject(new Error('CANCELED'))
}))
server.init()
`
