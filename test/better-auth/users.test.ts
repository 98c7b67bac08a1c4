import { createHash } from 'node:crypto'
import { admin } from 'better-auth/plugins'
import { describe, expect, test } from 'vitest'
import { Signer } from '../core/order/support.ts'
import { bearerOf, call, cookieOf, countRows, linkProofOf, signIn } from './calls.ts'
import { makeAuth } from './support.ts'

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

test('the address of a wallet’s user cannot be worked out without Better Auth’s secret, so it cannot be taken or asked about', async () => {
  const options = { auth: { emailAndPassword: { enabled: true } } }
  const signer = new Signer()
  const addressOf = async (secret: string) => {
    const auth = await makeAuth({ auth: { ...options.auth, secret } })
    // What follows from the wallet alone.
    const known = `ed25519:${signer.publicKeyHex}`
    for (const text of [known, known.replace(':', '\n')]) {
      const email = `${createHash('sha256').update(text).digest('hex').slice(0, 32)}@wallet.placeholder.invalid`
      await auth.api.signUpEmail({ body: { name: 'Mallory', email, password: 'correct horse battery' } })
    }
    const { status, json } = await signIn(auth, signer)
    expect(status).toBe(200)
    // The same wallet is the same user.
    expect((await signIn(auth, signer)).json.session.userId).toBe(json.session.userId)
    return (await (await auth.$context).internalAdapter.findUserById(json.session.userId))?.email
  }
  const one = await addressOf('one secret of thirty-two characters')
  expect(await addressOf('another secret of thirty characters')).not.toBe(one)
  expect(await addressOf('one secret of thirty-two characters')).toBe(one)
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
  await call(auth, '/wallet/link', await linkProofOf(auth, two, bearerOf(first)), bearerOf(first))
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
    expect([status, json.code]).toEqual([503, 'HOST_UNAVAILABLE'])
    expect(json.message).toContain('sign again')
  })
})

test('signing in with a wallet does not add it to the signed-in user', async () => {
  const auth = await makeAuth()
  const first = await signIn(auth)
  const second = await signIn(auth, new Signer(), { cookie: cookieOf(first) })
  expect(second.json.session.userId).not.toBe(first.json.session.userId)
})

test('a wallet that its user has unlinked is a stranger’s', async () => {
  const auth = await makeAuth()
  const signer = new Signer()
  const first = await signIn(auth, signer)
  await call(auth, '/wallet/link', await linkProofOf(auth, new Signer(), bearerOf(first)), bearerOf(first))
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

test('with ed25519 and solana, the start warns that one key is two users', async () => {
  const warningsOf = async (adapters: string[]): Promise<string[]> => {
    const warnings: string[] = []
    const log = (level: string, text: string): void => {
      if (level === 'warn') warnings.push(text)
    }
    await (await makeAuth({ wallet: { adapters }, orders: { adapters }, auth: { logger: { level: 'warn', log } } }))
      .$context
    return warnings.filter((text) => text.includes('two users'))
  }
  expect(await warningsOf(['ed25519', 'solana'])).toHaveLength(1)
  expect(await warningsOf(['nimiq', 'solana'])).toEqual([])
})
