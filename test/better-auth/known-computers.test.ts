import { createHash } from 'node:crypto'
import { bearer } from 'better-auth/plugins'
import { describe, expect, test } from 'vitest'
import { tron } from '../../examples/custom-wallet/tron.ts'
import { CountersignError } from '../../src/shared/errors.ts'
import { Signer } from '../core/order/support.ts'
import { makeTronWallet } from '../support/chains.ts'
import { makeComputer, type TestComputer } from '../support/computer.ts'
import { memoryStore } from '../support/memory-store.ts'
import { type Answer, answered, bearerOf, call, cookieOf, linkProofOf, readOrder, signIn } from './calls.ts'
import { type Auth, type AuthServerOptions, makeAuth } from './support.ts'

async function makeRemembering({ orders, ...options }: AuthServerOptions = {}): Promise<Auth> {
  const store = await memoryStore()
  return await makeAuth({ ...options, orders: { confirmationCode: 'return', store, ...orders } })
}

/**
 * Signs in with a phone. Resolves with the answer to the desktop, and the return code that the phone showed, if any.
 */
async function signInFrom(
  auth: Auth,
  computer: TestComputer,
  signer: Signer,
  rememberComputer = false,
): Promise<{ answer: Answer; returnCode: string | undefined }> {
  const { desktop, phone, challenge } = await readOrder(auth, { computerKey: computer.key })
  expect(challenge.canRememberComputer).toBe(true)
  const approval = { ...phone, proof: signer.prove(challenge.message), rememberComputer }
  const { returnCode } = await answered(call(auth, '/cross-device/approve', approval))
  const computerProof = await computer.prove(desktop)
  const answer = await call(auth, '/cross-device/finalize', { ...desktop, returnCode, computerProof })
  expect(answer.status).toBe(200)
  return { answer, returnCode }
}

/** Whether a computer needs no code for a wallet. Makes one more session. */
async function isKnown(auth: Auth, computer: TestComputer, signer: Signer): Promise<boolean> {
  return (await signInFrom(auth, computer, signer)).returnCode === undefined
}

async function listed(auth: Auth, headers: Record<string, string>) {
  return (await answered(call(auth, '/computers', undefined, headers))).computers
}

const tokenOf = ({ json }: Answer): string => json.token.split('.')[0]

