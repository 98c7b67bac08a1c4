import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'
import { readPeopleFile } from '../../src/core/users/people.ts'
import type { SearchableStore } from '../../src/core/users/user-administration.ts'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { administrationOn } from '../core/users/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

const [ada, bob, cleo, stranger] = [makeWallet(), makeWallet(), makeWallet(), makeWallet()]
const key = ({ address }: TestWallet) => `nimiq:${address}`
const three = { [key(ada)]: { groups: ['staff'] }, [key(bob)]: {}, [key(cleo)]: { name: 'Cleo' } }

/** A people file that can be replaced. */
function peopleFile(content: object | string) {
  const folder = temporaryFolder()
  const people = join(folder, 'people.json')
  const write = (next: object | string) => writeFileSync(people, typeof next === 'string' ? next : JSON.stringify(next))
  write(content)
  return { people, write }
}

/** A service for the people of a file only. */
async function start(content: object | string = three, options: CountersignOptions = {}) {
  const { people, write } = peopleFile(content)
  const started = await startService({ people, admit: 'people', ...options })
  const list = async (next: object | string) => {
    write(next)
    return await started.service.reload()
  }
  return { ...started, list }
}

async function verify(url: string, wallet: TestWallet) {
  const { json } = await rest(url, '/wallet/nonce', {})
  return await rest(url, '/wallet/verify', proofOf(wallet, json))
}

async function signIn(url: string, wallet: TestWallet) {
  const { status, json, headers } = await verify(url, wallet)
  expect([status, json.code]).toEqual([200, undefined])
  const [cookie = ''] = (headers.getSetCookie()[0] ?? '').split(';')
  return { token: json.token as string, cookie, session: json.session, ...bearer(json.token) }
}

/** An order that a phone has claimed and read, and the proof of a wallet over its challenge. */
async function claimed(url: string, wallet: TestWallet, kind = 'login', own: Record<string, string> = {}) {
  const { json: order } = await rest(url, '/cross-device/start', { kind }, own)
  const claimToken = new URLSearchParams(new URL(order.claimUrl).hash.slice(1)).get('token')
  const { orderId, desktopToken } = order
  const claim = await rest(url, '/cross-device/claim', { orderId, claimToken })
  const { challengeToken } = claim.json
  const read = await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
  const { nonceId: _, ...proof } = proofOf(wallet, { nonceId: '', message: read.json.message })
  return {
    statuses: [claim.status, read.status],
    approve: () => rest(url, '/cross-device/approve', { orderId, challengeToken, proof }),
    finalize: (returnCode?: string) => rest(url, '/cross-device/finalize', { orderId, desktopToken, returnCode }, own),
    status: async () =>
      (await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))).json.status,
  }
}

const notListed = ({ address }: TestWallet) => ({
  status: 403,
  json: {
    code: 'LOGIN_REFUSED',
    message: 'This wallet is not on the list of people who may sign in; ask the operator to add it',
    metadata: { adapterId: 'nimiq', address },
  },
})

