import { admin } from 'better-auth/plugins'
import { describe, expect, test } from 'vitest'
import { Signer } from '../order/support.ts'
import { bearerOf, call, cookieOf, countRows, proofOf, signIn } from './calls.ts'
import { authStorages, makeAuth } from './support.ts'

const models = ['user', 'account'] as const

test('a wallet is an account of a user of Better Auth', async () => {
  const auth = await makeAuth()
  const signer = new Signer()
  const { json } = await signIn(auth, signer)
  const { internalAdapter } = await auth.$context
  const user = await internalAdapter.findUserById(json.session.userId)
  expect(user).toMatchObject({
    name: json.session.address,
    email: expect.stringMatching(/^[0-9a-f]{32}@wallet\.placeholder\.invalid$/),
    emailVerified: false,
  })
  expect(user).not.toHaveProperty('walletAddress')
  expect(await internalAdapter.findAccounts(json.session.userId)).toMatchObject([
    { providerId: 'ed25519', accountId: signer.publicKeyHex },
  ])
})

test('the wallet last used is copied to the user where an option says so', async () => {
  const auth = await makeAuth({ wallet: { syncAddressToUser: true, syncPublicKeyToUser: true } })
  const one = new Signer()
  const two = new Signer()
  const first = await signIn(auth, one)
  const wallets = async () => (await auth.api.getSession({ headers: new Headers(bearerOf(first)) }))?.user
  expect(await wallets()).toMatchObject({
    walletAddress: first.json.session.address,
    walletPublicKeyHex: one.publicKeyHex,
  })
  await call(auth, '/wallet/link', await proofOf(auth, two), bearerOf(first))
  expect(await wallets()).toMatchObject({ walletPublicKeyHex: two.publicKeyHex })
  await signIn(auth, one)
  expect(await wallets()).toMatchObject({ walletPublicKeyHex: one.publicKeyHex })
})

