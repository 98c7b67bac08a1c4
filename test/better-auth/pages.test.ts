import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApprovalPage } from '../../src/better-auth/pages.ts'
import { type PageFiles, pageFilesOf } from '../../src/http/page-files.ts'
import { pageHeaders } from '../../src/http/page-headers.ts'
import { pageValues } from '../support/page-values.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { call } from './calls.ts'
import { makeAuth, startAuth } from './support.ts'

/** What a page is made of, as the page names it. */
function assetsOf(html: string): string[] {
  return [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, target]) => target as string)
}

async function startOrder(url: string, basePath = '/api/auth'): Promise<Record<string, string>> {
  const response = await fetch(`${url}${basePath}/cross-device/start`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'login' }),
  })
  return (await response.json()) as Record<string, string>
}

test.each([
  ['/api/auth', {}],
  ['/accounts/v2', { basePath: '/accounts/v2' }],
])('the claim URL leads to the approval page under %s', async (basePath, options) => {
  const { url } = await startAuth({ auth: options, orders: { appName: 'Bread & <b>Butter</b>' } })
  const { claimUrl, orderId, claimToken } = await startOrder(url, basePath)
  expect(claimUrl).toBe(`${url}${basePath}/cross-device/claim/${orderId}#token=${claimToken}`)
  const page = await fetch(claimUrl!)
  expect(page.status).toBe(200)
  const { 'content-security-policy': policy, ...others } = pageHeaders
  expect(Object.fromEntries(page.headers)).toMatchObject({
    ...others,
    // With the style sheet in the page, whose hash test/http/pages/headers.test.ts checks.
    'content-security-policy': expect.stringMatching(
      String(policy).replace("style-src 'self'", "style-src 'self' 'sha256-[\\w+/]+='"),
    ),
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
  })
  const html = await page.text()
  expect(html).toContain('A request is waiting for you')
  expect(html).toContain('Bread &#38; &#60;b&#62;Butter')
  expect(pageValues(html)).toMatchObject({ basePath, accountPath: '', inboxPath: '' })
  expect(html).not.toMatch(/\{\{|\[\[|<b>Butter/)

  const assets = assetsOf(html)
  // A style sheet, and the script with its static chunks.
  expect(assets.length).toBeGreaterThanOrEqual(2)
  for (const asset of assets) {
    expect(asset).toMatch(new RegExp(`^${basePath}/cross-device/pages/[\\w.-]+$`))
    // Whatever the browser accepts: a framework compresses what is not compressed, and may forget that it was.
    const plain = await fetch(url + asset, { headers: { 'accept-encoding': 'gzip' } })
    expect([plain.status, plain.headers.get('content-encoding')]).toEqual([200, null])
    expect(Object.fromEntries(plain.headers)).toMatchObject({
      ...pageHeaders,
      'content-type': expect.stringMatching(/^(text\/(javascript|css)|image\/svg\+xml)/),
      'cache-control': 'public, max-age=31536000, immutable',
    })
    const etag = plain.headers.get('etag')!
    const again = await fetch(url + asset, { headers: { 'if-none-match': etag } })
    expect([again.status, await again.text()]).toEqual([304, ''])
  }
})

test('the page has the operator’s logo, colour and texts, also where an order is continued', async () => {
  const folder = temporaryFolder()
  const textsFile = join(folder, 'texts.json')
  await writeFile(textsFile, JSON.stringify({ en: { 'review.approve': 'Approve this' } }))
  const look = { logoUrl: 'https://cdn.example/logo.svg', accentColor: '#123456', textsFile }
  const { url } = await startAuth({ orders: { pages: look } })
  const { claimUrl } = await startOrder(url)
  for (const address of [claimUrl!, `${url}/api/auth/cross-device/continue/csh_${'x'.repeat(43)}order`]) {
    const page = await fetch(address)
    expect(page.headers.get('content-security-policy')).toMatch(/img-src [^;]*https:\/\/cdn\.example\/logo\.svg/)
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    const html = await page.text()
    for (const text of [look.logoUrl, look.accentColor, 'Approve this']) expect(html).toContain(text)
  }
  await writeFile(textsFile, '{')
  await expect(startAuth({ orders: { pages: look } })).rejects.toThrow(TypeError)
})

test('opening the page, as a link preview does, claims nothing', async () => {
  const { url } = await startAuth()
  const { claimUrl, orderId, claimToken } = await startOrder(url)
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(claimUrl!, { method })
    expect([response.status, (await response.text()) === '']).toEqual([200, method === 'HEAD'])
  }
  const claimed = await fetch(`${url}/api/auth/cross-device/claim`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ orderId, claimToken }),
  })
  expect([claimed.status, await claimed.json()]).toEqual([200, expect.objectContaining({ status: 'claimed' })])
})

