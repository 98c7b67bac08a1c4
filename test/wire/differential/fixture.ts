import { expect } from 'vitest'
import { bearer, rest } from '../../support/rest.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import type { Fixture } from './requests.ts'

/** Makes what the requests refer to. */
export async function makeFixture(url: string): Promise<Fixture> {
  const wallet = makeWallet()
  const okay = async (...call: Parameters<typeof rest>) => {
    const answer = await rest(...call)
    expect(answer.status).toBe(200)
    return answer
  }
  let sessionToken = ''
  let cookie = ''
  for (let i = 0; i < 6; i++) {
    const { json: challenge } = await okay(url, '/wallet/nonce', {})
    const { json, headers } = await okay(url, '/wallet/verify', proofOf(wallet, challenge))
    sessionToken = json.token
    cookie = headers.getSetCookie()[0]?.split(';')[0] ?? ''
  }
  const start = async (details: object) => (await okay(url, '/cross-device/start', details)).json
  const waiting = await start({ kind: 'sign', displaySummary: 'w\u00f6rds '.repeat(80), payloadHash: 'x'.repeat(200) })
  const { orderId, claimToken } = waiting
  const { challengeToken } = (await okay(url, '/cross-device/claim', { orderId, claimToken })).json
  await okay(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
  const cancelled = await start({ kind: 'login' })
  const holder = { orderId: cancelled.orderId, desktopToken: cancelled.desktopToken }
  await okay(url, '/cross-device/cancel', holder)
  return {
    port: Number(new URL(url).port),
    sessionToken,
    cookie,
    waiting: { orderId, challengeToken },
    cancelled: holder,
  }
}

/** Requests in flight at once. */
const concurrency = 16

/** Does something with each of many, several at a time. */
export async function inParallel<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]()
  const worker = async (): Promise<void> => {
    for (const item of left) await run(item)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}
