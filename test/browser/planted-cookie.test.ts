import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { describe, expect, test } from 'vitest'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { signIn } from '../integrations/backend/support.ts'
import { listen } from '../support/listening.ts'
import { hasPart } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { trustedAuthority } from '../support/tls.ts'
import { hasBrowser, useBrowser } from './support.ts'

const withParts = hasBrowser && hasPart('openssl')
const authority = withParts ? await trustedAuthority() : undefined

/** A host of a site by https until the test ends. Resolves with its port. */
async function serveHost(name: string, listener: RequestListener): Promise<number> {
  const { cert, key } = await authority!.issue(name)
  return await listen(createServer({ cert: readFileSync(cert), key: readFileSync(key) }, listener))
}

describe.skipIf(!withParts)('a neighbouring host of the same site', () => {
  const browser = useBrowser()

  test.each(['\u00a0', ' ', '\t', ''])(
    'signs no visitor in by a cookie with %j before its name, and signs no user out (RFC 6265bis, 4.1.3.2)',
    async (space) => {
      let publicUrl = ''
      let received: string | undefined
      const whoIs = async (cookie: string | undefined) => {
        const { url } = service
        const headers = cookie === undefined ? {} : { cookie }
        const verifier = createSessionVerifier({ url, publicUrl })
        const found = await verifier.verify({ method: 'GET', headers })
        // Node.js reads each byte of a header as a character. Other runtimes read UTF-8, which is what Chromium writes.
        const text = cookie === undefined ? null : Buffer.from(cookie, 'latin1').toString()
        const elsewhere = await verifier.verify({
          method: 'GET',
          url: publicUrl,
          headers: { get: (name) => (name === 'cookie' ? text : null) },
        })
        const asked = await fetch(`${url}/api/auth/session`, { headers: { ...headers, origin: publicUrl } })
        const { session } = (await asked.json()) as { session?: { address: string } }
        return { byBackend: found?.address, elsewhere: elsewhere?.address, byService: session?.address }
      }
      const port = await serveHost('app.shop.localhost', (request, response) => {
        received = request.headers.cookie
        whoIs(received).then((answer) =>
          response.setHeader('content-type', 'application/json').end(JSON.stringify(answer)),
        )
      })
      publicUrl = `https://app.shop.localhost:${port}`
      const service = await startService({ publicUrl, trustedOrigins: [publicUrl] })
      const attacker = await signIn(service.url, { origin: publicUrl })
      const visitor = await signIn(service.url, { origin: publicUrl })
      const planting = await serveHost('evil.shop.localhost', (_request, response) =>
        response
          .setHeader('set-cookie', `${space}${attacker.cookie}; Domain=shop.localhost; Path=/; Secure`)
          .end('planted'),
      )

      const { page } = await browser.open({ ignoreHTTPSErrors: true })
      const visit = async () => JSON.parse(await page.goto(publicUrl).then((answer) => answer!.text()))
      await page.goto(`https://evil.shop.localhost:${planting}/`)
      expect(await visit()).toEqual({})
      // Only the space that browsers keep gets past their own check of the prefix.
      expect(received?.includes(attacker.cookie) ?? false).toBe(space === '\u00a0')

      const [name = '', value = ''] = visitor.cookie.split('=')
      const own = { name, value, url: publicUrl, secure: true, httpOnly: true, sameSite: 'Lax' } as const
      await page.context().addCookies([own])
      const { address } = visitor.session
      expect(await visit()).toEqual({ byBackend: address, elsewhere: address, byService: address })
    },
  )
})
