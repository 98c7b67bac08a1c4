import * as client from 'openid-client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { noAudit } from '../../src/base/audit.ts'
import type { RequestContext } from '../../src/base/request.ts'
import { hashToken, Keyring } from '../../src/base/token.ts'
import { AdminActions } from '../../src/commands/admin/admin-actions.ts'
import type { Session } from '../../src/core/users/host.ts'
import { OwnSessions } from '../../src/core/users/own-sessions.ts'
import { Sessions } from '../../src/core/users/sessions.ts'
import type { StandaloneHost } from '../../src/core/users/standalone.ts'
import { eraseUser } from '../../src/oidc/commands.ts'
import { ConnectedApps } from '../../src/oidc/connected-apps.ts'
import { DeviceCodes } from '../../src/oidc/device-codes.ts'
import { Grants } from '../../src/oidc/grants.ts'
import type { IssuerSettings } from '../../src/oidc/issuer-parts.ts'
import { SealedRecords } from '../../src/oidc/sealed-records.ts'
import { disconnect, SessionClients, sessionEnds } from '../../src/oidc/session-ends.ts'
import { given } from '../../src/shared/defined-fields.ts'
import { mapStore } from '../../src/store/map-store.ts'
import type { Store } from '../../src/store/store.ts'
import { memoryStore } from '../support/memory-store.ts'
import { rest } from '../support/rest.ts'
import { Browser, discover, pass, refusalOf, request, shop, startIssuer } from './support.ts'

const keyring = new Keyring(['a secret of this test '.repeat(2)])
const userId = 'usr_1'
const wallet = { adapterId: 'nimiq', subject: 'aa', publicKeyHex: 'aa', address: 'NQ07' }

/** An instance on a store. `onLook` is called after each look at a session. */
function instanceOn(store: Store, onLook: () => Promise<unknown> = async () => {}) {
  const sessions = new Sessions({ ttlSeconds: 600, absoluteTtlSeconds: 6000 }, store, keyring, sessionEnds(store))
  const host = {
    async findSession(id: string) {
      const found = await sessions.read(id)
      await onLook()
      return found
    },
    listSessions: (id: string) => sessions.list(id),
  } as unknown as StandaloneHost
  const kept = {
    store,
    records: new SealedRecords(store, keyring),
    apps: new ConnectedApps(store),
    sessionClients: new SessionClients(store),
    host,
  }
  const settings = { sessionAbsoluteTtlSeconds: 6000 } as IssuerSettings
  const grants = new Grants({ ...kept, audit: noAudit, settings })
  const allow = (session: Session, clientId: string, ...asked: string[]) =>
    grants.give(session, { clientId, asked: new Set(['openid', ...asked]), isAllowed: true })
  return { ...kept, sessions, grants, allow }
}

/** A store in which a user has allowed an application offline access, in a session that lives. */
async function consented(store: Store) {
  const own = instanceOn(store)
  const { session } = await own.sessions.create({ userId, ...wallet, ip: '198.51.100.7', userAgent: '' })
  const grantId = await own.allow(session, 'shop', 'offline_access')
  return { session, grantId: grantId! }
}

type Consented = Awaited<ReturnType<typeof consented>>

/** What of a store counts: the session, and tokens of its first grant, bound to it or for offline access. */
async function countingIn(store: Store, { session, grantId }: Consented) {
  const { sessions, apps, grants, sessionClients } = instanceOn(store)
  const isGranted = (await grants.read(grantId)) !== undefined
  const isLive = (await sessions.read(session.id)) !== undefined
  return {
    session: isLive,
    bound: isLive && isGranted && (await sessionClients.of(session.id)).get('shop') === grantId,
    offline: isGranted && (await apps.findOffline(userId, 'shop', session.id)) !== undefined,
    isNoted: (await sessionClients.ended()).length > 0,
  }
}

type Counting = Awaited<ReturnType<typeof countingIn>>

