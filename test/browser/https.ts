import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { CountersignOptions } from '../../src/index.ts'
import { Authority } from '../support/certificates.ts'
import { startService } from '../support/service.ts'

/**
 * Starts a service behind a proxy that speaks https, with a certificate that nobody trusts, until the test ends. `local` is the
 * address behind the proxy. Needs openssl.
 */
export async function startHttpsService(
  options: CountersignOptions,
): Promise<{ readonly url: string; readonly local: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-https-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { cert, key } = await (await Authority.create(folder, 'authority')).issue('localhost')
  let target = ''
  const proxy = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (from, to) => {
    const { method, url, headers } = from
    const forwarded = {
      ...headers,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': headers.host,
      'x-forwarded-for': '203.0.113.7',
    }
    const onward = request(`${target}${url}`, { method, headers: forwarded }, (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(to)
    })
    onward.on('error', () => to.destroy())
    to.on('close', () => onward.destroy())
    from.pipe(onward)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  await once(proxy, 'listening')
  const url = `https://localhost:${(proxy.address() as AddressInfo).port}`
  target = (await startService({ ...options, publicUrl: url, trustProxy: 1 })).url
  return { url, local: target }
}
