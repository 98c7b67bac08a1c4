import { createConnectRouter } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { fileWith } from '../oidc/support.ts'
import { keptLog } from '../support/log-lines.ts'
import { startService } from '../support/service.ts'

/** A service, and the warnings that it logs. */
async function start(options: CountersignOptions = {}) {
  const { logger, lines } = keptLog()
  const { url, service } = await startService({ logger, ...options })
  const warnings = () => lines.filter(({ level }) => level === 'warn')
  const preflight = async (origin: string): Promise<void> => {
    const headers = { origin, 'access-control-request-method': 'POST' }
    const answer = await fetch(`${url}/api/auth/wallet/nonce`, { method: 'OPTIONS', headers })
    expect(answer.status).toBe(204)
  }
  return { url, service, warnings, preflight }
}

test('a preflight that is refused for its origin is logged once for each origin, with the setting to change', async () => {
  const { warnings, preflight } = await start({ trustedOrigins: ['https://app.example'], pages: false })
  await preflight('https://app.example')
  expect(warnings()).toEqual([])
  for (const origin of ['https://a.example', 'https://b.example', 'https://a.example']) await preflight(origin)
  expect(warnings().map(({ fields }) => fields.origin)).toEqual(['https://a.example', 'https://b.example'])
  for (const { text } of warnings()) expect(text).toContain('COUNTERSIGN_TRUSTED_ORIGINS')
})

test('origins that are made up do not fill the log', async () => {
  const { warnings, preflight } = await start({ pages: false })
  for (let made = 0; made < 150; made++) await preflight(`https://made-up-${made}.example`)
  expect(warnings()).toHaveLength(100)
})

test.each([
  ["trusted origins without the service's own", ['https://app.example'], true, 1],
  ['the same without pages', ['https://app.example'], false, 0],
  ['trusted origins with it', ['https://app.example', 'https://auth.example'], true, 0],
  ['the default', undefined, true, 0],
])('%s: the start warns of pages that cannot sign users in', async (_, trustedOrigins, pages, expected) => {
  const options = trustedOrigins === undefined ? {} : { trustedOrigins }
  const { warnings } = await start({ publicUrl: 'https://auth.example', pages, ...options })
  const own = warnings().filter(({ text }) => text.includes("leaves out the service's own origin"))
  expect(own.map(({ fields }) => fields.origin)).toEqual(Array(expected).fill('https://auth.example'))
})

test.each([
  [undefined, 1],
  [false, 0],
] as const)(
  'with rateLimit %s, countersign.routes warns %i times that no rate limit counts',
  async (rateLimit, times) => {
    const { service, warnings } = await start(rateLimit === undefined ? { rateLimit: true } : { rateLimit })
    service.routes(createConnectRouter())
    expect(warnings().filter(({ text }) => text.includes('no rate limit counts'))).toHaveLength(times)
  },
)

test.each([
  '/.well-known/jwks.json',
  '/api/auth/.well-known/jwks.json',
  '/openapi.json',
  '/api/auth/openapi.json',
  '/api/auth/options',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/api/auth/oidc/jwks.json',
])('a page of any origin may read %s, with headers of its own, and no other call is open to it', async (path) => {
  const oidc = { clients: fileWith({ clients: [] }) }
  const { url, warnings } = await start({ trustedOrigins: ['https://app.example'], pages: false, oidc })
  const asked = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'traceparent,x-request-id' }
  for (const origin of ['https://elsewhere.example', 'https://app.example', 'null']) {
    const { status, headers } = await fetch(url + path, { method: 'OPTIONS', headers: { origin, ...asked } })
    expect(status).toBe(204)
    expect(['*', origin]).toContain(headers.get('access-control-allow-origin'))
    expect(headers.get('access-control-allow-headers')).toBe(asked['access-control-request-headers'])
    const read = await fetch(url + path, { headers: { origin } })
    expect(['*', origin]).toContain(read.headers.get('access-control-allow-origin'))
  }
  expect(warnings().filter(({ text }) => text.includes('not trusted'))).toEqual([])
  const headers = { origin: 'https://elsewhere.example', ...asked }
  const closed = await fetch(`${url}/api/auth/session`, { method: 'OPTIONS', headers })
  expect([closed.status, closed.headers.get('access-control-allow-origin')]).toEqual([204, null])
})

test('a key set that is not there is refused to a page of any origin without advice to trust its origin', async () => {
  const { url, warnings } = await start({ pages: false })
  const headers = { origin: 'https://elsewhere.example', 'access-control-request-method': 'GET' }
  for (const path of ['/.well-known/jwks.json', '/api/auth/.well-known/jwks.json']) {
    expect((await fetch(url + path, { method: 'OPTIONS', headers })).headers.get('access-control-allow-origin')).toBe(
      '*',
    )
  }
  expect(warnings().filter(({ text }) => text.includes('not trusted'))).toEqual([])
})