/** Whether the user sees, and can end, each connection that the store has. */
async function isListed(store: Store): Promise<boolean> {
  const seen = (await new ConnectedApps(store).of(userId)).map(({ connection }) => connection)
  for await (const { value } of store.scan!('app:')) {
    const { connections }: { connections: { connection: string }[] } = JSON.parse(value)
    if (!connections.every(({ connection }) => seen.includes(connection))) return false
  }
  return true
}

/** The first part of a key. */
const familyOf = (key: string): string => /^(oidc:)?[^:]+/.exec(key)?.[0] ?? ''

/** A store that has its writes in a list, and whose process ends before or after the one with a number. */
function crashing(store: Store, at = Number.POSITIVE_INFINITY, isAfter = false) {
  const writes: string[] = []
  const write = async <Result>(key: string, step: () => Promise<Result>): Promise<Result> => {
    if (writes.length > at) throw new Error('the process has ended')
    writes.push(familyOf(key))
    if (writes.length <= at) return await step()
    if (isAfter) await step()
    throw new Error('the process has ended')
  }
  const crashed: Store = {
    ...mapStore(store, {}),
    create: (key, ...others) => write(key, () => store.create(key, ...others)),
    compareAndSet: (key, ...others) => write(key, () => store.compareAndSet(key, ...others)),
    take: (key) => write(key, () => store.take(key)),
    addMember: (key, ...others) => write(key, () => store.addMember(key, ...others)),
    removeMember: (key, member) => write(key, () => store.removeMember(key, member)),
  }
  return { store: crashed, writes }
}

interface Event {
  readonly name: string
  /** The records that it writes, in order. */
  readonly writes: readonly string[]
  readonly prepare?: (store: Store, user: Consented) => Promise<unknown>
  /** `beneath` is the store without the crash. */
  readonly act: (store: Store, user: Consented, beneath: Store) => Promise<unknown>
  /** What holds after each step, and after a crash there. */
  readonly holds: (counting: Counting) => boolean
  /** What holds once it is repeated. Default: the event cannot be repeated. */
  readonly ends?: (counting: Counting) => boolean
}

const fill = async (store: Store): Promise<void> => {
  for (let index = 0; index < 99; index++) {
    const wanted = { clientId: `app ${index}`, isOfOrder: false, scopes: ['openid'], isAllowed: true }
    await new ConnectedApps(store).connect(userId, wanted, { ending: async () => {}, ended: () => {} })
  }
}

const giving = ['clients-of', 'app', 'apps-of', 'app', 'oidc:Grant']
const ending = ['ended-sessions', 'session', 'sessions']
const isOver = ({ bound, offline }: Counting): boolean => !bound && !offline

