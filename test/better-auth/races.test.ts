import { describe, expect, test } from 'vitest'
import { Signer } from '../core/order/support.ts'
import { approvedOrder, bearerOf, call, countRows, proofOf, readOrder, signIn } from './calls.ts'
import { authStorages, makeAuth } from './support.ts'

// In one process and without sockets, which would put the calls one after the other: every step of one comes between
// two of another. Between processes: instances.test.ts.
describe.each(authStorages)('at once, on %s', (_name, storage) => {
  const times = 20
  const manyTimes = <T>(task: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: times }, task))

  test('verifies of one nonce make one session', async () => {
    const auth = await makeAuth({ storage })
    const proof = await proofOf(auth, new Signer())
    const answers = await manyTimes(() => call(auth, '/wallet/verify', proof))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(new Set(answers.map(({ json }) => json.code))).toEqual(new Set([undefined, 'NONCE_NOT_FOUND']))
    expect(await auth.api.listSessions({ headers: new Headers(bearerOf(won[0]!)) })).toHaveLength(1)
  })

  test('verifies of one nonce make one session, where the nonces are in a store without an atomic take', async () => {
    const nonces = new Map<string, string>()
    const nonceStore = {
      get: async (key: string) => nonces.get(key),
      set: async (key: string, value: string) => nonces.set(key, value),
      delete: async (key: string) => nonces.delete(key),
    }
    const auth = await makeAuth({ storage, wallet: { nonceStore } })
    const proof = await proofOf(auth, new Signer())
    const answers = await manyTimes(() => call(auth, '/wallet/verify', proof))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await countRows(auth, ['walletMark'])).toEqual([1])
  })

  test('first sign-ins of one wallet make one user', async () => {
    // As slow as a database in another town.
    const before = async () => void (await new Promise((resolve) => setTimeout(resolve, 20)))
    const auth = await makeAuth({ storage, auth: { databaseHooks: { user: { create: { before } } } } })
    const signer = new Signer()
    const answers = await manyTimes(() => signIn(auth, signer))
    expect(new Set(answers.map(({ json }) => json.session.userId)).size).toBe(1)
    expect(await countRows(auth, ['user', 'account'])).toEqual([1, 1])
    expect(await auth.api.listSessions({ headers: new Headers(bearerOf(answers[0]!)) })).toHaveLength(times)
  })

  test('claims of one order: one phone has it', async () => {
    const auth = await makeAuth({ storage })
    const { json } = await call(auth, '/cross-device/start', { kind: 'login' })
    const claim = { orderId: json.orderId, claimToken: json.claimToken }
    const answers = await manyTimes(() => call(auth, '/cross-device/claim', claim))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(new Set(answers.map(({ json }) => json.code))).toEqual(new Set([undefined, 'ORDER_ALREADY_CLAIMED']))
  })

  test('approve against reject: one verdict', async () => {
    const auth = await makeAuth({ storage })
    for (let round = 0; round < 5; round++) {
      const { desktop, phone, challenge } = await readOrder(auth, { kind: 'sign' })
      const proof = new Signer().prove(challenge.message)
      const [approved, rejected] = await Promise.all([
        call(auth, '/cross-device/approve', { ...phone, proof }),
        call(auth, '/cross-device/reject', phone),
      ])
      // A phone can stop what it has approved, but not approve what it has stopped.
      expect([rejected.status, rejected.json.status]).toEqual([200, 'rejected'])
      expect([undefined, 'ORDER_REJECTED']).toContain(approved.json.code)
      expect((await call(auth, '/cross-device/finalize', desktop)).json.code).toBe('ORDER_REJECTED')
    }
  })

  test('finalizes of one order hand out one session', async () => {
    const auth = await makeAuth({ storage })
    const order = await approvedOrder(auth)
    const answers = await manyTimes(() => call(auth, '/cross-device/finalize', order))
    expect(answers.map(({ status }) => status)).toEqual(Array(times).fill(200))
    expect(new Set(answers.map(({ json }) => json.session.id)).size).toBe(1)
    expect(new Set(answers.map(({ json }) => json.token)).size).toBe(1)
    expect(await auth.api.listSessions({ headers: new Headers(bearerOf(answers[0]!)) })).toHaveLength(1)
  })
})