describe('the known computers of a user', () => {
  test('a computer that the phone’s user lets be remembered needs no code the next time, until it is forgotten', async () => {
    const auth = await makeRemembering()
    const [computer, signer] = [await makeComputer(), new Signer()]
    const first = await signInFrom(auth, computer, signer, true)
    expect(first.returnCode).toMatch(/^\d{6}$/)
    const second = await signInFrom(auth, computer, signer)
    expect(second.returnCode).toBeUndefined()
    // Another wallet's user has let nothing be remembered.
    expect(await isKnown(auth, computer, new Signer())).toBe(false)

    const direct = await signIn(auth, signer)
    const [known, ...others] = await listed(auth, bearerOf(second.answer))
    expect(others).toEqual([])
    expect(known).toMatchObject({ id: expect.any(String), current: true, createdAt: expect.any(Number) })
    expect(await listed(auth, { cookie: cookieOf(direct) })).toEqual([{ ...known, current: false }])
    const session = await auth.api.getSession({ headers: new Headers(bearerOf(second.answer)) })
    expect(session?.session).toMatchObject({ walletComputerId: known.id })

    const forget = () => call(auth, '/computers/forget', { id: known.id }, bearerOf(direct))
    expect((await forget()).json).toEqual({ ok: true })
    const again = await forget()
    expect([again.status, again.json.code]).toEqual([404, 'COMPUTER_NOT_FOUND'])
    expect(await isKnown(auth, computer, signer)).toBe(false)
  })

  test('are also those of a wallet whose address has a case of its own', async () => {
    const adapters = [tron]
    const auth = await makeRemembering({ wallet: { adapters }, orders: { adapters } })
    const [computer, { address, sign }] = [await makeComputer(), makeTronWallet()]
    const finalize = async (rememberComputer: boolean) => {
      const { desktop, phone, challenge } = await readOrder(auth, { computerKey: computer.key })
      const proof = { adapterId: 'tron', publicKeyHex: '', address, signatureHex: await sign(challenge.message) }
      const approval = { ...phone, proof, rememberComputer }
      const { returnCode } = await answered(call(auth, '/cross-device/approve', approval))
      const computerProof = await computer.prove(desktop)
      return {
        returnCode,
        answer: await call(auth, '/cross-device/finalize', { ...desktop, returnCode, computerProof }),
      }
    }
    expect((await finalize(true)).returnCode).toMatch(/^\d{6}$/)
    const second = await finalize(false)
    expect(second.returnCode).toBeUndefined()
    const [known] = await listed(auth, bearerOf(second.answer))
    await answered(call(auth, '/computers/forget', { id: known.id }, bearerOf(second.answer)))
    expect((await finalize(false)).returnCode).toMatch(/^\d{6}$/)
  })

  const ends: [
    how: string,
    end: (auth: Auth, remembered: Answer, direct: Answer) => Promise<Answer>,
    known: boolean,
  ][] = [
    [
      'its session is revoked',
      (auth, remembered, direct) => call(auth, '/revoke-session', { token: tokenOf(remembered) }, bearerOf(direct)),
      false,
    ],
    [
      'its session is revoked by the cookie of another',
      (auth, remembered, direct) =>
        call(auth, '/revoke-session', { token: tokenOf(remembered) }, { cookie: cookieOf(direct) }),
      false,
    ],
    [
      'the other sessions are revoked',
      (auth, _remembered, direct) => call(auth, '/revoke-other-sessions', {}, bearerOf(direct)),
      false,
    ],
    ['all sessions are revoked', (auth, remembered) => call(auth, '/revoke-sessions', {}, bearerOf(remembered)), false],
    [
      'its own session revokes the others',
      (auth, remembered) => call(auth, '/revoke-other-sessions', {}, bearerOf(remembered)),
      true,
    ],
    [
      'another session is revoked',
      (auth, remembered, direct) => call(auth, '/revoke-session', { token: tokenOf(direct) }, bearerOf(remembered)),
      true,
    ],
    ['it signs out', (auth, remembered) => call(auth, '/sign-out', {}, bearerOf(remembered)), true],
  ]

  test.each(ends)('once %s, the computer is known or not', async (_how, end, known) => {
    const auth = await makeRemembering()
    const [computer, signer] = [await makeComputer(), new Signer()]
    const direct = await signIn(auth, signer)
    const { answer: remembered } = await signInFrom(auth, computer, signer, true)
    expect((await end(auth, remembered, direct)).status).toBe(200)
    expect(await isKnown(auth, computer, signer)).toBe(known)
  })
})

test('a wallet that is unlinked, or whose user is deleted, loses its computers', async () => {
  const auth = await makeRemembering({ auth: { user: { deleteUser: { enabled: true } } } })
  const [computer, signer, second] = [await makeComputer(), new Signer(), new Signer()]
  const direct = await signIn(auth, signer)
  const link = await linkProofOf(auth, second, bearerOf(direct))
  await answered(call(auth, '/wallet/link', link, bearerOf(direct)))
  await signInFrom(auth, computer, signer, true)
  await signInFrom(auth, computer, second, true)
  // The computers of all wallets of the user, and each can be forgotten.
  const [one, two] = await listed(auth, bearerOf(direct))
  expect(one.createdAt).toBeGreaterThanOrEqual(two.createdAt)
  expect(one.id).not.toBe(two.id)

  const headers = new Headers(bearerOf(direct))
  const accounts = await auth.api.listUserAccounts({ headers })
  const account = accounts.find(({ accountId }) => accountId === second.publicKeyHex)
  await answered(call(auth, '/unlink-account', { accountId: account?.id }, bearerOf(direct)))
  expect(await listed(auth, bearerOf(direct))).toEqual([two])
  expect(await isKnown(auth, computer, second)).toBe(false)
  expect(await isKnown(auth, computer, signer)).toBe(true)
  await answered(call(auth, '/delete-user', {}, bearerOf(direct)))
  expect(await isKnown(auth, computer, signer)).toBe(false)
})

