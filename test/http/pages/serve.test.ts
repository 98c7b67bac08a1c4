import { writeFile } from 'node:fs/promises'
import http2 from 'node:http2'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { version } from '../../../src/base/version.ts'
import { createPages } from '../../../src/http/pages.ts'
import { type PageName, pageNames } from '../../../src/shared/page-names.ts'
import { english } from '../../../src/shared/texts/english.ts'
import type { PageTexts } from '../../../src/shared/texts/page-texts.ts'
import {
  accountTexts,
  approveTexts,
  demoTexts,
  inboxTexts,
  issuerTexts,
  notFoundTexts,
  signInTexts,
} from '../../../src/shared/texts/pages.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Answer } from '../../../src/wire/output.ts'
import { run } from '../../support/command.ts'
import { navigate } from '../../support/navigate.ts'
import { pageValues } from '../../support/page-values.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'

const signInPath = '/api/auth/sign-in'
const claimPagePath = '/c/0123456789abcdefABCDEF'
const continuePagePath = `/cross-device/continue/csh_${'t'.repeat(43)}0123456789abcdefABCDEF`

async function asset(url: string, pattern: RegExp): Promise<string> {
  const html = await (await fetch(`${url}/`)).text()
  return url + pattern.exec(html)![0]
}

test.each([
  ['the demo page', '/', 'Sign in with a wallet'],
  ['the approval page', claimPagePath, 'A request is waiting for you'],
  ['the page that continues an order', continuePagePath, 'Continue here?'],
  ['the sign-in page', `${signInPath}?returnTo=%2Fwelcome`, '<h1 tabindex="-1" data-text="sign-in.title">Sign in</h1>'],
])('%s is served under a strict policy', async (_, path, text) => {
  const { url } = await startService()
  const response = await fetch(url + path)
  expect(response.status).toBe(200)
  expect(await response.text()).toContain(text)
  const policy = response.headers.get('content-security-policy')!.split('; ')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).toContain("base-uri 'none'")
  expect(policy).toContain("form-action 'none'")
  expect(policy.filter((directive) => /unsafe|https?:|\*/.test(directive))).toEqual([])
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cross-origin-opener-policy': 'same-origin-allow-popups',
    'permissions-policy': expect.stringContaining('camera=()'),
  })
})

