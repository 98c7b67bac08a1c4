import { describe, expect, test } from 'vitest'
import { startAuth } from '../better-auth/support.ts'
import { addressOf, approvedHeading, codeOnPhone, expectHeading } from './flows.ts'
import { expectNoFaults, hasBrowser, useBrowser } from './support.ts'

describe.skipIf(!hasBrowser)('the approval page that the Better Auth plugin serves', () => {
  const browser = useBrowser()

  test.each(['/api/auth', '/accounts/v2'])('claims, reviews and approves under %s', async (basePath) => {
    const { url, auth } = await startAuth({ auth: { basePath } })
    const post = async (path: string, body: object): Promise<Record<string, string>> => {
      const headers = { origin: url, 'content-type': 'application/json' }
      const response = await fetch(`${url}${basePath}/cross-device${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      expect(response.status).toBe(200)
      return (await response.json()) as Record<string, string>
    }
    const { claimUrl, orderId, desktopToken, claimToken, confirmationCode } = await post('/start', { kind: 'login' })
    const { page, trail } = await browser.open({ viewport: { width: 390, height: 800 } })
    await page.goto(claimUrl!)
    await page.getByRole('button', { name: 'Continue', exact: true }).waitFor()
    expect(page.url()).not.toContain(claimToken)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    expect(await codeOnPhone(page)).toBe(confirmationCode)
    const address = await addressOf(page)
    await page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(page, approvedHeading)

    const { token, status } = await post('/finalize', { orderId, desktopToken })
    expect(status).toBe('finalized')
    const session = await auth.api.getSession({ headers: new Headers({ authorization: `Bearer ${token}` }) })
    expect(session?.session).toMatchObject({ walletAddress: address, walletOrderId: orderId })
    const elsewhere = trail.requests.filter(({ url: target }) => !target.startsWith(`${url}${basePath}/cross-device/`))
    expect(elsewhere).toEqual([])
    expectNoFaults(trail)
  })
})