/** The order of revocation: src/oidc/README.md has it in words. */
const events: readonly Event[] = [
  {
    name: 'a consent to another application',
    writes: [...giving, 'app'],
    act: (store, { session }) => instanceOn(store).allow(session, 'other', 'offline_access'),
    holds: ({ bound, offline }) => bound && offline,
  },
  {
    name: 'a consent in a session that is taken away meanwhile',
    writes: ['app', 'oidc:Grant', 'oidc:Grant', 'app'],
    async act(store, { session }, beneath) {
      let looks = 0
      const revoke = async () => looks++ > 0 || instanceOn(beneath).sessions.revoke(userId, session.id)
      await instanceOn(store, revoke).allow(session, 'shop', 'offline_access')
    },
    holds: isOver,
  },
  {
    name: 'a consent to an application that is disconnected meanwhile',
    writes: ['app', 'apps-of', 'app', 'clients-of', 'oidc:Grant'],
    async act(store, { session }, beneath) {
      let isDone = false
      const disconnecting: Store = {
        ...store,
        async compareAndSet(key, ...change) {
          if (!isDone) await disconnect(instanceOn(beneath), session, 'shop')
          isDone = true
          return await store.compareAndSet(key, ...change)
        },
      }
      await instanceOn(disconnecting).allow(session, 'shop', 'profile')
    },
    holds: isOver,
  },
  {
    name: 'the end of a session by sign-out',
    writes: ending,
    act: (store, { session }) => instanceOn(store).sessions.end(userId, session.id),
    holds: ({ session, bound, offline, isNoted }) => offline && bound === session && (session || isNoted),
    ends: ({ bound, isNoted }) => !bound && isNoted,
  },
  {
    name: 'taking a session away from its user',
    writes: ['app', ...ending],
    act: (store, { session }) => instanceOn(store).sessions.revoke(userId, session.id),
    holds: ({ session, bound, offline, isNoted }) => bound === session && (session || (!offline && isNoted)),
    ends: (counting) => isOver(counting) && counting.isNoted,
  },
  {
    name: 'disconnecting an application',
    writes: ['ended-sessions', 'ended-sessions', 'app'],
    act: (store, { session }) => disconnect(instanceOn(store), session, 'shop'),
    holds: (counting) => counting.bound === counting.offline && (counting.bound || counting.isNoted),
    ends: (counting) => isOver(counting) && counting.isNoted,
  },
  {
    name: 'a consent that another application makes room for',
    prepare: fill,
    writes: ['clients-of', 'app', 'ended-sessions', 'ended-sessions', 'app', 'apps-of', 'app', 'oidc:Grant'],
    act: (store, { session }) => instanceOn(store).allow(session, 'one more'),
    holds: (counting) => counting.bound === counting.offline && (counting.bound || counting.isNoted),
    ends: (counting) => isOver(counting) && counting.isNoted,
  },
  {
    name: 'the second use of a code or refresh token',
    writes: ['oidc:Grant'],
    act: (store, { grantId }) => instanceOn(store).grants.remove(grantId),
    holds: ({ session, bound, offline }) => session && bound === offline,
    ends: isOver,
  },
  {
    name: 'the erasure of a user',
    writes: ['apps-of', 'app', 'apps-of'],
    act: (store) => eraseUser(store, userId),
    holds: ({ bound, offline }) => bound === offline,
    ends: isOver,
  },
]

describe('a crash at each write leaves nothing that counts and should not', () => {
  test.each(events)('in $name', async ({ prepare, act, writes, holds, ends }) => {
    for (let at = 0; ; at++) {
      for (const isAfter of [false, true]) {
        const store = await memoryStore()
        const user = await consented(store)
        await prepare?.(store, user)
        const crash = crashing(store, at, isAfter)
        const hasCrashed = await act(crash.store, user, store).then(
          () => false,
          () => true,
        )
        const counting = await countingIn(store, user)
        expect([at, isAfter, counting, holds(counting)]).toEqual([at, isAfter, counting, true])
        expect(await isListed(store)).toBe(true)
        if (!hasCrashed) return expect(crash.writes).toEqual(writes)
        if (ends === undefined) continue
        await act(store, user, store)
        const after = await countingIn(store, user)
        expect([at, isAfter, after, ends(after)]).toEqual([at, isAfter, after, true])
      }
    }
  })
})