test('nothing but what the page is made of is served beside it', async () => {
  const { url } = await startAuth()
  for (const name of ['approve.html', 'demo.html', '..%2f..%2fpackage.json', 'x.js']) {
    const response = await fetch(`${url}/api/auth/cross-device/pages/${name}`)
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([404, 'ROUTE_NOT_FOUND'])
  }
})

test('with pages off there is no page, and claim URLs lead where the application has its own', async () => {
  const auth = await makeAuth({ orders: { pages: false } })
  const { json } = await call(auth, '/cross-device/start', { kind: 'login' })
  expect(json.claimUrl).toMatch(/^http:\/\/localhost:3000\/c\/[\w-]{22}#token=csc_/)
  for (const path of [`/cross-device/claim/${json.orderId}`, '/cross-device/pages/style.css']) {
    const { status, json: refused } = await call(auth, path)
    expect([status, refused.code]).toEqual([404, 'ROUTE_NOT_FOUND'])
  }
})

test('a template of the application’s own counts', async () => {
  const auth = await makeAuth({ orders: { claimUrlTemplate: '{origin}/approve/{orderId}#{claimToken}' } })
  const { json } = await call(auth, '/cross-device/start', { kind: 'login' })
  expect(json.claimUrl).toMatch(/^http:\/\/localhost:3000\/approve\/[\w-]+#csc_/)
})

test('a page that is not built is asked for by name, and served as soon as it is', async () => {
  let built: PageFiles | undefined
  const pages = new ApprovalPage({ adapterIds: ['nimiq'] }, async () => built)
  const ctx = { context: { baseURL: 'http://localhost:3000/api/auth', options: {} } } as never
  await expect(pages.page(ctx, 'App')).rejects.toMatchObject({
    statusCode: 404,
    body: { code: 'NOT_ENABLED', message: expect.stringContaining('npm run build') },
  })
  const texts = { pages: { approve: '{{appName}}' }, translations: { approve: {} }, assets: { 'icon-1.svg': '<svg/>' } }
  built = pageFilesOf(texts as never)
  expect(await (await pages.page(ctx, 'App')).text()).toBe('App')
  expect(await (await pages.asset(ctx, 'icon-1.svg')).text()).toBe('<svg/>')
})

test.each([
  ['http://localhost:3000', 'on'],
  ['http://127.0.0.1:3000', 'on'],
  ['https://localhost:3000', 'off'],
  ['http://192.168.1.23:3000', 'off'],
  ['https://app.example', 'off'],
])(
  'at %s the page is told that the demo wallet is %s, and which adapters are accepted',
  async (baseURL, demoWallet) => {
    const auth = await makeAuth({ auth: { baseURL }, orders: { adapters: ['ed25519'] } })
    const page = await auth.handler(new Request(`${baseURL}/api/auth/cross-device/claim/0123456789abcdefABCDEF`))
    const html = await page.text()
    expect(pageValues(html)).toMatchObject({ demoWallet: demoWallet === 'on', adapterIds: ['ed25519'] })
  },
)

test('the options say what the plugin has, to a page of any origin', async () => {
  const { url } = await startAuth({ orders: { adapters: ['nimiq', 'ethereum'] } })
  const answer = await fetch(`${url}/api/auth/options`, { headers: { origin: 'https://other.example' } })
  expect(await answer.json()).toEqual({
    appName: expect.any(String),
    adapters: ['nimiq', 'ethereum'],
    demoWallet: false,
    languages: ['en', 'de', 'es', 'ja'],
    parts: ['pages', 'open-orders'],
  })
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
})