describe('a fourth wallet', () => {
  test('is refused at a sign-in, and nothing is stored of it', async () => {
    const store = await memoryStore()
    const { url } = await start(three, { store, secret: 'a secret of this test alone, long enough' })
    const create = vi.spyOn(store, 'create')
    expect(await verify(url, stranger)).toMatchObject(notListed(stranger))
    expect(create.mock.calls.filter(([name]) => !name.startsWith('nonce'))).toEqual([])
    expect((await verify(url, ada)).status).toBe(200)
  })

  test('claims an order and reads it, and cannot approve a sign-in; it signs what is asked of any wallet', async () => {
    const { url } = await start()
    const login = await claimed(url, stranger)
    expect(login.statuses).toEqual([200, 200])
    expect(await login.approve()).toMatchObject(notListed(stranger))
    expect(await login.status()).toBe('waiting_user')
    const sign = await claimed(url, stranger, 'sign')
    expect((await sign.approve()).status).toBe(200)
    expect((await sign.finalize()).json.proofArtifact.address).toBe(stranger.address)
  })

  test('is added to a listed user by an order, and signs in if the file lists the user', async () => {
    const { url, list } = await start()
    const { authorization, session } = await signIn(url, ada)
    const own = { authorization }
    const order = await claimed(url, stranger, 'link', own)
    await list({ [key(bob)]: {} })
    expect(await order.approve()).toMatchObject({ status: 401, json: { code: 'SESSION_INVALID' } })
    await list(three)
    const { returnCode } = (await order.approve()).json
    await list({ [key(bob)]: {} })
    expect(await order.finalize(returnCode)).toMatchObject({ status: 401, json: { code: 'SESSION_INVALID' } })
    expect(await verify(url, stranger)).toMatchObject(notListed(stranger))
    await list(three)
    expect((await order.finalize(returnCode)).json.wallet.address).toBe(stranger.address)
    expect((await signIn(url, stranger)).session.userId).toBe(session.userId)
    await list({ [key(bob)]: {} })
    expect(await verify(url, stranger)).toMatchObject(notListed(stranger))
    await list({ [session.userId]: {} })
    expect((await signIn(url, stranger)).session.userId).toBe(session.userId)
  })

  test('that leaves the file before the order is finalized gets no session, and gets it once it is back', async () => {
    const { url, list } = await start()
    const order = await claimed(url, bob)
    expect((await order.approve()).status).toBe(200)
    await list({ [key(ada)]: {} })
    expect(await order.finalize()).toMatchObject(notListed(bob))
    await list(three)
    const { token } = (await order.finalize()).json
    await list({ [key(ada)]: {} })
    expect(await order.finalize()).toMatchObject(notListed(bob))
    await list(three)
    expect((await order.finalize()).json.token).toBe(token)
  })

  test('is refused although resolveLogin admits it, and one that resolveLogin refuses although it is listed', async () => {
    const { url } = await start(
      { ...three, eve: {} },
      {
        resolveLogin: ({ address }) => (address === bob.address ? null : { id: address === ada.address ? 'eve' : 'x' }),
      },
    )
    expect(await verify(url, stranger)).toMatchObject(notListed(stranger))
    expect(await (await claimed(url, stranger)).approve()).toMatchObject(notListed(stranger))
    expect((await verify(url, bob)).json.metadata).toBeUndefined()
    expect((await verify(url, bob)).json.code).toBe('LOGIN_REFUSED')
    expect((await signIn(url, ada)).session.userId).toBe('eve')
    expect((await signIn(url, cleo)).session.userId).toBe('x')
  })

  test('that resolveLogin admits leaves an order approved when it has left the file before the end', async () => {
    const { url, list } = await start(three, { resolveLogin: () => ({ id: 'user-1' }) })
    const order = await claimed(url, bob)
    await order.approve()
    await list({ [key(ada)]: {} })
    expect(await order.finalize()).toMatchObject(notListed(bob))
    expect(await order.status()).toBe('approved')
  })

  test('is answered as one that has been a user before, and is blocked no differently', async () => {
    const { url, list } = await start()
    await signIn(url, cleo)
    await list({ [key(ada)]: {} })
    const [known, unknown] = [await verify(url, cleo), await verify(url, stranger)]
    expect([known.status, { ...known.json, metadata: {} }]).toEqual([unknown.status, { ...unknown.json, metadata: {} }])
  })
})

