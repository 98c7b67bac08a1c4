import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { bundleClient, clientEntries } from '../../../scripts/build-client.ts'
import { listen } from '../../support/listening.ts'

/** What the test pages do with the element: they keep its events. */
const pageScript = `
  globalThis.seen = []
  for (const name of ['status', 'signed-in', 'signed', 'error']) {
    addEventListener('countersign:' + name, ({ type, detail }) => globalThis.seen.push({ type, detail }))
  }
`

/** A page with the element, at an origin of its own and under a strict Content-Security-Policy. */
export interface ElementPage {
  readonly origin: string
  /** The element's files, by path. */
  readonly files: ReadonlyMap<string, Uint8Array>
  /**
   * Opens a page with this content, which may connect to this origin. `scripts` is the origin of the element's files.
   */
  show(page: Page, html: string, connect: string, scripts?: string): Promise<void>
}

/** Serves pages with the element to a browser, with further scripts of the test by path. */
export async function servePage(further: Readonly<Record<string, string>> = {}): Promise<ElementPage> {
  const element = clientEntries.find(({ name }) => name === 'countersign-sign-in')!
  const { code, onDemand } = await bundleClient(element.source)
  const files = new Map([
    ['/countersign-sign-in.js', code],
    ...[...onDemand].map(([name, part]) => [`/${name}`, part.code] as const),
  ])
  const scripts = new Map<string | undefined, string | Uint8Array>([
    ['/page.js', pageScript],
    ...files,
    ...Object.entries(further),
  ])
  const pages = new Map<string, { html: string; connect: string; scripts: string }>()
  const server = createServer((request, response) => {
    const script = scripts.get(request.url?.replace(/\?.*/s, ''))
    if (script !== undefined) {
      response.setHeader('content-type', 'text/javascript').end(script)
      return
    }
    const { html = '', connect = '', scripts: from = '' } = pages.get(request.url?.replace(/\?.*/s, '') ?? '') ?? {}
    const policy = `default-src 'none'; script-src 'self' ${from}; connect-src ${connect}; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'`
    response.setHeader('content-type', 'text/html; charset=utf-8').setHeader('content-security-policy', policy)
    response.end(`<!doctype html><html lang="en"><title>Tally</title><meta name="viewport" content="width=device-width">
      <script type="module" src="/page.js"></script><script type="module" src="${from}/countersign-sign-in.js"></script>
      <main><h1>Tally</h1>${html}</main></html>`)
  })
  // Of the service's own site, so that browsers take its cookie.
  const origin = `http://localhost:${await listen(server, 'localhost')}`
  return {
    origin,
    files,
    async show(page, html, connect, scripts = '') {
      const path = `/${pages.size}`
      pages.set(path, { html, connect, scripts })
      await page.goto(origin + path)
    },
  }
}