test('the computer of any wallet of the user can be forgotten, and that of another user cannot', async () => {
  const auth = await makeRemembering()
  const [computer, signer, second] = [await makeComputer(), new Signer(), new Signer()]
  const direct = await signIn(auth, signer)
  await answered(call(auth, '/wallet/link', await linkProofOf(auth, second, bearerOf(direct)), bearerOf(direct)))
  await signInFrom(auth, computer, second, true)
  const [{ id }] = await listed(auth, bearerOf(direct))
  const stranger = await signIn(auth)
  const forget = async (who: Answer) => (await call(auth, '/computers/forget', { id }, bearerOf(who))).json
  expect((await forget(stranger)).code).toBe('COMPUTER_NOT_FOUND')
  await call(auth, '/revoke-session', { token: 'x' }, bearerOf(stranger))
  expect(await isKnown(auth, computer, second)).toBe(true)
  expect(await forget(direct)).toEqual({ ok: true })
})

test('another user’s session cannot be revoked, and its computer stays known', async () => {
  const auth = await makeRemembering()
  const [computer, signer] = [await makeComputer(), new Signer()]
  const { answer } = await signInFrom(auth, computer, signer, true)
  await call(auth, '/revoke-session', { token: tokenOf(answer) }, bearerOf(await signIn(auth)))
  expect(await isKnown(auth, computer, signer)).toBe(true)
  for (const path of ['/revoke-session', '/revoke-sessions', '/revoke-other-sessions']) {
    expect((await call(auth, path, { token: tokenOf(answer) })).status).toBe(401)
  }
  expect(await isKnown(auth, computer, signer)).toBe(true)
})

test('a bearer token without a signature revokes the computer’s session where Better Auth takes one, and only there', async () => {
  for (const [requireSignature, known] of [
    [false, false],
    [true, true],
  ] as const) {
    const auth = await makeRemembering({ bearer: false, auth: { plugins: [bearer({ requireSignature })] } })
    const [computer, signer] = [await makeComputer(), new Signer()]
    const { answer } = await signInFrom(auth, computer, signer, true)
    const direct = await signIn(auth, signer)
    const authorization = `Bearer ${tokenOf(direct)}`
    const { status } = await call(auth, '/revoke-session', { token: tokenOf(answer) }, { authorization })
    expect(status).toBe(known ? 401 : 200)
    expect(await isKnown(auth, computer, signer)).toBe(known)
  }
})