describe('a session whose user has left the file', () => {
  test('is signed out at every check, counts as no wrong token, and is valid again once the user is back', async () => {
    const { url, service, list } = await start(three, {
      trustProxy: true,
      accessTokens: { audiences: ['https://api.example'] },
      rateLimit: true,
      limits: { rates: { 'wrong-token': 1 } },
    })
    const { token, cookie, session } = await signIn(url, bob)
    const verifier = createSessionVerifier({ countersign: service, cacheSeconds: 0 })
    const caching = createSessionVerifier({ url, cacheSeconds: 60 })
    expect((await caching.verify(token))?.userId).toBe(session.userId)
    const proxied = { cookie, 'x-forwarded-method': 'GET' }
    const checks = async () => ({
      cookie: (await rest(url, '/session', undefined, { cookie })).json.code,
      bearer: (await rest(url, '/session', undefined, bearer(token))).json.code,
      allowed: (await rest(url, '/session?allowSignedOut=true', undefined, bearer(token))).json.session?.id,
      list: (await rest(url, '/sessions', undefined, bearer(token))).json.code,
      forwardAuth: (await rest(url, '/forward-auth', undefined, proxied)).status,
      accessToken: (await rest(url, '/access-token', { audience: 'https://api.example' }, bearer(token))).json.code,
      verifier: (await verifier.verify(token))?.id,
    })
    await list({ [key(ada)]: {} })
    for (let asked = 0; asked < 3; asked++) {
      expect(await checks()).toEqual({
        cookie: 'SESSION_INVALID',
        bearer: 'SESSION_INVALID',
        allowed: undefined,
        list: 'SESSION_INVALID',
        forwardAuth: 401,
        accessToken: 'SESSION_INVALID',
        verifier: undefined,
      })
    }
    // For as long as it may, by its own option.
    expect((await caching.verify(token))?.userId).toBe(session.userId)
    await list(three)
    expect(await checks()).toMatchObject({
      cookie: undefined,
      bearer: undefined,
      forwardAuth: 200,
      verifier: session.id,
    })
  })

  test('is not extended while it does not count, and ends by a sign-out', async () => {
    const { url, list } = await start(three, { sessionTtlSeconds: 1000 })
    const { session, token } = await signIn(url, bob)
    vi.useFakeTimers({ toFake: ['Date'], now: session.createdAt + 500_000 })
    onTestFinished(() => void vi.useRealTimers())
    await list({ [key(ada)]: {} })
    expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(401)
    const later = await signIn(url, ada)
    await list(three)
    vi.setSystemTime(session.createdAt + 1_000_001)
    expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(401)
    await list({ [key(bob)]: {} })
    expect((await rest(url, '/sign-out', {}, bearer(later.token))).status).toBe(200)
    await list(three)
    expect((await rest(url, '/session', undefined, bearer(later.token))).status).toBe(401)
  })

  test('from before there was a list counts if its user is listed', async () => {
    const store = await memoryStore()
    const secret = 'a secret of this test alone, long enough'
    const { url: open } = await startService({ store, secret })
    const [old, other] = [await signIn(open, ada), await signIn(open, stranger)]
    const { url } = await start(three, { store, secret })
    expect((await rest(url, '/session', undefined, bearer(old.token))).status).toBe(200)
    expect((await rest(url, '/session', undefined, bearer(other.token))).status).toBe(401)
  })

  test('is judged by each of two instances by the file that this one has read', async () => {
    const store = await memoryStore()
    const shared = { store, secret: 'a secret of this test alone, long enough' }
    const [one, two] = [await start(three, shared), await start(three, shared)]
    const { token } = await signIn(one.url, bob)
    await one.list({ [key(ada)]: {} })
    const statuses = async () =>
      Promise.all([one, two].map(async ({ url }) => (await rest(url, '/session', undefined, bearer(token))).status))
    expect(await statuses()).toEqual([401, 200])
    expect([(await verify(one.url, bob)).status, (await verify(two.url, bob)).status]).toEqual([403, 200])
    await two.list({ [key(ada)]: {} })
    expect(await statuses()).toEqual([401, 401])
  })
})

