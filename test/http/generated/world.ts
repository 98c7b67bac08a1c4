import { makeComputer } from '../../support/computer.ts'
import { bearer, rest, okay as success } from '../../support/rest.ts'
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

/**
 * Makes the world in a service with return codes and access tokens for the audience `api`. `startForInbox` starts an
 * order for a user's inbox, which a service without start keys does not.
 */
export async function makeWorld(
  url: string,
  startForInbox: (inboxUserId: string) => Promise<{ readonly orderId: string } | undefined> = async () => undefined,
): Promise<World> {
  const [fixture, revoking, signingOut] = [await makeFixture(url), await makeFixture(url), await makeFixture(url)]
  const wallet = makeWallet()
  const claimKey = 'k'.repeat(43)
  const okay = async (path: string, body?: object, headers?: Record<string, string>) =>
    success(await rest(url, path, body, headers))
  const start = (details: object = {}) => okay('/cross-device/start', { kind: 'login', ...details })
  const startClaimed = async (details?: object) => {
    const { orderId, claimToken, desktopToken } = await start(details)
    const { challengeToken } = await okay('/cross-device/claim', { orderId, claimToken })
    return { orderId, desktopToken, challengeToken }
  }
  const startProven = async (details?: object) => {
    const { orderId, desktopToken, challengeToken } = await startClaimed(details)
    const { message } = await okay(`/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
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
  const { token } = success(finalized)
  const [cookie = ''] = finalized.headers.getSetCookie()[0]?.split(';') ?? []
  const { computers } = await okay('/computers', undefined, bearer(token))
  const session = await okay('/session', undefined, bearer(revoking.sessionToken))
  const { orderId: liveId, desktopToken, claimToken } = await start()
  const own = bearer(fixture.sessionToken)
  const inboxOrder = await startForInbox((await okay('/session', undefined, own)).session.userId)
  /** What links a new wallet to the user of the fixture's session. */
  const linkNew = async () => {
    const { nonceId, ...proof } = proofOf(makeWallet(), await okay('/wallet/nonce', { purpose: 'link' }, own))
    return { nonceId, proof }
  }
  const { wallet: linked } = await okay('/wallet/link', await linkNew(), own)
  return {
    fixture,
    revoking,
    signingOut,
    remembering: { ...fixture, sessionToken: token, cookie },
    known: [
      {},
      { kind: 1, requester: null, computerKey: null, payload: null, expectedPublicKeyHex: null, expectedAddress: null },
      { ticket, claimKey },
      { orderId: inboxOrder?.orderId ?? '', claimKey },
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