describe('resolveLogin', () => {
  test('null refuses, and nothing is created', async () => {
    const auth = await makeAuth({ wallet: { resolveLogin: () => null } })
    const refused = await signIn(auth)
    expect([refused.status, refused.json]).toEqual([
      403,
      { code: 'LOGIN_REFUSED', message: 'This wallet is not allowed to sign in' },
    ])
    expect(refused.headers.getSetCookie()).toEqual([])
    expect(await countRows(auth, [...models, 'session', 'verification'])).toEqual([0, 0, 0, 0])
  })

  test('names a user of Better Auth, who then has the session', async () => {
    const asked: object[] = []
    const auth = await makeAuth({
      auth: { emailAndPassword: { enabled: true } },
      wallet: {
        resolveLogin: (identity) => {
          asked.push(identity)
          return { id: known }
        },
      },
    })
    const { user } = await auth.api.signUpEmail({
      body: { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' },
    })
    const known = user.id
    const signer = new Signer()
    const { json } = await signIn(auth, signer)
    expect(json.session.userId).toBe(user.id)
    const { publicKeyHex } = signer
    expect(asked).toEqual([
      { adapterId: 'ed25519', subject: publicKeyHex, publicKeyHex, address: json.session.address },
    ])
    expect(await countRows(auth, models)).toEqual([1, 1])
  })

  test('a user that does not exist is the application’s mistake', async () => {
    const auth = await makeAuth({ wallet: { resolveLogin: () => ({ id: 'nobody' }) } })
    const { status, json } = await signIn(auth)
    expect([status, json.code]).toEqual([500, 'INTERNAL'])
  })
})

describe.each(authStorages)('linking, on %s', (_name, storage) => {
  test('a signed-in user adds a wallet and signs in with it', async () => {
    const auth = await makeAuth({ storage })
    const first = await signIn(auth)
    const second = new Signer()
    const headers = { cookie: cookieOf(first) }
    const linked = await call(auth, '/wallet/link', await proofOf(auth, second), headers)
    expect(linked.json).toEqual({
      ok: true,
      adapterId: 'ed25519',
      publicKeyHex: second.publicKeyHex,
      address: expect.stringMatching(/^NQ/),
    })
    // Once more changes nothing.
    expect((await call(auth, '/wallet/link', await proofOf(auth, second), headers)).status).toBe(200)
    const signedIn = await signIn(auth, second)
    expect(signedIn.json.session.userId).toBe(first.json.session.userId)
    expect(await countRows(auth, models)).toEqual([1, 2])
    expect(await auth.api.listUserAccounts({ headers: new Headers(headers) })).toHaveLength(2)
  })

  test('a wallet of another user is refused, and stays theirs', async () => {
    const auth = await makeAuth({ storage })
    const theirs = new Signer()
    const other = await signIn(auth, theirs)
    const mine = await signIn(auth)
    const refused = await call(auth, '/wallet/link', await proofOf(auth, theirs), bearerOf(mine))
    expect([refused.status, refused.json.code]).toEqual([403, 'LOGIN_REFUSED'])
    expect(refused.json.message).toMatch(/belongs to another user/)
    expect((await signIn(auth, theirs)).json.session.userId).toBe(other.json.session.userId)
  })

  test('two users who add one wallet at once: one has it', async () => {
    const auth = await makeAuth({ storage })
    const wallet = new Signer()
    const users = await Promise.all([signIn(auth), signIn(auth)])
    const proofs = [await proofOf(auth, wallet), await proofOf(auth, wallet)]
    const answers = await Promise.all(
      users.map((user, index) => call(auth, '/wallet/link', proofs[index], bearerOf(user))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403])
    expect(await countRows(auth, models)).toEqual([2, 3])
  })
})

test('a wallet that another instance adds to another user at the same moment is not added here', async () => {
  let other: string | undefined
  const auth = await makeAuth({
    auth: {
      databaseHooks: {
        account: {
          create: {
            async after({ providerId, accountId }, ctx) {
              if (other === undefined) return
              const data = { providerId, accountId, userId: other, createdAt: new Date(), updatedAt: new Date() }
              await ctx?.context.adapter.create({ model: 'account', data })
            },
          },
        },
      },
    },
  })
  const [mine, theirs] = [await signIn(auth), await signIn(auth)]
  other = theirs.json.session.userId
  const wallet = new Signer()
  const { status } = await call(auth, '/wallet/link', await proofOf(auth, wallet), bearerOf(mine))
  expect(status).toBe(500)
  other = undefined
  expect((await signIn(auth, wallet)).json.session.userId).toBe(theirs.json.session.userId)
})

test('signing in with a wallet does not add it to whoever is signed in', async () => {
  const auth = await makeAuth()
  const first = await signIn(auth)
  const second = await signIn(auth, new Signer(), { cookie: cookieOf(first) })
  expect(second.json.session.userId).not.toBe(first.json.session.userId)
})

test('linking needs a session that is good, and a proof', async () => {
  const auth = await makeAuth()
  const signer = new Signer()
  const codeOf = async (headers: Record<string, string>, body?: object) =>
    (await call(auth, '/wallet/link', body ?? (await proofOf(auth, signer)), headers)).json.code
  expect(await codeOf({})).toBe('SESSION_REQUIRED')
  expect(await codeOf({ authorization: 'Bearer css_x.y' })).toBe('SESSION_INVALID')
  const mine = await signIn(auth)
  // A bearer token that is no good does not fall back on the cookie, which would not have been asked where it came from.
  expect(await codeOf({ authorization: 'Bearer css_x.y', cookie: cookieOf(mine) })).toBe('SESSION_INVALID')
  expect(await codeOf({ cookie: cookieOf(mine), origin: 'https://evil.example' })).toBe('ORIGIN_NOT_TRUSTED')
  const forged = { ...(await proofOf(auth, signer)), publicKeyHex: new Signer().publicKeyHex }
  expect(await codeOf(bearerOf(mine), forged)).toBe('SIGNATURE_INVALID')
})

test('a wallet that its user has unlinked is a stranger’s', async () => {
  const auth = await makeAuth()
  const signer = new Signer()
  const first = await signIn(auth, signer)
  await call(auth, '/wallet/link', await proofOf(auth, new Signer()), bearerOf(first))
  const headers = new Headers(bearerOf(first))
  const accounts = await auth.api.listUserAccounts({ headers })
  const account = accounts.find(({ accountId }) => accountId === signer.publicKeyHex)
  await auth.api.unlinkAccount({ headers, body: { accountId: account?.id ?? '' } })
  // The user is not one who is being made right now.
  const { adapter } = await auth.$context
  const where = [{ field: 'id', value: first.json.session.userId }]
  await adapter.update({ model: 'user', where, update: { createdAt: new Date(Date.now() - 60_000) } })
  const again = await signIn(auth, signer)
  expect(again.status).toBe(200)
  expect(again.json.session.userId).not.toBe(first.json.session.userId)
})

describe('hooks of the application are heard', () => {
  test('a banned user is refused in the hook’s own words', async () => {
    const auth = await makeAuth({ auth: { plugins: [admin()] } })
    const signer = new Signer()
    const first = await signIn(auth, signer)
    const { internalAdapter } = await auth.$context
    await internalAdapter.updateUser(first.json.session.userId, { banned: true })
    const { status, json } = await signIn(auth, signer)
    expect([status, json.code]).toEqual([403, 'LOGIN_REFUSED'])
    expect(json.message).toMatch(/banned/)
  })

  test.each(['user', 'account', 'session'] as const)('a %s that a hook does not want is not made', async (model) => {
    const auth = await makeAuth({ auth: { databaseHooks: { [model]: { create: { before: async () => false } } } } })
    const { status, json } = await signIn(auth)
    expect([status, json.code]).toEqual([403, 'LOGIN_REFUSED'])
    if (model !== 'session') expect(await countRows(auth, models)).toEqual([0, 0])
  })

  test('validateUserInfo sees a new wallet user', async () => {
    const auth = await makeAuth({
      auth: { user: { validateUserInfo: async ({ source }) => ({ error: `no_${source.method}` }) } },
    })
    const { status, json } = await signIn(auth)
    expect([status, json.code]).toEqual([403, 'LOGIN_REFUSED'])
    expect(await countRows(auth, models)).toEqual([0, 0])
  })
})