describe('a revocation whose process ends while a consent is at one of its looks at the session', () => {
  test.each([1, 2, 3])('leaves nothing, at look %i', async (look) => {
    for (let begun = 0; begun < 5; begun++) {
      for (let at = begun; at <= 5; at++) {
        const store = await memoryStore()
        const user = await consented(store)
        const [waiting, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
        let looks = 0
        const { allow } = instanceOn(store, async () => {
          if (++looks !== look) return
          waiting.resolve()
          await going.promise
        })
        let consent: Promise<unknown> | undefined
        const around = async <Result>(_operation: string, step: () => Promise<Result>) => {
          if (crash.writes.length < begun || consent !== undefined) return await step()
          consent = allow(user.session, 'shop', 'offline_access')
          await Promise.race([consent, waiting.promise])
          return await step()
        }
        const crash = crashing(mapStore(store, { around }), at)
        await instanceOn(crash.store)
          .sessions.revoke(userId, user.session.id)
          .catch(() => {})
        going.resolve()
        const given = await consent
        const { session: isLive, offline, bound } = await countingIn(store, user)
        const where = { begun, at, given }
        // The last look comes once all is given: then a retry ends it.
        if (!isLive && look < 3)
          expect({ ...where, offline, bound }).toEqual({ ...where, offline: false, bound: false })
        await revokeAgain(store, user)
        expect({ ...where, ...(await countingIn(store, user)) }).toMatchObject({
          ...where,
          offline: false,
          bound: false,
        })
      }
    }
  })
})

/** Revokes a session as its user does from another one. */
async function revokeAgain(store: Store, { session: revoked }: Consented, orderId?: string): Promise<void> {
  const { host, sessions } = instanceOn(store)
  const { session } = await sessions.create({ userId, ...wallet, ip: '', userAgent: '' })
  const own = { ...session, ...given({ orderId }) }
  const revokeSession = (user: string, id: string) => sessions.revoke(user, id)
  const users = new OwnSessions({ ...host, revokeSession } as StandaloneHost, { sessionEnds: sessions.ends })
  await refusalOf(users.revoke(own, revoked.id, {} as RequestContext))
}

test('a session that an order made leaves the offline access of a direct sign-in that has ended', async () => {
  const store = await memoryStore()
  const user = await consented(store)
  await instanceOn(store).sessions.end(userId, user.session.id)
  await revokeAgain(store, user, 'an order')
  expect(await countingIn(store, user)).toMatchObject({ session: false, offline: true })
})

test('revoking all other sessions reads each application twice, however many sessions there are', async () => {
  const store = await memoryStore()
  await consented(store)
  for (let index = 0; index < 9; index++) {
    await instanceOn(store).sessions.create({ userId, ...wallet, ip: '', userAgent: '' })
  }
  await fill(store)
  let reads = 0
  const counting: Store = {
    ...mapStore(store, {}),
    async get(key) {
      if (familyOf(key) === 'app') reads++
      return await store.get(key)
    },
  }
  const { host, sessions } = instanceOn(counting)
  const { session: own } = await sessions.create({ userId, ...wallet, ip: '', userAgent: '' })
  const endSession = (user: string, id: string) => sessions.end(user, id)
  const users = new OwnSessions(host, { sessionEnds: sessions.ends, endSession })
  expect(await users.revokeOthers(own, {} as RequestContext)).toBe(10)
  expect(reads).toBe(200)
})

test('the erasure of a user leaves nothing of a consent in flight', async () => {
  for (const look of [1, 2, 3]) {
    const store = await memoryStore()
    const { session } = await instanceOn(store).sessions.create({ userId, ...wallet, ip: '', userAgent: '' })
    let looks = 0
    const { allow } = instanceOn(store, async () => {
      if (++looks !== look) return
      await instanceOn(store).sessions.revoke(userId, session.id)
      await eraseUser(store, userId)
    })
    const given = await allow(session, 'shop', 'offline_access')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_001 })
    onTestFinished(() => void vi.useRealTimers())
    const kept: string[] = []
    for await (const { key } of store.scan!('app')) kept.push(key)
    vi.useRealTimers()
    expect([look, kept]).toEqual([look, []])
    expect(look < 3 ? given : undefined).toBeUndefined()
  }
})

test('a user whose erasure was interrupted is erased by a retry, however late', async () => {
  const store = await memoryStore()
  await consented(store)
  const crash = crashing(store, 1, false)
  await expect(eraseUser(crash.store, userId)).rejects.toThrow()
  pass(86_400)
  await eraseUser(store, userId)
  const kept: string[] = []
  for await (const { key } of store.scan!('app:')) kept.push(key)
  expect(kept).toEqual([])
})

