import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { nodeExchange } from '../../../src/http/exchange.ts'
import { createPages } from '../../../src/http/pages.ts'
import { resolveSettings } from '../../../src/service/config.ts'
import { ResponseOutput } from '../../../src/wire/output.ts'
import { makeAuth } from '../../better-auth/support.ts'
import { listening } from '../../support/listening.ts'
import { startService } from '../../support/service.ts'

/** The security headers of a page. They are written down a second time here, so that none is lost by mistake. */
const expected = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin-allow-popups',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-robots-tag': 'noindex',
}

/** The headers of a page with a style sheet in it: that style and no other may be inline. */
function expectedFor(html: string): typeof expected {
  const style = /<style>(.*)<\/style>/s.exec(html)?.[1]
  if (style === undefined) return expected
  const styles = `style-src 'self' 'sha256-${createHash('sha256').update(style).digest('base64')}'`
  const policy = expected['content-security-policy'].replace("style-src 'self'", styles)
  return { ...expected, 'content-security-policy': policy }
}

const claimPath = '/c/0123456789abcdefABCDEF'
const continuePath = `/cross-device/continue/csh_${'t'.repeat(43)}0123456789abcdefABCDEF`

const signInPath = '/api/auth/sign-in'

test('every page and everything it is made of has all security headers', async () => {
  const { url } = await startService()
  const html = (await Promise.all([claimPath, signInPath].map(async (path) => (await fetch(url + path)).text()))).join()
  const assets = [...html.matchAll(/(?:src|href)="(\/[^"]+\.\w+)"/g)].map(([, path]) => String(path))
  expect(assets.length).toBeGreaterThan(4)
  for (const path of ['/', claimPath, continuePath, signInPath, ...assets]) {
    const response = await fetch(url + path)
    expect(response.status, path).toBe(200)
    expect(Object.fromEntries(response.headers), path).toMatchObject(expectedFor(await response.text()))
    const etag = response.headers.get('etag')
    if (etag === null) continue
    const unchanged = await fetch(url + path, { headers: { 'if-none-match': etag } })
    expect(unchanged.status, path).toBe(304)
    expect(Object.fromEntries(unchanged.headers), path).toMatchObject(expected)
  }
})

test.each([
  ['/brand/logo.svg', "img-src 'self' data:"],
  ['https://cdn.example:8443/brand/logo.svg?v=2#x', "img-src 'self' data: https://cdn.example:8443/brand/logo.svg"],
])('with the logo %s, a page may load that image besides its own', async (logoUrl, images) => {
  const { url } = await startService({ pages: { logoUrl: logoUrl } })
  const response = await fetch(url + claimPath)
  const own = expectedFor(await response.text())
  const policy = own['content-security-policy'].replace("img-src 'self' data:", images)
  expect(Object.fromEntries(response.headers)).toMatchObject({ ...own, 'content-security-policy': policy })
})

test('so has the approval page of Better Auth’s plugin', async () => {
  const auth = await makeAuth()
  const response = await auth.handler(
    new Request('http://localhost:3000/api/auth/cross-device/claim/0123456789abcdefABCDEF'),
  )
  expect(response.status).toBe(200)
  expect(Object.fromEntries(response.headers)).toMatchObject(expectedFor(await response.text()))
})

test('and the answer of a service whose pages are not built', async () => {
  const settings = {
    ...resolveSettings(),
    adapterIds: ['nimiq'],
    demoWallet: false,
    keepsUsers: true,
    startsOrders: true,
    hasDemo: true,
  }
  const route = createPages(settings, silentLogger, { files: undefined }).find('/')
  const server = createServer((request, response) => {
    void route?.(nodeExchange({ request, trustedProxies: 0 }, new ResponseOutput(response)))
  })
  const response = await fetch(`${await listening(server)}/`)
  expect(response.status).toBe(503)
  expect(Object.fromEntries(response.headers)).toMatchObject({ ...expected, 'cache-control': 'no-store' })
})
