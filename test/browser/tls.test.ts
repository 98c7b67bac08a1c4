import { describe, expect, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { trustedAuthority } from '../support/tls.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { hasBrowser, useBrowser } from './support.ts'

const withParts = hasBrowser && hasPart('openssl')
const authority = withParts ? await trustedAuthority() : undefined

describe.skipIf(!withParts)('in a browser, on a port with TLS', () => {
  const browser = useBrowser()

  test('a page signs in over HTTP/2, and only https brings the session back', async () => {
    const { cert, key } = await authority!.issue('localhost')
    const { url } = await startService({ tls: { cert, key } })
    const { page, trail } = await browser.open({ ignoreHTTPSErrors: true })
    await page.goto(url)
    const protocol = await page.evaluate(
      () => (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming).nextHopProtocol,
    )
    expect(protocol).toBe('h2')
    const call = (path: string, body?: object) =>
      page.evaluate(
        async ([address, text]) => {
          const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: text as string }
          const response = await fetch(address as string, text === undefined ? {} : post)
          return response.json()
        },
        [`/api/auth${path}`, body && JSON.stringify(body)] as const,
      )
    const wallet = makeWallet()
    expect(await call('/wallet/verify', proofOf(wallet, await call('/wallet/nonce', {})))).toMatchObject({ ok: true })
    expect((await call('/session')).session.address).toBe(wallet.address)
    const cookies = await page.context().cookies()
    expect(cookies).toMatchObject([
      { name: expect.stringMatching(/^__Host-/), secure: true, httpOnly: true, path: '/' },
    ])
    expect(trail.faults).toEqual([])
  })
})