describe('who is listed', () => {
  const fresh = async (url: string, wallet: TestWallet) => {
    const { authorization, session } = await signIn(url, wallet)
    return { userId: session.userId, headers: { authorization } }
  }
  const link = async (url: string, headers: Record<string, string>, wallet: TestWallet) => {
    const { json } = await rest(url, '/wallet/nonce', { purpose: 'link' }, headers)
    const { nonceId, ...proof } = proofOf(wallet, json)
    return await rest(url, '/wallet/link', { nonceId, proof }, headers)
  }

  test('by the user id signs in with every wallet of the user, until it is unlinked', async () => {
    const { url, list } = await start()
    const { userId, headers } = await fresh(url, ada)
    const second = makeWallet()
    expect((await link(url, headers, second)).status).toBe(200)
    await list({ [key(bob)]: {} })
    expect((await verify(url, second)).status).toBe(403)
    await list({ [userId]: {} })
    expect((await signIn(url, second)).session.userId).toBe(userId)
    expect((await signIn(url, ada)).session.userId).toBe(userId)
    const unlink = { adapterId: 'nimiq', address: second.address }
    expect((await rest(url, '/wallet/unlink', unlink, headers)).status).toBe(200)
    expect(await verify(url, second)).toMatchObject(notListed(second))
  })

  test('by the wallet that the user’s id follows from counts for each wallet of the user, wherever it signs in', async () => {
    const { url, list } = await start()
    const { userId, headers } = await fresh(url, ada)
    const second = makeWallet()
    expect((await link(url, headers, second)).status).toBe(200)
    const direct = await signIn(url, second)
    expect(direct.session.userId).toBe(userId)
    expect((await rest(url, '/session', undefined, direct)).json.groups).toEqual(['staff'])
    const order = await claimed(url, second)
    expect((await order.approve()).status).toBe(200)
    const { token } = (await order.finalize()).json
    expect((await rest(url, '/session', undefined, bearer(token))).json.groups).toEqual(['staff'])
    // Also once the first wallet is lost and unlinked.
    const unlink = { adapterId: 'nimiq', address: ada.address }
    const { headers: others } = await fresh(url, second)
    expect((await rest(url, '/wallet/unlink', unlink, others)).status).toBe(200)
    expect((await signIn(url, second)).session.userId).toBe(userId)
    // The entry by user id comes first.
    await list({ ...three, [userId]: { groups: ['owners'] }, [key(second)]: { groups: ['guests'] } })
    expect((await rest(url, '/session', undefined, direct)).json.groups).toEqual(['owners'])
    await list({ [key(bob)]: {} })
    expect((await rest(url, '/session', undefined, direct)).json.code).toBe('SESSION_INVALID')
    expect(await verify(url, second)).toMatchObject(notListed(second))
    expect(await (await claimed(url, second)).approve()).toMatchObject(notListed(second))
  })

  test('by the first wallet adds a wallet of another device from a session of a linked one', async () => {
    const { url } = await start()
    const { userId, headers } = await fresh(url, ada)
    const [second, third] = [makeWallet(), makeWallet()]
    expect((await link(url, headers, second)).status).toBe(200)
    const { headers: own } = await fresh(url, second)
    const order = await claimed(url, third, 'link', own)
    const { returnCode } = (await order.approve()).json
    expect((await order.finalize(returnCode)).json.wallet?.address).toBe(third.address)
    expect((await signIn(url, third)).session.userId).toBe(userId)
  })

  test('by the first wallet of a user is known from a record that names its wallets only', async () => {
    const store = await memoryStore()
    const { url } = await start(three, { store, secret: 'a secret of this test alone, long enough' })
    const { userId, headers } = await fresh(url, ada)
    const [second, third] = [makeWallet(), makeWallet()]
    for (const wallet of [second, third]) expect((await link(url, headers, wallet)).status).toBe(200)
    const stored = (await store.get(`user:${userId}`))!
    const { firstWallet: _, ...record } = JSON.parse(stored.value)
    await store.compareAndSet(`user:${userId}`, stored.version, JSON.stringify(record), 'forever')
    const { headers: own } = await fresh(url, second)
    expect((await rest(url, '/session', undefined, own)).json.groups).toEqual(['staff'])
    // Also once it is unlinked.
    expect((await rest(url, '/wallet/unlink', { adapterId: 'nimiq', address: ada.address }, own)).status).toBe(200)
    expect((await signIn(url, third)).session.userId).toBe(userId)
  })

  test('by a first wallet that an operator moves away admits sessions until they end, and no sign-in', async () => {
    const store = await memoryStore()
    const { url } = await start(three, { store, secret: 'a secret of this test alone, long enough' })
    const { headers } = await fresh(url, ada)
    const second = makeWallet()
    expect((await link(url, headers, second)).status).toBe(200)
    const { headers: own, userId } = await fresh(url, second)
    const other = await fresh(url, bob)
    const administration = administrationOn(store as SearchableStore)
    const subject = ada.publicKeyHex
    await administration.move(
      { adapterId: 'nimiq', subject, publicKeyHex: subject, address: ada.address },
      other.userId,
    )
    expect((await rest(url, '/session', undefined, headers)).json.code).toBe('SESSION_INVALID')
    expect((await rest(url, '/session', undefined, own)).json.groups).toEqual(['staff'])
    expect(await verify(url, second)).toMatchObject(notListed(second))
    await administration.endSessions(userId)
    expect((await rest(url, '/session', undefined, own)).json.code).toBe('SESSION_INVALID')
  })

  test('by a wallet that is linked to a user does not bring the entry along', async () => {
    const second = makeWallet()
    const { url, list } = await start({ ...three, [key(second)]: { groups: ['admins'] } })
    const { userId, headers } = await fresh(url, ada)
    await link(url, headers, second)
    await list({ [key(second)]: { groups: ['admins'] } })
    // The user's other wallet is not listed any more.
    expect((await rest(url, '/session', undefined, headers)).status).toBe(401)
    expect(await verify(url, ada)).toMatchObject(notListed(ada))
    expect((await signIn(url, second)).session.userId).toBe(userId)
  })

  test('by the user id that a wallet would have does not get in by that id once it is another user’s', async () => {
    const { url, list } = await start({ ...three, [key(stranger)]: {} })
    const derived = (await signIn(url, stranger)).session.userId
    const { url: other, list: listThere } = await start()
    const { headers } = await fresh(other, ada)
    expect((await link(other, headers, stranger)).status).toBe(200)
    await listThere({ [derived]: {}, [key(bob)]: {} })
    expect(await verify(other, stranger)).toMatchObject(notListed(stranger))
    await list({ [derived]: {} })
    expect((await signIn(url, stranger)).session.userId).toBe(derived)
  })

  test('by the user id that an unlinked wallet once made does not get in by that id', async () => {
    const { url, list } = await start()
    const { userId, headers } = await fresh(url, ada)
    const second = makeWallet()
    await link(url, headers, second)
    await list({ [userId]: {} })
    const { headers: others } = await fresh(url, second)
    const unlink = { adapterId: 'nimiq', address: ada.address }
    expect((await rest(url, '/wallet/unlink', unlink, others)).status).toBe(200)
    expect(await verify(url, ada)).toMatchObject(notListed(ada))
    expect((await verify(url, second)).status).toBe(200)
  })

  test('by a user id of resolveLogin that looks like a wallet is not listed by the wallet', async () => {
    const { url } = await start(three, { resolveLogin: () => ({ id: key(ada) }) })
    expect(await verify(url, stranger)).toMatchObject(notListed(stranger))
    expect((await signIn(url, ada)).session.userId).toBe(key(ada))
  })

  test('by an address in any spelling that its adapter reads', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const adapters = ['nimiq', 'ed25519', 'ethereum']
    const spelt = ada.address.replaceAll(' ', '').toLowerCase()
    const { url } = await start(
      { [`nimiq: ${spelt}`]: {}, [`ethereum:${account.address.toLowerCase()}`]: {} },
      { adapters },
    )
    expect((await signIn(url, ada)).session.address).toBe(ada.address)
    // The same address of another adapter is another wallet.
    const { json } = await rest(url, '/wallet/nonce', {})
    const proof = { ...proofOf(bob, json), adapterId: 'ed25519' }
    expect((await rest(url, '/wallet/verify', proof)).status).toBe(401)
    const named = { adapterId: 'ethereum', address: account.address, chainId: '1' }
    const { json: nonce } = await rest(url, '/wallet/nonce', named)
    const signatureHex = (await account.signMessage({ message: nonce.message })).slice(2)
    const answer = await rest(url, '/wallet/verify', {
      ...named,
      nonceId: nonce.nonceId,
      publicKeyHex: '',
      signatureHex,
    })
    expect(answer.json.session.address).toBe(account.address)
  })

  test('can be 50,000 people', async () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`user-${i}`, { groups: ['staff'] }]))
    const { url } = await start({ ...many, ...three }, { resolveLogin: () => ({ id: 'user-49999' }) })
    expect((await signIn(url, stranger)).session.userId).toBe('user-49999')
  })
})

