import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/index.ts'
import { bearer, type RestAnswer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const [old, fresh] = ['the old secret of a rotation, for tests', 'the new secret of a rotation, for tests']
const origin = { origin: 'https://app.example' }
let store: Store

beforeAll(async () => {
  store = await openStore('sqlite::memory:')
})
afterAll(() => store.close())

/** The address of an instance with these secrets. All instances share a store. */
async function instance(...secret: string[]): Promise<string> {
  const { url } = await startService({ store, secret, trustedOrigins: [origin.origin] })
  return url
}

async function ok(answer: Promise<RestAnswer>): Promise<RestAnswer['json']> {
  const { status, json } = await answer
  expect([status, json.code]).toEqual([200, undefined])
  return json
}

const post = (url: string, path: string, body: object) => rest(url, path, body, origin)

/** Signs in on one instance with a nonce of another. */
async function signIn(url: string, nonceUrl = url): Promise<string> {
  const challenge = await ok(post(nonceUrl, '/wallet/nonce', {}))
  return (await ok(post(url, '/wallet/verify', proofOf(makeWallet(), challenge)))).token
}

async function sessionOf(url: string, token: string): Promise<string> {
  return (await ok(rest(url, '/session', undefined, bearer(token)))).session.id
}

/** A started login order with what its phone claims it with. */
async function started(url: string) {
  const order = await ok(post(url, '/cross-device/start', { kind: 'login' }))
  const { orderId, claimToken, desktopToken } = order
  return {
    claim: { orderId, claimToken, claimKey: 'k'.repeat(22) },
    desktop: { orderId, desktopToken },
  }
}

/** Claims an order on one instance and approves it on another. */
async function approve(claimUrl: string, url: string, claim: object & { orderId: string }): Promise<void> {
  const { orderId } = claim
  const { challengeToken } = await ok(post(claimUrl, '/cross-device/claim', claim))
  const path = `/cross-device/challenge?orderId=${orderId}`
  const challenge = await ok(rest(url, path, undefined, { ...origin, ...bearer(challengeToken) }))
  const { nonceId: _, ...proof } = proofOf(makeWallet(), { nonceId: '', message: challenge.message })
  await ok(post(url, '/cross-device/approve', { orderId, challengeToken, proof }))
}

const steps = [
  { name: 'old beside old,new', here: [old], there: [old, fresh] },
  { name: 'old,new beside new,old', here: [old, fresh], there: [fresh, old] },
  { name: 'new,old beside new', here: [fresh, old], there: [fresh] },
]

describe.each(
  steps.flatMap(({ name, here, there }) => [
    { name, here, there },
    { name: `${name}, the other way round`, here: there, there: here },
  ]),
)('while the secret is rotated, $name:', (step) => {
  let here: string
  let there: string

  const begin = async (): Promise<void> => {
    here = await instance(...step.here)
    there = await instance(...step.there)
  }

  test('a session of one instance is good on the other', async () => {
    await begin()
    const token = await signIn(here, there)
    expect(await sessionOf(there, token)).toBe(await sessionOf(here, token))
    await ok(rest(there, '/sign-out', {}, bearer(token)))
    expect((await rest(here, '/session', undefined, bearer(token))).json.code).toBe('SESSION_INVALID')
  })

  test('a retried claim gets the same token from the other, and the order goes on on both', async () => {
    await begin()
    const { claim, desktop } = await started(here)
    const first = await ok(post(here, '/cross-device/claim', claim))
    const second = await ok(post(there, '/cross-device/claim', claim))
    expect(second.challengeToken).toBe(first.challengeToken)
    await approve(there, here, claim)
    const { token } = await ok(post(there, '/cross-device/finalize', desktop))
    expect(await sessionOf(here, token)).toBe(await sessionOf(there, token))
  })

  test('a retried finalize finds the same session on the other', async () => {
    await begin()
    const { claim, desktop } = await started(there)
    await approve(here, there, claim)
    const first = await ok(post(here, '/cross-device/finalize', desktop))
    const second = await ok(post(there, '/cross-device/finalize', desktop))
    const ids = await Promise.all(
      [first, second].flatMap(({ token }) => [sessionOf(here, token), sessionOf(there, token)]),
    )
    expect(new Set(ids)).toEqual(new Set([first.session.id]))
  })
})

test('a session from before the rotation is good until the old secret goes', async () => {
  const token = await signIn(await instance(old))
  for (const secrets of [
    [old, fresh],
    [fresh, old],
  ])
    await sessionOf(await instance(...secrets), token)
  const { json } = await rest(await instance(fresh), '/session', undefined, bearer(token))
  expect(json.code).toBe('SESSION_INVALID')
})

test('without the first step, instances that do not know the new secret lose what others make with it', async () => {
  const [behind, ahead] = [await instance(old), await instance(fresh, old)]
  const token = await signIn(ahead)
  expect((await rest(behind, '/session', undefined, bearer(token))).json.code).toBe('SESSION_INVALID')

  const claimed = await started(behind)
  await ok(post(ahead, '/cross-device/claim', claimed.claim))
  expect((await post(behind, '/cross-device/claim', claimed.claim)).json.code).toBe('ORDER_ALREADY_CLAIMED')

  const finalized = await started(behind)
  await approve(ahead, ahead, finalized.claim)
  await ok(post(ahead, '/cross-device/finalize', finalized.desktop))
  expect((await post(behind, '/cross-device/finalize', finalized.desktop)).json.code).toBe('ORDER_FINALIZED')
})
