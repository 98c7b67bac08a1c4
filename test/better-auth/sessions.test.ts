import type { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { advance } from '../contract/support.ts'
import { Signer } from '../core/order/support.ts'
import { approvedOrder, bearerOf, call, cookieOf, countRows, signIn } from './calls.ts'
import { type Auth, authStorages, makeAuth } from './support.ts'

afterEach(() => void vi.useRealTimers())

/** The two ways to a session. */
const ways: [string, (auth: Auth, signer: Signer) => ReturnType<typeof signIn>][] = [
  ['a wallet sign-in', signIn],
  [
    'a finalized login order',
    async (auth, signer) => await call(auth, '/cross-device/finalize', await approvedOrder(auth, signer)),
  ],
]

describe.each(authStorages)('on %s', (_name, storage) => {
  test.each(ways)('Better Auth knows the session of %s', async (_way, begin) => {
    const auth = await makeAuth({ storage })
    const signer = new Signer()
    const signedIn = await begin(auth, signer)
    expect(signedIn.status).toBe(200)
    const headers = new Headers(bearerOf(signedIn))
    const byBearer = await auth.api.getSession({ headers })
    const byCookie = await auth.api.getSession({ headers: new Headers({ cookie: cookieOf(signedIn) }) })
    expect(byBearer).toEqual(byCookie)
    expect(byBearer?.session).toMatchObject({
      id: signedIn.json.session.id,
      walletAdapterId: 'ed25519',
      walletPublicKeyHex: signer.publicKeyHex,
      walletAddress: signedIn.json.session.address,
      walletOrderId: signedIn.json.session.orderId ?? null,
    })
    // Without its signature it is nothing, whatever the database says.
    const unsigned = signedIn.json.token.split('.')[0]
    expect(byBearer?.session.token).toBe(unsigned)
    expect(await auth.api.getSession({ headers: new Headers({ authorization: `Bearer ${unsigned}` }) })).toBeNull()

    await auth.api.signOut({ headers })
    expect(await auth.api.getSession({ headers })).toBeNull()
    expect(await auth.api.getSession({ headers: new Headers({ cookie: cookieOf(signedIn) }) })).toBeNull()
  })

  test("Better Auth's own list and revoke act on the sessions", async () => {
    const auth = await makeAuth({ storage })
    const signer = new Signer()
    const [, one] = await Promise.all([signIn(auth, signer), signIn(auth, signer), signIn(auth, signer)])
    const byOrder = await call(auth, '/cross-device/finalize', await approvedOrder(auth, signer))
    const headers = new Headers(bearerOf(one))
    expect(await auth.api.listSessions({ headers })).toHaveLength(4)

    const [token] = byOrder.json.token.split('.')
    await auth.api.revokeSession({ headers, body: { token } })
    expect(await auth.api.getSession({ headers: new Headers(bearerOf(byOrder)) })).toBeNull()
    await auth.api.revokeOtherSessions({ headers })
    expect((await auth.api.listSessions({ headers })).map(({ id }) => id)).toEqual([one.json.session.id])
  })

  test('a session that was revoked does not come back by finalizing again', async () => {
    const auth = await makeAuth({ storage })
    const order = await approvedOrder(auth)
    const first = await call(auth, '/cross-device/finalize', order)
    await auth.api.signOut({ headers: new Headers(bearerOf(first)) })
    const again = await call(auth, '/cross-device/finalize', order)
    expect([again.status, again.json.code]).toEqual([409, 'ORDER_FINALIZED'])
    expect(again.headers.getSetCookie()).toEqual([])
    expect(await auth.api.getSession({ headers: new Headers(bearerOf(first)) })).toBeNull()
  })

  test('a finalize that broke off before its session was made is made good by the next', async () => {
    let broken = true
    const auth = await makeAuth({
      storage,
      auth: {
        databaseHooks: {
          session: {
            create: {
              async before() {
                if (broken) throw new Error('the power went')
              },
            },
          },
        },
      },
    })
    const order = await approvedOrder(auth)
    const failed = await call(auth, '/cross-device/finalize', order)
    expect([failed.status, failed.json.code]).toEqual([503, 'STORE_UNAVAILABLE'])
    expect(failed.headers.get('retry-after')).toBe('1')
    broken = false
    const { status, json } = await call(auth, '/cross-device/finalize', order)
    expect([status, json.ok]).toEqual([200, true])
  })
})

test('nothing of a session may be kept by caches', async () => {
  const auth = await makeAuth()
  expect((await signIn(auth)).headers.get('cache-control')).toBe('no-store')
})

test("the session's wallet cannot be changed through Better Auth's own endpoints", async () => {
  const auth = await makeAuth({ wallet: { syncAddressToUser: true } })
  const signedIn = await signIn(auth)
  const changes = { walletAdapterId: 'nimiq', walletPublicKeyHex: '00', walletAddress: 'NQ00', walletOrderId: 'x' }
  for (const [field, value] of Object.entries(changes)) {
    await call(auth, '/update-session', { [field]: value }, bearerOf(signedIn))
    await call(auth, '/update-user', { [field]: value }, bearerOf(signedIn))
  }
  const found = await auth.api.getSession({ headers: new Headers(bearerOf(signedIn)) })
  expect(found?.session).toMatchObject({
    walletAddress: signedIn.json.session.address,
    walletPublicKeyHex: signedIn.json.session.publicKeyHex,
    walletAdapterId: 'ed25519',
    walletOrderId: null,
  })
  expect(found?.user).toMatchObject({ walletAddress: signedIn.json.session.address })
})

describe.each(authStorages.filter(([name]) => /SQLite$/.test(name)))('on %s', (_name, storage) => {
  test('an order’s session and the mark that it was made are written together, or not at all', async () => {
    const given = await storage()
    const database = given.database as DatabaseSync
    const auth = await makeAuth({ storage: async () => given })
    const order = await approvedOrder(auth)
    // The mark cannot be written, and whoever wanted to tidy up after that is gone.
    database.exec("create trigger crash before insert on walletMark begin select raise(abort, 'crash'); end")
    database.exec("create trigger gone before delete on session begin select raise(abort, 'gone'); end")
    const failed = await call(auth, '/cross-device/finalize', order)
    expect([failed.status, failed.json.code]).toEqual([503, 'STORE_UNAVAILABLE'])
    expect(await countRows(auth, ['session', 'walletMark'])).toEqual([0, 0])
    const { adapter, internalAdapter } = await auth.$context
    const [user] = await adapter.findMany<{ id: string }>({ model: 'user' })
    expect(await internalAdapter.listSessions(user?.id ?? '')).toEqual([])
    database.exec('drop trigger crash; drop trigger gone')
    const made = await call(auth, '/cross-device/finalize', order)
    expect(made.status).toBe(200)
    expect(await auth.api.listSessions({ headers: new Headers(bearerOf(made)) })).toHaveLength(1)
  })
})

test('what is over is swept away', async () => {
  const auth = await makeAuth()
  await call(auth, '/cross-device/finalize', await approvedOrder(auth))
  expect(await countRows(auth, ['crossDeviceOrder', 'walletMark'])).toEqual([1, 1])
  advance(30 * 60_000)
  await call(auth, '/cross-device/finalize', await approvedOrder(auth))
  expect(await countRows(auth, ['crossDeviceOrder', 'walletMark'])).toEqual([1, 1])
})