test('a page holds nothing inline but its style sheet, and nothing from elsewhere', async () => {
  const { url } = await startService()
  for (const path of ['/', claimPagePath, signInPath]) {
    const html = await (await fetch(url + path)).text()
    expect(html.match(/<style/g) ?? []).toHaveLength(1)
    expect(html).not.toMatch(/\sstyle=|\son[a-z]+=|javascript:|<script(?![^>]+src=)/i)
    for (const [, target] of html.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]*)"/g)) {
      expect(target).toMatch(path === signInPath ? /^\/api\/auth\/sign-in\/[\w.-]+$/ : /^\/pages\/[\w.-]+$/)
    }
    expect(html).not.toMatch(/\{\{|\[\[/)
  }
})

test('the application name and the claim URL template reach the pages as text', async () => {
  const { url } = await startService({
    appName: 'Bread & <b>Butter</b> "Ltd"',
    claimUrlTemplate: '{origin}/a"b/{orderId}#{claimToken}',
  })
  const demo = await (await fetch(url)).text()
  expect(demo).toContain('Bread &#38; &#60;b&#62;Butter&#60;/b&#62; &#34;Ltd&#34;')
  expect(demo).not.toContain('<b>Butter')
  const approval = await fetch(`${url}/a"b/x`)
  expect(approval.status).toBe(404)
})

test('the pages know which adapters are accepted, and whether to offer the demo wallet', async () => {
  const facts = async (url: string): Promise<unknown[][]> => {
    const pages = await Promise.all(['/', claimPagePath].map(async (path) => await (await fetch(url + path)).text()))
    return pages.map(pageValues).map(({ adapterIds, demoWallet }) => [...adapterIds, demoWallet])
  }
  const { url } = await startService()
  const both = ['nimiq', 'ed25519', true]
  expect(await facts(url)).toEqual([both, both])
  const { url: elsewhere } = await startService({ publicUrl: 'http://wallet.example', adapters: ['ed25519'] })
  const one = ['ed25519', false]
  expect(await facts(elsewhere)).toEqual([one, one])
})

test('the sign-in page and all that it loads are below the base path, and nothing of it depends on the query', async () => {
  const { url } = await startService({ basePath: '/login', endpointPrefix: '/w' })
  const page = await fetch(`${url}/login/sign-in`)
  const html = await page.text()
  expect(pageValues(html)).toMatchObject({ basePath: '/login', endpointPrefix: '/w' })
  const assets = [...html.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]*)"/g)].map(([, path]) => String(path))
  expect(assets.length).toBeGreaterThan(2)
  for (const path of assets) {
    expect(path).toMatch(/^\/login\/sign-in\//)
    const response = await fetch(url + path)
    expect(response.status, path).toBe(200)
    // What a script imports as it starts is in the document, so that a slow network has one round trip for all.
    const imports = [...(await response.text()).matchAll(/(?:from|import)"\.\/([^"]+)"/g)].map(([, name]) => name)
    expect(assets).toEqual(expect.arrayContaining(imports.map((name) => `/login/sign-in/${name}`)))
  }
  const query = '?returnTo=%2Fwelcome&orderId=x&token=y&code=z'
  expect(await (await fetch(`${url}/login/sign-in${query}`)).text()).toBe(html)
  for (const path of ['/login/sign-in/', '/login/sign-in/sign-in.html', '/sign-in', '/api/auth/sign-in']) {
    expect((await fetch(url + path)).status, path).toBe(404)
  }
})

test('the sign-in page keeps the one wallet that its address names, and none of several or of any other text', async () => {
  const { url } = await startService({ adapters: ['nimiq', 'solana'] })
  const open = async (query: string) => {
    const answer = await fetch(`${url}${signInPath}?${query}`, { redirect: 'manual' })
    return answer.headers.get('location') ?? answer.status
  }
  const [one, other] = [makeWallet(), makeWallet()].map(
    ({ address }) => new URLSearchParams({ wallet: `nimiq:${address}` }),
  )
  const solana = 'wallet=solana:So11111111111111111111111111111111111111112'
  expect([await open(`${one}`), await open(solana)]).toEqual([200, 200])
  expect(await open(`returnTo=%2F&${one}&${other}`)).toBe(`${signInPath}?returnTo=%2F`)
  expect(await open(Array(280).fill(solana).join('&'))).toBe(`${signInPath}?`)
  expect(await open('wallet=nimiq:call+us')).toBe(`${signInPath}?`)
})

test('the sign-in page asks for a session only if the browser has the cookie of a live one, or the store cannot tell', async () => {
  const store = await openStore('sqlite::memory:')
  const { url } = await startService({ store })
  const asks = async (cookie?: string): Promise<boolean> => {
    const html = await (await fetch(url + signInPath, { headers: cookie === undefined ? {} : { cookie } })).text()
    return pageValues(html).maybeSignedIn
  }
  const { json: challenge } = await rest(url, '/wallet/nonce', {})
  const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), challenge))
  const cookie = `theme=dark; ${headers.get('set-cookie')?.split(';')[0]}`
  expect(await asks()).toBe(false)
  expect(await asks('theme=dark; my_countersign_session=x; countersign_session2=x')).toBe(false)
  expect(await asks('countersign_session=x')).toBe(false)
  expect(await asks(cookie)).toBe(true)
  expect(await asks(cookie.replace('countersign', '__Host-countersign'))).toBe(false)
  expect((await rest(url, '/sign-out', {}, { cookie, origin: url })).status).toBe(200)
  expect(await asks(cookie)).toBe(false)
  await store.close()
  expect(await asks(cookie)).toBe(true)
})

test.each([
  ['{origin}/claims/{orderId}#token={claimToken}', '/claims/x', '/claims/x/y'],
  ['{origin}/c/{orderId}/go#{claimToken}', '/c/x/go', '/c/x'],
  ['{origin}/approve?order={orderId}#{claimToken}', '/approve?order=x', '/approve/x'],
])('the approval page is where %s leads', async (claimUrlTemplate, path, elsewhere) => {
  const { url } = await startService({ claimUrlTemplate })
  expect(await (await fetch(url + path)).text()).toContain('A request is waiting for you')
  expect((await fetch(url + elsewhere)).status).toBe(404)
})

test('by default the approval page is at the short path with an order’s id', async () => {
  const { url } = await startService()
  expect(await (await fetch(url + claimPagePath)).text()).toContain('<title>')
  for (const path of ['/c/about', '/c/', '/c/0123456789abcdefABCDEF/x', '/c/0123456789abcdefABCDEFG']) {
    expect((await fetch(url + path)).status, path).toBe(404)
  }
})

test('a claim URL that leads to another application leaves the paths here alone', async () => {
  const { url } = await startService({ claimUrlTemplate: 'https://app.example/claim/{orderId}#{claimToken}' })
  expect((await fetch(`${url}/claim/x`)).status).toBe(404)
  expect((await fetch(url + claimPagePath)).status).toBe(404)
})

