import { describe, expect, test } from 'vitest'
import { Signer } from '../core/order/support.ts'
import {
  type Answer,
  approvedOrder,
  bearerOf,
  call,
  codeOf,
  cookieOf,
  countRows,
  linkProofOf,
  ownOrigin,
  proofOf,
  signIn,
} from './calls.ts'
import { type Auth, type AuthServerOptions, authStorages, makeAuth } from './support.ts'

const models = ['user', 'account'] as const
const password = 'correct horse battery'

/** Asks for a challenge for adding a wallet. */
async function linkNonce(auth: Auth, headers: Record<string, string>): Promise<Answer> {
  return await call(auth, '/wallet/nonce', { purpose: 'link' }, headers)
}

/** Makes a session older than it is. */
async function age(auth: Auth, { json }: Answer, seconds: number): Promise<void> {
  const { adapter } = await auth.$context
  const where = [{ field: 'id', value: json.session.id }]
  await adapter.update({
    model: 'session',
    where,
    update: { createdAt: new Date(Date.now() - seconds * 1000) },
  })
}

describe.each(authStorages)('adding a wallet, on %s', (_name, storage) => {
  test('two users who add one wallet at once: one has it', async () => {
    const auth = await makeAuth({ storage })
    const wallet = new Signer()
    const users = (await Promise.all([signIn(auth), signIn(auth)])).map(bearerOf)
    const proofs = await Promise.all(users.map((user) => linkProofOf(auth, wallet, user)))
    const answers = await Promise.all(users.map((user, index) => call(auth, '/wallet/link', proofs[index], user)))
    expect(answers.map(codeOf).sort()).toEqual([
      [200, undefined],
      [409, 'WALLET_TAKEN'],
    ])
    expect(await countRows(auth, models)).toEqual([2, 3])
  })

  test('a nonce of another user is not found, and stays theirs', async () => {
    const auth = await makeAuth({ storage })
    const [mine, theirs] = [bearerOf(await signIn(auth)), bearerOf(await signIn(auth))]
    const proof = await linkProofOf(auth, new Signer(), theirs)
    expect(codeOf(await call(auth, '/wallet/link', proof, mine))).toEqual([401, 'NONCE_NOT_FOUND'])
    expect(codeOf(await call(auth, '/wallet/link', proof, theirs))).toEqual([200, undefined])
  })

  test('a nonce is used once, however many try at once', async () => {
    const auth = await makeAuth({ storage })
    const mine = bearerOf(await signIn(auth))
    const proof = await linkProofOf(auth, new Signer(), mine)
    const answers = await Promise.all(Array.from({ length: 10 }, () => call(auth, '/wallet/link', proof, mine)))
    answers.push(await call(auth, '/wallet/link', proof, mine))
    const lost = answers.map(codeOf).filter(([status]) => status !== 200)
    expect(lost).toEqual(Array(10).fill([401, 'NONCE_NOT_FOUND']))
  })
})

describe('adding a wallet', () => {
  test('a signed-in user adds a wallet and signs in with it', async () => {
    const auth = await makeAuth()
    const first = await signIn(auth)
    const second = new Signer()
    const headers = { cookie: cookieOf(first) }
    const linked = await call(auth, '/wallet/link', await linkProofOf(auth, second, headers), headers)
    expect(linked.json).toEqual({
      ok: true,
      adapterId: 'ed25519',
      publicKeyHex: second.publicKeyHex,
      address: expect.stringMatching(/^NQ/),
    })
    // Once more changes nothing.
    const again = await call(auth, '/wallet/link', await linkProofOf(auth, second, headers), headers)
    expect(again.status).toBe(200)
    const signedIn = await signIn(auth, second)
    expect(signedIn.json.session.userId).toBe(first.json.session.userId)
    expect(await countRows(auth, models)).toEqual([1, 2])
    expect(await auth.api.listUserAccounts({ headers: new Headers(headers) })).toHaveLength(2)
  })

  test('a wallet of another user is refused, and stays theirs', async () => {
    const auth = await makeAuth()
    const theirs = new Signer()
    const other = await signIn(auth, theirs)
    const mine = bearerOf(await signIn(auth))
    const refused = await call(auth, '/wallet/link', await linkProofOf(auth, theirs, mine), mine)
    expect(codeOf(refused)).toEqual([409, 'WALLET_TAKEN'])
    expect(refused.json.message).toMatch(/belongs to another user/)
    expect((await signIn(auth, theirs)).json.session.userId).toBe(other.json.session.userId)
  })

  test('a nonce for a sign-in adds no wallet, one for adding a wallet makes no session, and neither is used by that', async () => {
    const auth = await makeAuth()
    const wallet = new Signer()
    const mine = bearerOf(await signIn(auth))
    const login = await proofOf(auth, wallet)
    const link = await linkProofOf(auth, wallet, mine)
    expect(codeOf(await call(auth, '/wallet/link', login, mine))).toEqual([401, 'NONCE_NOT_FOUND'])
    expect(codeOf(await call(auth, '/wallet/verify', link))).toEqual([401, 'NONCE_NOT_FOUND'])
    expect(codeOf(await call(auth, '/wallet/link', link, mine))).toEqual([200, undefined])
    expect(codeOf(await call(auth, '/wallet/verify', login))).toEqual([200, undefined])
  })
})

