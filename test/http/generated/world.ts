import { expect } from 'vitest'
import { rest } from '../../support/rest.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import { makeFixture } from '../differential/fixture.ts'
import type { Fixture } from '../differential/requests.ts'
import type { Known } from './messages.ts'

/** What exists in the service for inputs to refer to. */
export interface World {
  readonly fixture: Fixture
  /** The same for calls that revoke sessions, and for those that sign out: no more is left of it after the first. */
  readonly revoking: Fixture
  readonly signingOut: Fixture
  /** Orders in every state, a nonce and a session: each with what a caller needs for the next step. */
  readonly known: readonly Known[]
}

export async function makeWorld(url: string): Promise<World> {
  const [fixture, revoking, signingOut] = [await makeFixture(url), await makeFixture(url), await makeFixture(url)]
  const wallet = makeWallet()
  const okay = async (path: string, body?: object, headers?: Record<string, string>) => {
    const { status, json } = await rest(url, path, body, headers)
    expect(status).toBe(200)
    return json
  }
  const start = () => okay('/cross-device/start', { kind: 'login' })
  const startProven = async (): Promise<Known> => {
    const { orderId, claimToken, desktopToken } = await start()
    const { challengeToken } = await okay('/cross-device/claim', { orderId, claimToken })
    const { message } = await okay(`/cross-device/challenge?orderId=${orderId}`, undefined, {
      authorization: `Bearer ${challengeToken}`,
    })
    const { publicKeyHex, signatureHex } = proofOf(wallet, { nonceId: '', message })
    return { orderId, desktopToken, challengeToken, publicKeyHex, signatureHex }
  }
  const approved = await startProven()
  const { orderId, challengeToken, publicKeyHex, signatureHex } = approved
  await okay('/cross-device/approve', { orderId, challengeToken, proof: { publicKeyHex, signatureHex } })
  const session = await okay('/session', undefined, { authorization: `Bearer ${revoking.sessionToken}` })
  const { orderId: liveId, desktopToken, claimToken } = await start()
  return {
    fixture,
    revoking,
    signingOut,
    known: [
      {},
      fixture.waiting,
      fixture.cancelled,
      { orderId: liveId, desktopToken, claimToken },
      await startProven(),
      approved,
      proofOf(wallet, await okay('/wallet/nonce', {})),
      { token: fixture.sessionToken, sessionId: session.session.id },
    ],
  }
}
