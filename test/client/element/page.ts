import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { bundleClient, clientEntries } from '../../../scripts/build-client.ts'

/** What the test pages do with the element: they keep its events. */
const pageScript = `
  globalThis.seen = []
  for (const name of ['status', 'signed-in', 'signed', 'error']) {
    addEventListener('countersign:' + name, ({ type, detail }) => globalThis.seen.push({ type, detail }))
  }
`

/** Serves a page with the element to a browser, from an origin of its own and under a strict Content-Security-Policy. */
export async function servePage(): Promise<{
  origin: string
  show: (page: Page, html: string, connect: string) => Promise<void>
}> {
  const element = clientEntries.find(({ name }) => name === 'countersign-sign-in')!
  const scripts = new Map<string | undefined, string | Uint8Array>([
    ['/page.js', pageScript],
    ['/countersign-sign-in.js', (await bundleClient(element.source)).code],
  ])
  const pages = new Map<string, { html: string; connect: string }>()
  const server = createServer((request, response) => {
    const script = scripts.get(request.url)
    if (script !== undefined) {
      response.setHeader('content-type', 'text/javascript').end(script)
      return
    }
    const { html = '', connect = '' } = pages.get(request.url ?? '') ?? {}
    const policy = `default-src 'none'; script-src 'self'; connect-src ${connect}; require-trusted-types-for 'script'`
    response.setHeader('content-type', 'text/html; charset=utf-8').setHeader('content-security-policy', policy)
    response.end(`<!doctype html><html lang="en"><title>Tally</title>
      <script type="module" src="/page.js"></script><script type="module" src="/countersign-sign-in.js"></script>
      <main><h1>Tally</h1>${html}</main></html>`)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  // Of the service's own site, so that browsers take its cookie.
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`
  return {
    origin,
    async show(page, html, connect) {
      const path = `/${pages.size}`
      pages.set(path, { html, connect })
      await page.goto(origin + path)
    },
  }
}