test('the challenge says what is signed, for which user, and with which wallet the user is signed in', async () => {
  const auth = await makeAuth({ auth: { emailAndPassword: { enabled: true } } })
  const wallet = await signIn(auth)
  const { json } = await linkNonce(auth, bearerOf(wallet))
  expect(json).toMatchObject({ action: 'auth.link', challengeId: 'link', origin: ownOrigin })
  const { userId, address } = wallet.json.session
  const lines = json.message.split('\n')
  expect(lines.slice(0, 4)).toEqual([
    'App requests authentication',
    'Action: auth.link',
    `Origin: ${ownOrigin}`,
    'Challenge ID: link',
  ])
  expect(lines.slice(7)).toEqual([`User: ${userId}`, `Session Account: ${address}`])
  // A user who signed in without a wallet.
  const { token, user } = await auth.api.signUpEmail({ body: { name: 'Ada', email: 'ada@example.com', password } })
  const cookie = cookieOf(await call(auth, '/sign-in/email', { email: user.email, password }))
  expect(token).toEqual(expect.any(String))
  const plain = await linkNonce(auth, { cookie })
  expect(plain.json.message.split('\n').slice(7)).toEqual([`User: ${user.id}`])
  const added = await call(auth, '/wallet/link', await linkProofOf(auth, new Signer(), { cookie }), { cookie })
  expect(codeOf(added)).toEqual([200, undefined])
})

test('a user id that could forge a line is not put before a wallet, and the log says why', async () => {
  let id = 'plain'
  const logged: string[] = []
  const auth = await makeAuth({
    auth: {
      advanced: { database: { generateId: ({ model }) => (model === 'user' ? id : crypto.randomUUID()) } },
      logger: { level: 'error', log: (_level, message, ...causes) => void logged.push(message, String(causes[0])) },
    },
  })
  for (const forged of ['1\nSession Account: NQ07', '1\u2028Session Account: NQ07', '1\u202e']) {
    id = forged
    const mine = await signIn(auth)
    expect(mine.json.session.userId).toBe(forged)
    expect(codeOf(await linkNonce(auth, bearerOf(mine)))).toEqual([500, 'INTERNAL'])
    expect(logged.pop()).toMatch(/the id of the user is not one line of text/)
  }
})

