import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { createService } from '../../../src/service/countersign.ts'
import { navigate } from '../../support/navigate.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'

const page = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }
const signInPath = '/api/auth/sign-in'

/** Where `/` of a service leads: an address, or the page that is there. */
async function frontDoor(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string | undefined> {
  const answer = await navigate(url, { headers: { ...page.headers, ...headers } })
  return answer.headers.get('location') ?? /data-text="(demo)\.title"/.exec(await answer.text())?.[1]
}

/** A service as the command starts it with `--lan`. */
async function startOnLan(options: CountersignOptions): Promise<string> {
  const own = { store: 'sqlite::memory:', port: 0, host: '127.0.0.1', logger: silentLogger }
  const service = await createService({ ...own, ...options }, { host: '192.168.1.23' })
  onTestFinished(() => service.close(0))
  return `http://localhost:${await service.listen()}`
}

test.each([
  ['no publicUrl', {}, 'demo'],
  ['a loopback address', { publicUrl: 'http://127.0.0.1:3000' }, 'demo'],
  ['a loopback address by https', { publicUrl: 'https://localhost:8443' }, 'demo'],
  ['https', { publicUrl: 'https://auth.example' }, signInPath],
  ['http at a name', { publicUrl: 'http://auth.example' }, signInPath],
  ['https and another base path', { publicUrl: 'https://auth.example', basePath: '/login' }, '/login/sign-in'],
] satisfies [string, CountersignOptions, string][])('with %s, / is %s', async (_, options, expected) => {
  expect(await frontDoor((await startService(options)).url)).toBe(expected)
})

test.each([
  ['no publicUrl', {}, 'demo'],
  ['http at another address', { publicUrl: 'http://192.168.1.40:8080' }, 'demo'],
  ['https', { publicUrl: 'https://tunnel.example' }, signInPath],
] satisfies [string, CountersignOptions, string][])('with --lan and %s, / is %s', async (_, options, expected) => {
  expect(await frontDoor(await startOnLan(options))).toBe(expected)
})

test('/ leads to the account page for a browser that is signed in, and to the sign-in page once that has ended', async () => {
  const { url } = await startService({ publicUrl: 'http://auth.example', trustedOrigins: ['http://auth.example'] })
  const origin = 'http://auth.example'
  const { json } = await rest(url, '/wallet/nonce', {}, { origin })
  const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), json), { origin })
  const cookie = String(headers.get('set-cookie')?.split(';')[0])
  expect(await frontDoor(url, { cookie })).toBe('/api/auth/account')
  expect((await rest(url, '/sign-out', {}, { cookie, origin })).status).toBe(200)
  expect(await frontDoor(url, { cookie })).toBe(signInPath)
})

test('/ leads to the sign-in page where there are no accounts to show', async () => {
  const { url } = await startService({ publicUrl: 'http://auth.example', resolveLogin: () => ({ id: 'ada' }) })
  expect(await frontDoor(url, { cookie: 'countersign_session=x' })).toBe(signInPath)
})

test('the inbox and its orders have pages under the base path, where the service keeps the users', async () => {
  const { url } = await startService()
  const without = await startService({ resolveLogin: () => ({ id: 'ada' }) })
  const order = `/api/auth/inbox/${'a'.repeat(22)}`
  for (const [path, name] of [
    ['/api/auth/inbox', 'inbox'],
    [order, 'approve'],
  ] as const) {
    const opened = await navigate(url + path, page)
    expect(opened.status, path).toBe(200)
    expect(await opened.text()).toMatch(new RegExp(`src="/api/auth/sign-in/${name}-`))
    expect((await navigate(without.url + path, page)).status, path).toBe(404)
  }
  for (const path of [`${order}a`, `${order}/x`, '/api/auth/inbox/']) {
    expect((await navigate(url + path, page)).status, path).toBe(404)
  }
})

test('an unknown path answers a browser with a page, whose files are under the base path, and a program with JSON', async () => {
  const { url } = await startService({ appName: 'Green Bakery' })
  for (const path of ['/nothing', '/api/auth', '/api/auth/nothing', '/c/x', '/pages/x.js']) {
    const opened = await navigate(url + path, page)
    expect([opened.status, opened.headers.get('content-type')], path).toEqual([404, 'text/html; charset=utf-8'])
    expect(opened.headers.get('cache-control')).toBe('no-store')
    const html = await opened.text()
    expect(html).toContain('Green Bakery')
    for (const [, asset = ''] of html.matchAll(/ (?:src|href)="(\/[^"]+)"/g)) {
      expect(asset).toMatch(/^\/api\/auth\/sign-in\//)
      expect((await fetch(url + asset)).status, asset).toBe(200)
    }
    const gzipped = await navigate(url + path, { headers: { ...page.headers, 'accept-encoding': 'gzip' } })
    expect([gzipped.status, gzipped.headers.get('content-encoding')]).toEqual([404, 'gzip'])
    const head = await navigate(url + path, { ...page, method: 'HEAD' })
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
      404,
      'text/html; charset=utf-8',
      '',
    ])
    for (const program of [{ accept: '*/*' }, { accept: 'application/json' }, {}]) {
      const answer = await navigate(url + path, { headers: program })
      expect([answer.status, (await answer.json()).code], path).toEqual([404, 'ROUTE_NOT_FOUND'])
    }
  }
  const posted = await navigate(`${url}/nothing`, { ...page, method: 'POST', body: 'x' })
  expect([posted.status, (await posted.json()).code]).toEqual([404, 'ROUTE_NOT_FOUND'])
})

test('without pages, an unknown path is JSON for browsers, too', async () => {
  const { url } = await startService({ pages: false })
  const answer = await navigate(`${url}/nothing`, page)
  expect([answer.status, (await answer.json()).code]).toEqual([404, 'ROUTE_NOT_FOUND'])
})

test('a page for an unknown path is a refusal in the log', async () => {
  const lines: object[] = []
  const info = (text: string, fields?: object) => void lines.push({ text, ...fields })
  const { url } = await startService({ logger: { ...silentLogger, info } })
  await navigate(`${url}/nothing`, page)
  await expect.poll(() => lines).toContainEqual(expect.objectContaining({ reason: 'ROUTE_NOT_FOUND' }))
})
