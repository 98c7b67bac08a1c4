import type { SecondaryStorage } from 'better-auth'
import { describe, expect, test } from 'vitest'
import { betterAuthHost } from '../../src/better-auth/index.ts'
import { desktop, Signer } from '../core/order/support.ts'
import { answered, approvedOrder, bearerOf, call, cookieOf, type ReadOrder, readOrder, signIn } from './calls.ts'
import { type Auth, authStorages, makeAuth } from './support.ts'

/** An approved login order, with the phone's side. */
async function approved(auth: Auth, signer = new Signer()): Promise<ReadOrder> {
  const order = await readOrder(auth)
  await answered(call(auth, '/cross-device/approve', { ...order.phone, proof: signer.prove(order.challenge.message) }))
  return order
}

const finalize = (auth: Auth, { desktop }: ReadOrder) => call(auth, '/cross-device/finalize', desktop)
const reject = (auth: Auth, { phone }: ReadOrder) => call(auth, '/cross-device/reject', phone)

/** How many sessions the user of a wallet has, apart from the one that is made to ask. */
async function sessionsOf(auth: Auth, signer: Signer): Promise<number> {
  const headers = new Headers(bearerOf(await signIn(auth, signer)))
  return (await auth.api.listSessions({ headers })).length - 1
}

async function isLive(auth: Auth, headers: Record<string, string>): Promise<boolean> {
  return (await auth.api.getSession({ headers: new Headers(headers) })) !== null
}

describe.each(authStorages)('on %s', (_name, storage) => {
  test('a sign-in that the phone takes back is over, and no other of its user', async () => {
    const auth = await makeAuth({ storage })
    const signer = new Signer()
    const direct = await signIn(auth, signer)
    const other = await call(auth, '/cross-device/finalize', await approvedOrder(auth, signer))
    const order = await approved(auth, signer)
    const signedIn = await finalize(auth, order)
    expect(await isLive(auth, bearerOf(signedIn))).toBe(true)

    const takenBack = { ok: true, orderId: order.phone.orderId, status: 'finalized', sessionEnded: true }
    expect((await reject(auth, order)).json).toEqual(takenBack)
    expect(await isLive(auth, bearerOf(signedIn))).toBe(false)
    expect(await isLive(auth, { cookie: cookieOf(signedIn) })).toBe(false)
    const again = await finalize(auth, order)
    expect([again.status, again.json.code, again.headers.getSetCookie()]).toEqual([409, 'ORDER_REJECTED', []])
    expect((await reject(auth, order)).json).toEqual(takenBack)

    for (const live of [direct, other]) expect(await isLive(auth, bearerOf(live))).toBe(true)
    const listed = await auth.api.listSessions({ headers: new Headers(bearerOf(direct)) })
    expect(listed.map(({ id }) => id).toSorted()).toEqual([direct, other].map(({ json }) => json.session.id).toSorted())
  })

  test('a sign-in whose session was never made is taken back, and never made', async () => {
    let broken = true
    const before = async () => {
      if (broken) throw new Error('the power went')
    }
    const auth = await makeAuth({ storage, auth: { databaseHooks: { session: { create: { before } } } } })
    const signer = new Signer()
    const order = await approved(auth, signer)
    expect((await finalize(auth, order)).json.code).toBe('STORE_UNAVAILABLE')
    broken = false
    expect((await reject(auth, order)).json).toMatchObject({ status: 'finalized', sessionEnded: false })
    expect((await finalize(auth, order)).json.code).toBe('ORDER_REJECTED')
    expect(await sessionsOf(auth, signer)).toBe(0)
  })

  test.each([
    ['before', false],
    ['after', true],
  ])(
    'a take-back that broke off %s it ended the session is finished by the next, with the same answer',
    async (_when, done) => {
      const auth = await makeAuth({ storage })
      const order = await approved(auth)
      const signedIn = await finalize(auth, order)
      const { internalAdapter } = await auth.$context
      const { deleteSession } = internalAdapter
      internalAdapter.deleteSession = async (token) => {
        if (done) await deleteSession(token)
        throw new Error('the power went')
      }
      expect((await reject(auth, order)).json.code).toBe('STORE_UNAVAILABLE')
      // The desktop gets nothing in the meantime.
      expect((await finalize(auth, order)).json.code).toBe('ORDER_REJECTED')
      internalAdapter.deleteSession = deleteSession
      expect((await reject(auth, order)).json).toMatchObject({ status: 'finalized', sessionEnded: true })
      expect(await isLive(auth, bearerOf(signedIn))).toBe(false)
    },
  )

  test('take-backs and finalizes at once leave no session', async () => {
    const auth = await makeAuth({ storage })
    for (let round = 0; round < 10; round++) {
      const signer = new Signer()
      const order = await approved(auth, signer)
      await finalize(auth, order)
      const answers = await Promise.all([
        finalize(auth, order),
        reject(auth, order),
        finalize(auth, order),
        reject(auth, order),
      ])
      for (const answer of answers) if (answer.json.token) expect(await isLive(auth, bearerOf(answer))).toBe(false)
      expect([answers[1]?.json, answers[3]?.json]).toEqual(
        Array(2).fill(expect.objectContaining({ sessionEnded: true })),
      )
      expect(await sessionsOf(auth, signer)).toBe(0)
    }
  })
})