describe('a people file', () => {
  const contract = `0x${'ab'.repeat(20)}`

  test.each<[string, string | object, RegExp]>([
    ['that is no JSON', '{', /is not JSON$/],
    ['that is a list', '[]', /must be \{/],
    ['that is empty', {}, /lists no one, and admit \(COUNTERSIGN_ADMIT\) is people/],
    ['with a person of no claims', { x: 1 }, /"x": must be an object of claims$/],
    ['with a claim of the protocol', { x: { sub: 'y' } }, /"x": "sub" is reserved$/],
    ['with a name twice', '{"x": {}, "y": {"x": 1}, "\\u0078": {}}', /"x" is there twice$/],
    ['with an address twice', { [key(ada)]: {}, [`nimiq:${ada.address.replaceAll(' ', '')}`]: {} }, /is there twice$/],
    [
      'with an address without its adapter',
      { [ada.address.replaceAll(' ', '')]: {} },
      /is an address, and would be a user id: write "nimiq:" before it$/,
    ],
    ['with an address that is none', { 'nimiq:NQ07': {} }, /"nimiq:NQ07": this is no address of nimiq$/],
    [
      'with a wallet of an adapter that is off',
      { [`ethereum:${contract}`]: {} },
      /the adapter ethereum is not configured$/,
    ],
    ['with groups that are no list', { x: { groups: 'staff' } }, /groups must be a list of at most 32 names/],
    ['with a group of odd characters', { x: { groups: ['staff, admins'] } }, /groups must be a list/],
    ['with an empty group', { x: { groups: [''] } }, /groups must be a list/],
    ['with a long group', { x: { groups: ['x'.repeat(65)] } }, /groups must be a list/],
    ['with 33 groups', { x: { groups: Array(33).fill('x') } }, /groups must be a list/],
    ['with a long user id', { ['x'.repeat(201)]: {} }, /a user id has 1 to 200 characters$/],
  ])('%s stops the start, and changes nothing on a reload', async (_what, content, problem) => {
    const { people } = peopleFile(content)
    const refusal = /^people \(COUNTERSIGN_PEOPLE\), the file [^\n]+$/
    await expect(startService({ people, admit: 'people' })).rejects.toThrow(refusal)
    await expect(startService({ people, admit: 'people' })).rejects.toThrow(problem)
    const { url, list } = await start()
    const { token } = await signIn(url, bob)
    await expect(list(content)).rejects.toThrow(problem)
    expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(200)
    expect((await verify(url, stranger)).status).toBe(403)
  })

  test('that is missing stops the start, as does admit without one, and both with a host of the application', async () => {
    await expect(startService({ people: '/nowhere/people.json' })).rejects.toThrow(/cannot be read: ENOENT$/)
    await expect(startService({ admit: 'people' })).rejects.toThrow(/^admit \(COUNTERSIGN_ADMIT\)[^\n]+$/)
    const { people } = peopleFile(three)
    const sessionHost = new Proxy({}, { get: () => () => {} }) as never
    await expect(startService({ people, sessionHost })).rejects.toThrow(
      /^people \(COUNTERSIGN_PEOPLE\)[^\n]+sessionHost/,
    )
    await expect(startService({ people, admit: 'people', sessionHost })).rejects.toThrow(/sessionHost/)
    for (const plugin of [walletSignIn, crossDevice]) {
      expect(() => plugin({ people, admit: 'people' } as never)).toThrow(/^people and admit do nothing in Better Auth/)
    }
  })

  test('without admit lets every wallet in, and may be empty', async () => {
    const { people } = peopleFile({})
    const { url } = await startService({ people })
    expect((await verify(url, stranger)).status).toBe(200)
  })

  test('is checked in slices of time, between which other work has its turn', async () => {
    const { people } = peopleFile(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`user-${i}`, {}])))
    // Each look at the clock is a millisecond later: a person whose names take that long is as slow as thousands.
    let now = performance.now()
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now++)
    let turns = 0
    let reading = true
    const count = (): void => {
      turns++
      if (reading) setImmediate(count)
    }
    setImmediate(count)
    await readPeopleFile(people, { adapters: [], isRequired: true })
    reading = false
    clock.mockRestore()
    // At most 20 ms each, for the names and for the entries.
    expect(turns).toBeGreaterThan(2 * (1000 / 20))
  })

  test('is read again on a reload, which says whether it changed', async () => {
    const { list } = await start()
    expect(await list(three)).toEqual([])
    expect(await list({ [key(ada)]: { groups: ['staff'] } })).toEqual(['people'])
  })
})