test('assets are kept by caches for ever, compressed on request, and not sent twice', async () => {
  const { url } = await startService()
  const script = await asset(url, /\/pages\/demo-\w+\.js/)
  const plain = await fetch(script, { headers: { 'accept-encoding': 'identity' } })
  const gzipped = await fetch(script, { headers: { 'accept-encoding': 'br, gzip' } })
  expect(plain.headers.get('content-encoding')).toBe(null)
  expect(gzipped.headers.get('content-encoding')).toBe('gzip')
  expect(await gzipped.text()).toBe(await plain.text())
  expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(plain.headers.get('vary')).toContain('Accept-Encoding')
  expect(plain.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  const etag = plain.headers.get('etag')!
  expect(gzipped.headers.get('etag')).not.toBe(etag)
  for (const tags of [etag, `"other", W/${etag}`]) {
    const again = await fetch(script, { headers: { 'accept-encoding': 'identity', 'if-none-match': tags } })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
  }
  const refused = await fetch(script, { headers: { 'accept-encoding': 'gzip;q=0', 'if-none-match': '"other"' } })
  expect([refused.status, refused.headers.get('content-encoding')]).toEqual([200, null])
})

test('HEAD is answered as GET, without the body, over both HTTP versions', async () => {
  const { url } = await startService()
  for (const path of ['/', claimPagePath, signInPath, (await asset(url, /\/pages\/icon-\w+\.svg/)).slice(url.length)]) {
    const identity = { 'accept-encoding': 'identity' }
    const got = await fetch(url + path, { headers: identity })
    const head = await fetch(url + path, { method: 'HEAD', headers: identity })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(await got.text())))
    const session = http2.connect(url)
    const stream = session.request({ ':method': 'HEAD', ':path': path })
    const headers = await new Promise<http2.IncomingHttpHeaders>((resolve) => stream.on('response', resolve))
    expect(headers[':status']).toBe(200)
    const body = await stream.toArray()
    expect(body).toEqual([])
    session.close()
  }
})

test('other methods are refused and nothing else is served beside the pages', async () => {
  const { url } = await startService()
  for (const path of ['/', claimPagePath, signInPath]) {
    const response = await fetch(url + path, { method: 'POST', body: '{}' })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  }
  for (const path of ['/pages/', '/pages/demo.html', '/pages/..%2fsrc', '/pages/../package.json']) {
    expect((await fetch(url + path)).status, path).toBe(404)
  }
})

test('a page names its texts in the browser’s language to be loaded with its script', async () => {
  const linkFor = async (url: string, languages: string) => {
    const response = await fetch(url + signInPath, { headers: { 'accept-language': languages } })
    return response.headers.get('link')
  }
  const { url } = await startService()
  expect(await linkFor(url, 'en-GB,en;q=0.9,de;q=0.8')).toBeNull()
  const link = await linkFor(url, 'nl, DE-at;q=0.9')
  expect(link).toMatch(/^<\/api\/auth\/sign-in\/german-\w+\.js>; rel=modulepreload$/)
  const script = await fetch(new URL(/<(.*)>/.exec(link ?? '')?.[1] ?? '', url))
  expect(await script.text()).toContain('"sign-in.title":"Anmelden"')
  // The operator's own are in the document.
  const textsFile = join(temporaryFolder(), 'texts.json')
  await writeFile(textsFile, '{ "nl-BE": { "sign-in.title": "Aanmelden" } }')
  const other = await startService({ pages: { textsFile } })
  expect(await linkFor(other.url, 'nl-BE,de;q=0.9')).toBeNull()
})

test('pages: false leaves nothing', async () => {
  const { url } = await startService({ pages: false })
  for (const path of ['/', claimPagePath, signInPath]) {
    const response = await fetch(url + path)
    expect([response.status, (await response.json()).code]).toEqual([404, 'ROUTE_NOT_FOUND'])
  }
})

test('a service whose pages were never built says what to run, and starts', () => {
  const warnings: string[] = []
  const log = { ...silentLogger, warn: (text: string) => warnings.push(text) }
  const settings = {
    pages: { served: true, logoUrl: undefined, accentColor: undefined, textsFile: undefined, walletHelp: true },
    appName: 'Countersign',
    claimUrlTemplate: '{origin}/claim/{orderId}#{claimToken}',
    basePath: '/api/auth',
    endpointPrefix: '/wallet',
    adapterIds: ['nimiq'],
    demoWallet: true,
    keepsUsers: true,
    startsOrders: true,
    hasDemo: true,
  }
  const { find: routeOf } = createPages(settings, log, { files: undefined })
  expect(warnings).toEqual([expect.stringContaining('npm run build')])
  let answer: Answer | undefined
  const output = { send: (sent: Answer) => (answer = sent) }
  for (const path of ['/', '/claim/x', signInPath]) {
    routeOf(path)?.({ method: 'GET', path, headers: {}, output } as never)
    expect([answer?.status, String(answer?.body)]).toEqual([503, expect.stringContaining('npm run build')])
  }
  expect(routeOf('/other')).toBeUndefined()
})