test('a consent in flight ends the offline access of no other session, and is forgotten after a minute', async () => {
  const store = await memoryStore()
  const { apps } = instanceOn(store)
  const wanted = { clientId: 'shop', isOfOrder: false, scopes: ['openid'], isAllowed: true }
  const connect = async (id: string) => {
    const offline = { id, userId, ...wallet, createdAt: 1 }
    return (await apps.connect(userId, { ...wanted, offline }, { ending: async () => {}, ended: () => {} }))!
  }
  for (let index = 0; index < 50; index++) {
    await apps.beginOffline(
      userId,
      { clientId: 'shop', connection: await connect(`session ${index}`) },
      `session ${index}`,
    )
  }
  const connection = await connect('in flight')
  expect(await apps.findOffline(userId, 'shop', 'session 0')).toBeDefined()
  pass(60.001)
  await connect('another')
  expect(await apps.beginOffline(userId, { clientId: 'shop', connection }, 'in flight')).toBe(false)
  expect(await apps.findOffline(userId, 'shop', 'session 0')).toBeDefined()
})

test('one session with offline access beyond 50 ends the one of its connection that expires soonest', async () => {
  const { apps } = instanceOn(await memoryStore())
  const begin = async (id: string, orderId?: string) => {
    const offline = { id, userId, ...wallet, createdAt: 1, ...given({ orderId }) }
    const wanted = { clientId: 'shop', isOfOrder: orderId !== undefined, scopes: ['openid'], isAllowed: true, offline }
    const connection = (await apps.connect(userId, wanted, { ending: async () => {}, ended: () => {} })) ?? ''
    expect(await apps.beginOffline(userId, { clientId: 'shop', connection }, id)).toBe(true)
  }
  await begin('of an order', 'an order')
  for (let index = 0; index < 50; index++) await begin(`session ${index}`)
  // Given anew, it ends last.
  await begin('session 0')
  await begin('one more')
  const ids = (await apps.of(userId)).flatMap((app) => apps.offlineOf(app)).map(({ id }) => id)
  const kept = Array.from({ length: 48 }, (_unused, index) => `session ${index + 2}`)
  expect(ids).toEqual(['of an order', ...kept, 'session 0', 'one more'])
})

test('with the longest wallets, fewer sessions have offline access, and the record fits in the store', async () => {
  const { apps } = instanceOn(await memoryStore())
  const text = 'x'.repeat(200)
  const longest = { adapterId: 'nimiq', subject: text, publicKeyHex: text, address: text, firstWallet: text }
  const scopes = Array.from({ length: 50 }, (_unused, index) => `scope-${index} https://orders.example/${index}`)
  for (const orderId of [undefined, 'an order']) {
    const wanted = { clientId: 'shop', isOfOrder: orderId !== undefined, scopes, isAllowed: true }
    for (let index = 0; index < 50; index++) {
      const offline = { ...longest, id: `session ${index}`, userId, createdAt: 1, ...given({ orderId }) }
      const connection = await apps.connect(userId, { ...wanted, offline }, { ending: async () => {}, ended: () => {} })
      expect(await apps.beginOffline(userId, { clientId: 'shop', connection: connection! }, offline.id)).toBe(true)
    }
  }
  const kept = (await apps.of(userId)).map((app) => apps.offlineOf(app).map(({ id }) => id))
  const newest = Array.from({ length: 24 }, (_unused, index) => `session ${index + 26}`)
  expect(kept.map((ids) => ids.slice(-24))).toEqual([newest, newest])
})

