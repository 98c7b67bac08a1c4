import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/index.ts'
import { approveOrder, signIn } from '../support/flows.ts'
import { memoryStore } from '../support/memory-store.ts'
import { bearer, okay, refusal, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'

const [old, fresh] = ['the old secret of a rotation, for tests', 'the new secret of a rotation, for tests']
const claimKey = 'k'.repeat(22)
const headers = { origin: 'https://app.example' }

/** The address of an instance with these secrets. */
const instance = async (store: Store, ...secret: string[]): Promise<string> =>
  (await startService({ store, secret, trustedOrigins: [headers.origin] })).url

const idOf = async (url: string, token: string): Promise<string> =>
  okay(await rest(url, '/session', undefined, bearer(token))).session.id
const post = (url: string, path: string, body: object) => rest(url, `/cross-device${path}`, body, headers)

const steps = [
  [[old], [old, fresh]],
  [
    [old, fresh],
    [fresh, old],
  ],
  [[fresh, old], [fresh]],
] as const

describe.each(steps.flatMap(([one, other]) => [[one, other] as const, [other, one] as const]))(
  'while the secret is rotated, of an instance with %j beside one with %j',
  (one, other) => {
    test('sessions, claims and finalizes are good at the other', async () => {
      const store = await memoryStore()
      const [here, there] = [await instance(store, ...one), await instance(store, ...other)]
      const { token } = await signIn(here, makeWallet(), headers)
      expect(await idOf(there, token)).toBe(await idOf(here, token))
      okay(await rest(there, '/sign-out', {}, bearer(token)))
      expect(refusal(await rest(here, '/session', undefined, bearer(token)))).toEqual([401, 'SESSION_INVALID'])

      const claimed = { ...okay(await post(here, '/start', { kind: 'login' })), claimKey }
      const claims = [okay(await post(here, '/claim', claimed)), okay(await post(there, '/claim', claimed))]
      expect(claims[1].challengeToken).toBe(claims[0].challengeToken)

      const order = okay(await post(here, '/start', { kind: 'login' }))
      await approveOrder(there, order, { headers })
      const results = [okay(await post(here, '/finalize', order)), okay(await post(there, '/finalize', order))]
      const ids = results.flatMap((result) => [here, there].map((url) => idOf(url, result.token)))
      expect(new Set(await Promise.all(ids))).toEqual(new Set([results[0].session.id]))
    })
  },
)

test('a session from before the rotation is good until the old secret goes', async () => {
  const store = await memoryStore()
  const { token } = await signIn(await instance(store, old), makeWallet(), headers)
  await idOf(await instance(store, old, fresh), token)
  await idOf(await instance(store, fresh, old), token)
  const answer = await rest(await instance(store, fresh), '/session', undefined, bearer(token))
  expect(refusal(answer)).toEqual([401, 'SESSION_INVALID'])
})

test('without the first step, an instance refuses what another made with the new secret', async () => {
  const store = await memoryStore()
  const [behind, ahead] = [await instance(store, old), await instance(store, fresh, old)]
  const { token } = await signIn(ahead, makeWallet(), headers)
  expect(refusal(await rest(behind, '/session', undefined, bearer(token)))[1]).toBe('SESSION_INVALID')
  const claimed = { ...okay(await post(behind, '/start', { kind: 'login' })), claimKey }
  okay(await post(ahead, '/claim', claimed))
  expect(refusal(await post(behind, '/claim', claimed))[1]).toBe('ORDER_ALREADY_CLAIMED')
})