describe('the phone', () => {
  test('a sign-in whose session was ended before is said to have ended', async () => {
    const auth = await makeAuth()
    const order = await approved(auth)
    const signedIn = await finalize(auth, order)
    await auth.api.signOut({ headers: new Headers(bearerOf(signedIn)) })
    expect((await reject(auth, order)).json).toMatchObject({ status: 'finalized', sessionEnded: false })
  })

  test('the application’s hooks see no session of an order that was taken back before', async () => {
    const made: string[] = []
    const before = async ({ token }: { readonly token: string }) => void made.push(token)
    const auth = await makeAuth({ auth: { databaseHooks: { session: { create: { before } } } } })
    const host = betterAuthHost(auth)
    const { json } = await signIn(auth)
    const { userId, adapterId, publicKeyHex, address } = json.session
    const identity = { adapterId, publicKeyHex, address, subject: publicKeyHex }
    const grant = { orderId: 'an-order', seed: new Uint8Array(32).fill(7) }
    const sessionId = await host.orderSessionId(grant)
    expect(await host.endOrderSession({ orderId: grant.orderId, userId, sessionId })).toBe(false)
    const creating = host.createSession({ id: userId }, identity, desktop, grant)
    await expect(creating).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    expect(made).toHaveLength(1)
  })
})

describe.each(authStorages.filter(([name]) => /secondary/.test(name)))('on %s', (_name, storage) => {
  test('a session that Better Auth’s list has lost is ended, too', async () => {
    const given = await storage()
    const auth = await makeAuth({ storage: async () => given })
    const order = await approved(auth)
    const signedIn = await finalize(auth, order)
    await given.secondaryStorage?.delete(`active-sessions-${signedIn.json.session.userId}`)
    expect((await reject(auth, order)).json).toMatchObject({ sessionEnded: true })
    expect(await isLive(auth, bearerOf(signedIn))).toBe(false)
  })

  test('the token of an order’s session is kept encrypted only', async () => {
    const kept: string[] = []
    const given = await storage()
    const secondaryStorage = given.secondaryStorage as SecondaryStorage
    const set: SecondaryStorage['set'] = async (key, value, ttl) => {
      if (key.startsWith('verification:')) kept.push(value)
      await secondaryStorage.set(key, value, ttl)
    }
    const auth = await makeAuth({ storage: async () => ({ ...given, secondaryStorage: { ...secondaryStorage, set } }) })
    const { json } = await finalize(auth, await approved(auth))
    expect(kept.join()).not.toContain(json.token.split('.')[0])
  })

  test.each([
    ['that extends it', '/get-session', undefined],
    ['that writes its user anew', '/update-user', { name: 'Ada' }],
  ])('a call in flight %s does not bring the session back', async (_call, path, body) => {
    const given = await storage()
    const secondaryStorage = given.secondaryStorage as SecondaryStorage
    const arrived = Promise.withResolvers<void>()
    const opened = Promise.withResolvers<void>()
    let watched: string | undefined
    const slow: SecondaryStorage = {
      ...secondaryStorage,
      async set(key, value, ttl) {
        if (key === watched) {
          arrived.resolve()
          await opened.promise
        }
        await secondaryStorage.set(key, value, ttl)
      },
    }
    const session = { ...given.session, updateAge: 0 }
    const auth = await makeAuth({ storage: async () => ({ ...given, secondaryStorage: slow, session }) })
    const order = await approved(auth)
    const signedIn = await finalize(auth, order)
    watched = signedIn.json.token.split('.')[0]
    // It has read the session, and stands still before it writes it.
    const inFlight = call(auth, path, body, bearerOf(signedIn))
    await arrived.promise
    expect((await reject(auth, order)).json).toMatchObject({ sessionEnded: true })
    opened.resolve()
    await inFlight
    watched = undefined
    expect(await isLive(auth, bearerOf(signedIn))).toBe(false)
  })
})