describe('of what an unreleased build stored of sessions, grants and offline access,', () => {
  /** A user with a session, an application, its refresh tokens, and a device that waits, as that build stored them. */
  async function former() {
    const store = await memoryStore()
    const secret = 'a secret of this test '.repeat(2)
    const { url } = await startIssuer([shop], { store, secret, oidc: { device: true } })
    const [browser, records] = [new Browser(url), new SealedRecords(store, new Keyring([secret]))]
    const { session, token } = await browser.signIn()
    const [user, life, exp] = [hashToken(session.userId), { ttlMs: 600_000 }, Math.floor(Date.now() / 1000) + 600]
    const app = { clientId: 'shop', isOfOrder: false, connection: 'c', scopes: ['openid'], allowed: ['openid'] }
    const connections = [{ ...app, connectedAt: 1, lastUsedAt: 2 }]
    await store.create(`app:${user}:${hashToken('shop')}`, JSON.stringify({ v: 1, connections }), 'forever')
    await store.create(`apps-of:${user}`, JSON.stringify({ v: 1, names: [hashToken('shop')] }), 'forever')
    await store.create(`offline:${session.id}`, JSON.stringify({ v: 1, session }), life)
    await store.addMember(`offline-of:${user}`, session.id, life, 100)
    await store.addMember(`session-clients:${session.id}`, 'shop', life, 100)
    const of = { accountId: session.userId, clientId: 'shop' }
    const grant = { ...of, sessionId: session.id, iat: 1, exp, allowed: ['openid'], connection: 'c' }
    const payload = { kind: 'RefreshToken', ...of, grantId: 'a grant', scope: 'openid', sessionUid: session.id }
    const times = { iat: exp - 600, iiat: exp - 600, exp, gty: 'authorization_code' }
    const left: readonly (readonly [kind: string, id: string, record: object])[] = [
      ['session-grants', session.id, { grants: { shop: 'a grant' } }],
      ['Grant', 'a grant', grant],
      ['RefreshToken', 'bound', { payload: { ...payload, ...times, expiresWithSession: true } }],
      ['RefreshToken', 'offline', { payload: { ...payload, ...times } }],
      ['DeviceCode', 'a device', { payload: { kind: 'DeviceCode', clientId: 'shop', userCode: 'BCDFGHJK', exp } }],
      ['DeviceUserCode', 'BCDFGHJK', { id: 'a device' }],
      ['device-turn', 'a device', {}],
    ]
    for (const [kind, id, record] of left) await records.create({ kind, id, record, life })
    return { store, url, browser, records, session, token, config: await discover(url) }
  }

  test('sessions and what users have allowed stay: an application signs in again without a question', async () => {
    const { url, browser, token, config } = await former()
    const { json } = await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })
    expect(json.apps).toMatchObject([{ clientId: 'shop', scopes: ['openid'], connectedAt: 1 }])
    const { address, redeem } = await request(config, { scope: 'openid' })
    expect((await redeem((await browser.open(address)).address)).id_token).toBeDefined()
  })

  test('refresh tokens have ended, those for offline access too', async () => {
    const { store, session, config } = await former()
    const refresh = (token: string) => refusalOf(client.refreshTokenGrant(config, token))
    expect([await refresh('bound'), await refresh('offline')]).toEqual(['invalid_grant', 'invalid_grant'])
    expect((await new AdminActions(store).export(session.userId)).offlineAccess).toEqual([])
    // The session's list is what they lack.
    await new SessionClients(store).change(session.id, 60_000, async () => new Map([['shop', 'a grant']]))
    expect([await refresh('bound'), await refresh('offline')]).toEqual([undefined, 'invalid_grant'])
  })

  test('codes of devices that wait can be decided, and are polled', async () => {
    const { store, records } = await former()
    const codes = new DeviceCodes({ store, records })
    const pending = await codes.findPending('BCDFGHJK')
    expect(await codes.poll('a device')).toMatchObject({ clientId: 'shop' })
    expect(await codes.decide(pending!, { error: 'access_denied' })).toBe(true)
    expect((await records.find('DeviceCode', 'a device'))?.record).toMatchObject({
      payload: { clientId: 'shop', userCode: 'BCDFGHJK', error: 'access_denied' },
    })
  })

  test('an application that has offline access is stored in the same form, with one more field', async () => {
    const store = await memoryStore()
    await consented(store)
    for await (const { value } of store.scan!('app:')) {
      expect(JSON.parse(value)).toEqual({
        v: 1,
        connections: [
          {
            ...{ clientId: 'shop', connection: expect.any(String), isOfOrder: false },
            ...{ scopes: ['openid', 'offline_access'], allowed: ['openid', 'offline_access'] },
            ...{ connectedAt: expect.any(Number), lastUsedAt: expect.any(Number), offline: [expect.any(Object)] },
          },
        ],
      })
    }
  })
})
