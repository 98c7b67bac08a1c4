import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import { templatePaths } from '../../src/http/openapi.ts'
import { resolveSettings } from '../../src/service/config.ts'
import { mountService } from '../support/mounted.ts'
import type { OpenApiDocument } from '../support/openapi.ts'
import { startService } from '../support/service.ts'

const packaged = await readFile(new URL('../../gen/openapi.json', import.meta.url), 'utf8')

async function documentAt(address: string): Promise<OpenApiDocument> {
  return (await (await fetch(address)).json()) as OpenApiDocument
}

describe('with the default settings', () => {
  test('the document is that of the package, at the root and under the base path', async () => {
    const { basePath, endpointPrefix } = resolveSettings()
    expect(templatePaths).toEqual({ basePath, endpointPrefix })
    const { url } = await startService()
    for (const path of ['/openapi.json', '/api/auth/openapi.json']) {
      const answer = await fetch(url + path)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(await answer.text()).toBe(packaged)
    }
  })

  test('a client that has it gets it again only if it has changed', async () => {
    const { url } = await startService()
    const first = await fetch(`${url}/openapi.json`)
    expect(first.headers.get('cache-control')).toBe('public, max-age=300')
    const headers = { 'if-none-match': first.headers.get('etag')! }
    const again = await fetch(`${url}/openapi.json`, { headers })
    expect([again.status, await again.text()]).toEqual([304, ''])
    const other = await startService({ basePath: '/auth' })
    expect((await fetch(`${other.url}/openapi.json`, { headers })).status).toBe(200)
    const plain = await fetch(`${url}/openapi.json`, { headers: { 'accept-encoding': 'identity' } })
    expect(plain.headers.has('content-encoding')).toBe(false)
    expect(plain.headers.get('content-length')).toBe(String(Buffer.byteLength(packaged)))
  })
})

test('it has the paths, the cookie and the address of the service', async () => {
  const settings = { basePath: '/login', endpointPrefix: '/keys', publicUrl: 'https://sign.example' }
  const { url } = await startService(settings)
  const { servers, paths, components } = await documentAt(`${url}/login/openapi.json`)
  expect(servers.map((server) => server.url)).toEqual(['https://sign.example'])
  expect(components.securitySchemes.sessionCookie!.name).toBe('__Host-countersign_session')
  expect(Object.keys(paths)).toEqual(
    expect.arrayContaining(['/login/keys/nonce', '/login/cross-device/start', '/login/session', '/healthz']),
  )
  expect(Object.keys(paths)).toHaveLength(Object.keys(JSON.parse(packaged).paths).length)
  expect(JSON.stringify(paths)).not.toContain('/api/auth')
  for (const [path, item] of Object.entries(paths)) {
    const method = Object.keys(item)[0]!.toUpperCase()
    const status = (await fetch(url + path, { method })).status
    // No access tokens are issued.
    if (path !== '/.well-known/jwks.json') expect([404, 405], path).not.toContain(status)
  }
  expect((await fetch(`${url}/api/auth/openapi.json`)).status).toBe(404)
})

test('mounted in a server, it is under the base path only: the document at the root is the application’s', async () => {
  const { url } = await mountService((service) =>
    createServer((request, response) => service().handler(request, response, () => void response.writeHead(299).end())),
  )
  expect((await documentAt(`${url}/api/auth/openapi.json`)).servers[0]!.url).toBe(url)
  expect((await fetch(`${url}/openapi.json`)).status).toBe(299)
})