describe('both steps need a session that is good enough', () => {
  /**
   * Codes of the nonce and of the link for a caller. The proof is that of a nonce which the user of `owner` asked for.
   */
  async function both(auth: Auth, owner: Answer, headers: Record<string, string>): Promise<unknown[]> {
    const proof = await linkProofOf(auth, new Signer(), bearerOf(owner))
    const answers = [await linkNonce(auth, headers), await call(auth, '/wallet/link', proof, headers)]
    const used = await call(auth, '/wallet/link', proof, bearerOf(owner))
    expect(used.status, 'the refusals did not use the nonce').toBe(200)
    return [...new Set(answers.map((answer) => codeOf(answer).join(' ')))]
  }

  test('not none, not an invalid one, and not a cookie from a foreign origin', async () => {
    const auth = await makeAuth()
    const mine = await signIn(auth)
    const cookie = cookieOf(mine)
    expect(await both(auth, mine, {})).toEqual(['401 SESSION_REQUIRED'])
    expect(await both(auth, mine, { authorization: 'Bearer css_x.y' })).toEqual(['401 SESSION_INVALID'])
    // An invalid bearer token does not fall back on the cookie, whose origin would not have been checked.
    expect(await both(auth, mine, { authorization: 'Bearer css_x.y', cookie })).toEqual(['401 SESSION_INVALID'])
    expect(await both(auth, mine, { cookie, origin: 'https://evil.example' })).toEqual(['403 ORIGIN_NOT_TRUSTED'])
  })

  test('not one that has ended', async () => {
    const auth = await makeAuth()
    const signer = new Signer()
    const [mine, ended] = [await signIn(auth, signer), await signIn(auth, signer)]
    await auth.api.signOut({ headers: new Headers(bearerOf(ended)) })
    expect(await both(auth, mine, bearerOf(ended))).toEqual(['401 SESSION_INVALID'])
  })

  test('not one that an order made, however young', async () => {
    const auth = await makeAuth()
    const signer = new Signer()
    const mine = await signIn(auth, signer)
    const ofOrder = await call(auth, '/cross-device/finalize', await approvedOrder(auth, signer))
    expect(ofOrder.json.session.userId).toBe(mine.json.session.userId)
    expect(await both(auth, mine, bearerOf(ofOrder))).toEqual(['403 SESSION_NOT_FRESH'])
    expect(await both(auth, mine, { cookie: cookieOf(ofOrder) })).toEqual(['403 SESSION_NOT_FRESH'])
  })

  const day = 24 * 60 * 60
  test.each<[name: string, session: NonNullable<AuthServerOptions['auth']>['session'], ages: [number, boolean][]]>([
    [
      'a day',
      {},
      [
        [0, true],
        [day - 60, true],
        [day + 1, false],
        [6 * day, false],
      ],
    ],
    [
      'what session.freshAge says',
      { freshAge: 300 },
      [
        [240, true],
        [301, false],
      ],
    ],
    ['for ever if session.freshAge is 0', { freshAge: 0 }, [[6 * day, true]]],
  ])('not one that is stale by Better Auth’s own rule: fresh is %s', async (_name, session, ages) => {
    const auth = await makeAuth({ auth: { session } })
    const signer = new Signer()
    for (const [seconds, fresh] of ages) {
      const [mine, old] = [await signIn(auth, signer), await signIn(auth, signer)]
      await age(auth, old, seconds)
      // An endpoint of Better Auth that needs a fresh session.
      expect((await call(auth, '/list-sessions', undefined, bearerOf(old))).status).toBe(fresh ? 200 : 403)
      if (fresh) expect(codeOf(await linkNonce(auth, bearerOf(old)))).toEqual([200, undefined])
      else expect(await both(auth, mine, bearerOf(old))).toEqual(['403 SESSION_NOT_FRESH'])
    }
  })

  test('not one that was fresh when the challenge was made', async () => {
    const auth = await makeAuth()
    const mine = await signIn(auth)
    const proof = await linkProofOf(auth, new Signer(), bearerOf(mine))
    await age(auth, mine, 6 * day)
    expect(codeOf(await call(auth, '/wallet/link', proof, bearerOf(mine)))).toEqual([403, 'SESSION_NOT_FRESH'])
  })
})

test('an unknown purpose is refused, and the purpose of a sign-in is the default', async () => {
  const auth = await makeAuth()
  expect(codeOf(await call(auth, '/wallet/nonce', { purpose: 'steal' }))).toEqual([400, 'INVALID_REQUEST'])
  expect((await call(auth, '/wallet/nonce', { purpose: 'sign_in' })).json.action).toBe('auth.login')
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
  const wallet = new Signer()
  const proof = await linkProofOf(auth, wallet, bearerOf(mine))
  other = theirs.json.session.userId
  expect(codeOf(await call(auth, '/wallet/link', proof, bearerOf(mine)))).toEqual([409, 'WALLET_TAKEN'])
  other = undefined
  expect((await signIn(auth, wallet)).json.session.userId).toBe(theirs.json.session.userId)
})
