import { expect } from 'vitest'
import { makeComputer } from '../../support/computer.ts'
import { rest } from '../../support/rest.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import { makeFixture } from '../../wire/differential/fixture.ts'
import type { Fixture } from '../../wire/differential/requests.ts'
import type { Known } from './messages.ts'

/** What exists in the service for inputs to refer to. */
export interface World {
  readonly fixture: Fixture
  /** The same for calls that revoke sessions, and for those that sign out: no more is left of it after the first. */
  readonly revoking: Fixture
  readonly signingOut: Fixture
  /** The same for calls about known computers: of the user of a wallet that has one. */
  readonly remembering: Fixture
  /** Orders in every state, a nonce and a session: each with what a caller needs for the next step. */
  readonly known: readonly Known[]
}

/** Makes the world in a service with return codes and access tokens for the audience `api`. */
export async function makeWorld(url: string): Promise<World> {
  const [fixture, revoking, signingOut] = [await makeFixture(url), await makeFixture(url), await makeFixture(url)]
  const wallet = makeWallet()
  const okay = async (path: string, body?: object, headers?: Record<string, string>) => {
    const { status, json } = await rest(url, path, body, headers)
    expect(status).toBe(200)
    return json
  }
  const start = (details: object = {}) => okay('/cross-device/start', { kind: 'login', ...details })
  const startClaimed = async (details?: object) => {
    const { orderId, claimToken, desktopToken } = await start(details)
    const { challengeToken } = await okay('/cross-device/claim', { orderId, claimToken })
    return { orderId, desktopToken, challengeToken }
  }
  const startProven = async (details?: object) => {
    const { orderId, desktopToken, challengeToken } = await startClaimed(details)
    const { message } = await okay(`/cross-device/challenge?orderId=${orderId}`, undefined, {
      authorization: `Bearer ${challengeToken}`,
    })
    const { publicKeyHex, signatureHex } = proofOf(wallet, { nonceId: '', message })
    return { orderId, desktopToken, challengeToken, publicKeyHex, signatureHex }
  }
  const startApproved = async (details?: object) => {
    const { publicKeyHex, signatureHex, ...order } = await startProven(details)
    const { orderId, challengeToken } = order
    const approval = { orderId, challengeToken, proof: { publicKeyHex, signatureHex }, rememberComputer: true }
    const { returnCode } = await okay('/cross-device/approve', approval)
    return { ...order, returnCode, publicKeyHex, signatureHex }
  }
  const { orderId, challengeToken } = await startClaimed()
  const { ticket } = await okay('/cross-device/hand-over', { orderId, challengeToken })
  const computer = await makeComputer()
  const remembered = await startApproved({ computerKey: computer.key })
  const finalized = await rest(url, '/cross-device/finalize', {
    orderId: remembered.orderId,
    desktopToken: remembered.desktopToken,
    returnCode: remembered.returnCode,
    computerProof: await computer.prove(remembered),
  })
  expect(finalized.status).toBe(200)
  const { token } = finalized.json
  const [cookie = ''] = finalized.headers.getSetCookie()[0]?.split(';') ?? []
  const { computers } = await okay('/computers', undefined, { authorization: `Bearer ${token}` })
  const session = await okay('/session', undefined, { authorization: `Bearer ${revoking.sessionToken}` })
  const { orderId: liveId, desktopToken, claimToken } = await start()
  const bearer = { authorization: `Bearer ${fixture.sessionToken}` }
  /** What links a new wallet to the user of the fixture's session. */
  const linkNew = async () => {
    const { nonceId, ...proof } = proofOf(makeWallet(), await okay('/wallet/nonce', { purpose: 'link' }, bearer))
    return { nonceId, proof }
  }
  const { wallet: linked } = await okay('/wallet/link', await linkNew(), bearer)
  return {
    fixture,
    revoking,
    signingOut,
    remembering: { ...fixture, sessionToken: token, cookie },
    known: [
      {},
      { kind: 1, requester: null, computerKey: null, payload: null, expectedPublicKeyHex: null, expectedAddress: null },
      { ticket, claimKey: 'k'.repeat(43) },
      fixture.waiting,
      fixture.cancelled,
      { orderId: liveId, desktopToken, claimToken },
      await startProven(),
      await startApproved(),
      { ...(await startApproved()), challengeToken: null, computerProof: null },
      proofOf(wallet, await okay('/wallet/nonce', {})),
      await linkNew(),
      { adapterId: linked.adapterId, address: linked.address },
      { adapterId: linked.adapterId, address: linked.address, id: computers[0].id },
      { token: fixture.sessionToken, sessionId: session.session.id, id: computers[0].id, audience: 'api' },
    ],
  }
}