/** A script of a page, and all that it imports, at once or later. */
function filesOf(name: string, assets: Readonly<Record<string, string>>, seen = new Set<string>()): Set<string> {
  const text = assets[name] ?? ''
  if (seen.has(text)) return seen
  seen.add(text)
  for (const [, imported = ''] of text.matchAll(/["']\.\/([\w.-]+\.js)["']/g)) filesOf(imported, assets, seen)
  return seen
}

test('a page’s script has the texts that it says, and none that other pages alone say', async () => {
  const { pages, assets } = (await import('#pages', { with: { type: 'json' } })).default
  const texts: Record<PageName, PageTexts> = {
    approve: approveTexts,
    demo: demoTexts,
    'sign-in': signInTexts,
    account: accountTexts,
    inbox: inboxTexts,
    issuer: issuerTexts,
    'not-found': notFoundTexts,
  }
  const keys = Object.keys(english)
  const own: Partial<Record<PageName, string>> = { demo: 'demo.title', issuer: 'issuer.title', approve: 'page.title' }
  for (const page of pageNames) {
    const script = [...filesOf(String(/assetsPath\}\}\/([\w-]+\.js)/.exec(pages[page])?.[1]), assets)].join()
    const given = Object.assign({}, ...texts[page])
    const says = (key: string): boolean =>
      script.replaceAll(`"${key}":`, '').includes(`"${key}"`) || pages[page].includes(`data-text="${key}"`)
    expect([page, keys.filter((key) => says(key) && !Object.hasOwn(given, key))]).toEqual([page, []])
    for (const [owner, key] of Object.entries(own)) {
      expect([page, owner, script.includes(`"${key}":`)]).toEqual([page, owner, page === owner])
    }
  }
})

test('a service in the bundle of an application has its pages and its version with it', async () => {
  const folder = temporaryFolder()
  const program = `
    import { createCountersign } from './index.ts'
    createCountersign({ store: 'sqlite::memory:', publicUrl: 'http://localhost', metrics: { collect: true } }).then(async (service) => {
      for (const path of ['/api/auth/sign-in', '/c/0123456789abcdefABCDEF']) {
        console.log(await (await service.fetch(new Request('http://localhost' + path))).text())
      }
      console.log(await service.metrics())
      await service.close()
    })`
  const outfile = join(folder, 'bundle.cjs')
  const resolveDir = fileURLToPath(new URL('../../../src/', import.meta.url))
  await build({ stdin: { contents: program, resolveDir }, bundle: true, platform: 'node', outfile, logLevel: 'error' })
  const { stdout } = await run(process.execPath, [outfile], { cwd: folder })
  for (const text of [
    '<h1 tabindex="-1" data-text="sign-in.title">',
    'A request is waiting for you',
    `version="${version}"`,
  ]) {
    expect(stdout).toContain(text)
  }
})

test.each([
  ['a page that a browser opens', { accept: '*/*', 'sec-fetch-mode': 'navigate' }, true],
  ['a page that a browser opens without TLS', { accept: 'text/html,*/*;q=0.8' }, true],
  ['a page that a script fetches', { accept: 'text/html', 'sec-fetch-mode': 'cors' }, false],
  ['JSON', { accept: 'application/json' }, false],
])('forward auth refuses a request for %s with an answer that fits, uncached', async (_, asked, isPage) => {
  const { url } = await startService({ trustProxy: true })
  const proof = proofOf(makeWallet(), (await rest(url, '/wallet/nonce', {})).json)
  const { token, session } = (await rest(url, '/wallet/verify', proof)).json
  const forwarded = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/<b>&"' }
  const headers = { ...forwarded, ...asked, authorization: `Bearer ${token}` }
  const answer = await navigate(`${url}/api/auth/forward-auth?redirect=1&groups=admins`, {
    headers,
    hasMetadata: false,
  })
  expect([answer.status, answer.headers.get('content-type')?.includes('text/html')]).toEqual([403, isPage])
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('vary')).toBe('Accept, Sec-Fetch-Mode')
  expect(answer.headers.get('content-security-policy')?.includes("frame-ancestors 'none'")).toBe(isPage || undefined)
  const body = await answer.text()
  expect(body.includes(session.address)).toBe(isPage)
  expect(body).not.toContain('<b>')
})
