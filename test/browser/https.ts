import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { CountersignOptions } from '../../src/service/config.ts'
import { Authority } from '../support/certificates.ts'
import { listen } from '../support/listening.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { passOn } from './forwarding.ts'

/**
 * Starts a service behind a proxy that speaks https, with a certificate that nobody trusts, until the test ends.
 * `local` is the address behind the proxy. Needs openssl.
 */
export async function startHttpsService(
  options: CountersignOptions,
): Promise<{ readonly url: string; readonly local: string }> {
  const folder = temporaryFolder()
  const { cert, key } = await (await Authority.create(folder, 'authority')).issue('localhost')
  let target = ''
  const proxy = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (from, to) =>
    passOn(from, to, target, 'https'),
  )
  const url = `https://localhost:${await listen(proxy)}`
  target = (await startService({ ...options, publicUrl: url, trustProxy: 1 })).url
  return { url, local: target }
}