test('if the store fails, no session is revoked, and the next try does both', async () => {
  const opened = await memoryStore()
  let away = false
  const store = new Proxy(opened, {
    get(target, name) {
      if (away) throw new CountersignError('STORE_UNAVAILABLE', 'The store is away', { retryAfterMs: 1000 })
      const member = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const auth = await makeRemembering({ orders: { store } })
  const [computer, signer] = [await makeComputer(), new Signer()]
  const { answer } = await signInFrom(auth, computer, signer, true)
  const direct = await signIn(auth, signer)
  const revoke = () => call(auth, '/revoke-session', { token: tokenOf(answer) }, bearerOf(direct))
  away = true
  const failed = await revoke()
  expect([failed.status, failed.json.code]).toEqual([503, 'STORE_UNAVAILABLE'])
  expect(await auth.api.getSession({ headers: new Headers(bearerOf(answer)) })).not.toBeNull()
  away = false
  expect((await revoke()).status).toBe(200)
  expect(await auth.api.getSession({ headers: new Headers(bearerOf(answer)) })).toBeNull()
  expect(await isKnown(auth, computer, signer)).toBe(false)
})

test('with resolveLogin, the computers are those of the wallet that signed in', async () => {
  const users = new Map<string, string>()
  const resolveLogin = async ({ publicKeyHex }: { publicKeyHex: string }) => {
    const id = users.get(publicKeyHex)
    return id === undefined ? null : { id }
  }
  const auth = await makeRemembering({
    wallet: { resolveLogin },
    orders: { resolveLogin },
    auth: { emailAndPassword: { enabled: true } },
  })
  const { user } = await auth.api.signUpEmail({
    body: { name: 'Ada', email: 'ada@example.com', password: 'a'.repeat(20) },
  })
  const [computer, signer, second] = [await makeComputer(), new Signer(), new Signer()]
  for (const { publicKeyHex } of [signer, second]) users.set(publicKeyHex, user.id)
  const { answer } = await signInFrom(auth, computer, signer, true)
  const other = await signIn(auth, second)
  expect(await listed(auth, bearerOf(answer))).toHaveLength(1)
  expect(await listed(auth, bearerOf(other))).toEqual([])
  await answered(call(auth, '/revoke-other-sessions', {}, bearerOf(other)))
  expect(await isKnown(auth, computer, signer)).toBe(false)
})

test('a password that is changed with the other sessions revoked leaves no other computer known', async () => {
  const emailAndPassword = { enabled: true }
  const auth = await makeRemembering({ auth: { emailAndPassword } })
  const password = 'a'.repeat(20)
  const signedUp = await call(auth, '/sign-up/email', { name: 'Ada', email: 'ada@example.com', password })
  const headers = { authorization: `Bearer ${signedUp.headers.get('set-auth-token')}` }
  const [computer, signer] = [await makeComputer(), new Signer()]
  await answered(call(auth, '/wallet/link', await linkProofOf(auth, signer, headers), headers))
  await signInFrom(auth, computer, signer, true)
  const change = { currentPassword: password, newPassword: 'b'.repeat(20) }
  await answered(call(auth, '/change-password', change, headers))
  expect(await isKnown(auth, computer, signer)).toBe(true)
  const again = { currentPassword: 'b'.repeat(20), newPassword: password, revokeOtherSessions: true }
  await answered(call(auth, '/change-password', again, headers))
  expect(await isKnown(auth, computer, signer)).toBe(false)
})

test('without a store, no computer is known, and the calls say so', async () => {
  const auth = await makeAuth({ orders: { confirmationCode: 'return' } })
  const [computer, signer] = [await makeComputer(), new Signer()]
  const { challenge } = await readOrder(auth, { computerKey: computer.key })
  expect(challenge.canRememberComputer).toBe(false)
  const headers = bearerOf(await signIn(auth, signer))
  for (const answer of [
    await call(auth, '/computers', undefined, headers),
    await call(auth, '/computers/forget', { id: 'x' }, headers),
  ]) {
    expect([answer.status, answer.json.code]).toEqual([404, 'NOT_ENABLED'])
  }
})

test('knownComputers off: none is remembered', async () => {
  const auth = await makeRemembering({ orders: { knownComputers: false } })
  const { challenge } = await readOrder(auth, { computerKey: (await makeComputer()).key })
  expect(challenge.canRememberComputer).toBe(false)
})

test('the calls for computers need a session, and a cookie from a trusted origin', async () => {
  const auth = await makeRemembering()
  expect((await call(auth, '/computers')).json.code).toBe('SESSION_REQUIRED')
  const cookie = { cookie: cookieOf(await signIn(auth)), origin: 'https://evil.example' }
  expect((await call(auth, '/computers', undefined, cookie)).json.code).toBe('ORIGIN_NOT_TRUSTED')
  expect((await call(auth, '/computers/forget', { id: 'x' }, cookie)).status).toBe(403)
})

test('the keys of known computers in the store begin with the key prefix', async () => {
  const store = await memoryStore()
  const auth = await makeAuth({ orders: { confirmationCode: 'return', store, keyPrefix: 'app' } })
  const [computer, signer] = [await makeComputer(), new Signer()]
  await signInFrom(auth, computer, signer, true)
  const key = createHash('sha256').update(`known computers\ned25519\n${signer.publicKeyHex}`).digest('base64url')
  expect(await store.get(`app:computers:${key}`)).toBeDefined()
  expect(await store.get(`computers:${key}`)).toBeUndefined()
})
