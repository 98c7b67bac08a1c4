import { errors } from 'oidc-provider'
import { expect, onTestFinished, test, vi } from 'vitest'
import { noAudit } from '../../src/base/audit.ts'
import { silentLogger } from '../../src/base/log.ts'
import { Sampler } from '../../src/base/timing/sampler.ts'
import { Keyring } from '../../src/base/token.ts'
import type { Session } from '../../src/core/users/host.ts'
import { People } from '../../src/core/users/people.ts'
import type { StandaloneHost } from '../../src/core/users/standalone.ts'
import { adaptersOver } from '../../src/oidc/adapter.ts'
import { ClientDirectory } from '../../src/oidc/client-directory.ts'
import type { FileClient } from '../../src/oidc/clients.ts'
import { ConnectedApps, GrantsFull } from '../../src/oidc/connected-apps.ts'
import { Grants } from '../../src/oidc/grants.ts'
import type { IssuerSettings } from '../../src/oidc/issuer-parts.ts'
import type { Library } from '../../src/oidc/library-request.ts'
import { SealedRecords } from '../../src/oidc/sealed-records.ts'
import { SessionClients } from '../../src/oidc/session-ends.ts'
import { mapStore } from '../../src/store/map-store.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { pass } from './support.ts'

const session = {
  id: 'a session',
  userId: 'usr_1',
  adapterId: 'nimiq',
  publicKeyHex: 'aa',
  address: 'NQ07',
  createdAt: 1,
  expiresAt: Date.now() + 60_000,
  ip: '',
  userAgent: '',
}

/** Adapters of an instance, which knows these secrets. `isLive` is whether the session is. */
async function open(secrets = ['one '.repeat(10)], store = openStore('sqlite::memory:'), isLive = async () => true) {
  const opened = await store
  onTestFinished(() => opened.close())
  const records = new SealedRecords(opened, new Keyring(secrets))
  const [apps, sessionClients] = [new ConnectedApps(opened), new SessionClients(opened)]
  const findSession = async () => ((await isLive()) ? session : undefined)
  const host = { findSession, admits: () => true, listSessions: async () => [session] } as unknown as StandaloneHost
  const users = { holds: async () => true, walletsOf: async () => [] }
  const parts = { records, store: opened, apps, sessionClients, host, users, audit: noAudit }
  const grants = new Grants({ ...parts, settings: { sessionAbsoluteTtlSeconds: 60 } as IssuerSettings })
  const patient = { refreshGraceSeconds: 30 } as FileClient
  const clients = new Map([['patient', patient]])
  const directory = new ClientDirectory({
    settings: { oidc: {}, accessTokens: {} } as IssuerSettings,
    loaded: () => ({ clients, resources: new Map() }),
    validate: async () => {},
    log: silentLogger,
    sampler: new Sampler(),
    limiter: undefined,
  })
  const adapters = adaptersOver(
    {
      ...parts,
      grants,
      directory,
      library: { errors } as Library,
      settings: { oidc: {} } as IssuerSettings,
      log: silentLogger,
    },
    { clients, scopes: ['openid'], resources: new Map(), people: new People() },
  )
  return { store, opened, records, grants, adapters }
}

test('a consent that comes too late for its session leaves the offline access of other applications', async () => {
  let isLive = true
  const { grants, opened } = await open(undefined, undefined, async () => isLive)
  const gift = { clientId: 'notes', asked: new Set(['openid', 'offline_access']), isAllowed: true }
  await grants.give(session, gift)
  const create = opened.create.bind(opened)
  vi.spyOn(opened, 'create').mockImplementation(async (key, ...others) => {
    const isCreated = await create(key, ...others)
    // Signed out once the grant is stored.
    if (key.startsWith('oidc:Grant:')) isLive = false
    return isCreated
  })
  expect(await grants.give(session, { ...gift, clientId: 'shop' })).toBeUndefined()
  const apps = new ConnectedApps(opened)
  expect(await apps.findOffline(session.userId, 'notes', session.id)).toBeDefined()
  expect(await apps.findOffline(session.userId, 'shop', session.id)).toBeUndefined()
})

const exp = Math.floor(Date.now() / 1000) + 60

test('a code is used up also for an instance whose clock is behind', async () => {
  const { adapters, opened, grants } = await open()
  const grantId = await grants.give(session, { clientId: 'shop', asked: new Set(['openid']), isAllowed: true })
  await adapters('AuthorizationCode').upsert('secret', { grantId: grantId!, clientId: 'shop', exp } as never, 60)
  await adapters('AuthorizationCode').consume('secret')
  const now = opened.now()
  vi.spyOn(opened, 'now').mockReturnValue(now - 500)
  expect(await adapters('AuthorizationCode').find('secret')).toMatchObject({ consumed: expect.any(Number) })
  await expect(adapters('AuthorizationCode').consume('secret')).rejects.toBeInstanceOf(errors.InvalidGrant)
})

test('a refresh token of a client with a grace time is taken again for so long, and its grant stays', async () => {
  const { adapters, grants } = await open()
  const grantId = await grants.give(session, { clientId: 'patient', asked: new Set(['openid']), isAllowed: true })
  const payload = { kind: 'RefreshToken', grantId: grantId!, clientId: 'patient', nonce: 'n', exp }
  await adapters('RefreshToken').upsert('secret', payload as never, 60)
  await adapters('RefreshToken').consume('secret')
  // As it was, so that the answer is the one that was lost.
  expect(await adapters('RefreshToken').find('secret')).toEqual({ ...payload, jti: 'secret' })
  await adapters('RefreshToken').consume('secret')
  pass(31)
  expect(await adapters('RefreshToken').find('secret')).toMatchObject({ consumed: expect.any(Number) })
  await expect(adapters('RefreshToken').consume('secret')).rejects.toThrow(errors.InvalidGrant)
  expect(await grants.read(grantId!)).toBeUndefined()
})

test('a refresh token that comes twice at once is taken both times within the grace time, to the millisecond', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Math.floor(Date.now() / 1000) * 1000 + 900 })
  onTestFinished(() => void vi.useRealTimers())
  const { adapters, grants } = await open()
  const grantId = await grants.give(session, { clientId: 'patient', asked: new Set(['openid']), isAllowed: true })
  const payload = { kind: 'RefreshToken', grantId: grantId!, clientId: 'patient', exp: exp + 60 }
  await adapters('RefreshToken').upsert('secret', payload as never, 60)
  await Promise.all(['one', 'two', 'three'].map(() => adapters('RefreshToken').consume('secret')))
  pass(29.95)
  await adapters('RefreshToken').consume('secret')
  expect(await grants.read(grantId!)).toBeDefined()
})

test('a proof counts once, also if it comes twice at once', async () => {
  const { adapters } = await open()
  const mark = () => adapters('ReplayDetection').upsert('a proof', { kind: 'ReplayDetection', exp }, 60)
  const both = await Promise.allSettled([mark(), mark()])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  await expect(mark()).rejects.toThrow(errors.InvalidRequest)
})

test('tabs that ask at once share a grant, and a grant that was taken away has a successor of another id', async () => {
  const { grants } = await open()
  const give = (...scopes: string[]) =>
    grants.give(session, { clientId: 'shop', asked: new Set(scopes), isAllowed: true })
  const ids = await Promise.all([give('openid'), give('openid', 'profile'), give('wallet')])
  expect(new Set(ids).size).toBe(1)
  const scopes = (await grants.read(ids[0]!))?.allowed.toSorted()
  expect(scopes).toEqual(['openid', 'profile', 'wallet'])
  expect(await grants.remove(ids[0]!)).toMatchObject({ clientId: 'shop', sessionId: session.id })
  expect(await grants.remove(ids[0]!)).toBeUndefined()
  const next = await give('openid')
  expect(next).not.toBe(ids[0])
  expect((await grants.read(next!))?.allowed).toEqual(['openid'])
  // Taken away before it was stored.
  expect(await grants.remove('an id to come')).toBeUndefined()
  expect(await grants.read('an id to come')).toBeUndefined()
})

test('an empty consent stores no grant, and connects nothing', async () => {
  const { grants, opened } = await open()
  expect(await grants.give(session, { clientId: 'shop', asked: new Set(), isAllowed: true })).toBeUndefined()
  expect(await new ConnectedApps(opened).of(session.userId)).toEqual([])
  expect(await new SessionClients(opened).of(session.id)).toEqual(new Map())
})

test('a session that ends while a grant is given keeps no grant', async () => {
  let looks = 0
  const { grants, opened } = await open(undefined, undefined, async () => looks++ === 0)
  expect(await grants.give(session, { clientId: 'shop', asked: new Set(['openid']), isAllowed: true })).toBeUndefined()
  expect(await new ConnectedApps(opened).of(session.userId)).toHaveLength(1)
  expect(await grants.liveIdOf(session, 'shop')).toBeUndefined()
})

test('a session that has ended connects nothing, for which another application would end', async () => {
  const { grants, opened } = await open(undefined, undefined, async () => false)
  expect(await grants.give(session, { clientId: 'shop', asked: new Set(['openid']), isAllowed: true })).toBeUndefined()
  expect(await new ConnectedApps(opened).of(session.userId)).toEqual([])
  expect(await new SessionClients(opened).of(session.id)).toEqual(new Map())
})

test('a session that an order made, and that may end none of 100 applications, gets and notes nothing', async () => {
  const { grants, opened } = await open()
  const give = (to: Session, clientId: string) =>
    grants.give(to, { clientId, asked: new Set(['openid']), isAllowed: true })
  for (let index = 0; index < 100; index++) await give(session, `client ${index}`)
  const relayed = { ...session, id: 'relayed', orderId: 'an order' }
  await expect(give(relayed, 'one more')).rejects.toThrow(GrantsFull)
  expect(await grants.liveIdOf(relayed, 'one more')).toBeUndefined()
  expect(await new SessionClients(opened).of(relayed.id)).toEqual(new Map())
  expect(await give(session, 'client 5')).toBeDefined()
})

test('a grant that a tab is about to store keeps its place in a full session', async () => {
  const { promise: storing, resolve: isStoring } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const store = await openStore('sqlite::memory:')
  const give = (to: Grants, clientId: string) =>
    to.give(session, { clientId, asked: new Set(['openid']), isAllowed: true })
  const slow = await open(
    undefined,
    Promise.resolve({
      ...mapStore(store, {}),
      async create(key, ...rest) {
        if (key.startsWith('oidc:Grant:')) {
          isStoring()
          await released
        }
        return await store.create(key, ...rest)
      },
    } satisfies Store),
  )
  const { grants } = await open(undefined, Promise.resolve(store))
  for (let index = 0; index < 99; index++) await give(grants, `client ${index}`)
  const late = give(slow.grants, 'late')
  await storing
  await expect(give(grants, 'one more')).rejects.toThrow(GrantsFull)
  release()
  expect(await late).toBeDefined()
  expect(await grants.liveIdOf(session, 'late')).toBe(await late)
  // One that was taken away makes room.
  await grants.remove((await grants.idOf(session.id, 'client 5'))!)
  expect(await give(grants, 'one more')).toBeDefined()
})

test('a record opens with any of the secrets, under its own id and kind alone', async () => {
  const [one, two] = ['one '.repeat(10), 'two '.repeat(10)]
  const { store, opened, records } = await open([one])
  await records.create({ kind: 'AccessToken', id: 'id', record: { payload: 'x' }, life: { ttlMs: 60_000 } })
  const rotated = await open([two, one], store)
  expect(await rotated.records.read('AccessToken', 'id')).toMatchObject({ record: { payload: 'x' }, isOld: true })
  await expect((await open([two], store)).records.read('AccessToken', 'id')).rejects.toThrow(/none of the secrets/)
  const longLived = { ...session, id: 'of the old secret' }
  const old = await (await open([one], store)).grants.give(longLived, {
    clientId: 'shop',
    asked: new Set(['openid']),
    isAllowed: true,
  })
  const { grants } = await open([two], store)
  expect(await grants.read(old!)).toBeUndefined()
  const next = await grants.give(longLived, { clientId: 'shop', asked: new Set(['openid']), isAllowed: true })
  expect(await grants.liveIdOf(longLived, 'shop')).toBe(next)
  // Put in the place of another.
  const keys: string[] = []
  for await (const { key, value } of opened.scan!('oidc:AccessToken:')) keys.push(key, value)
  const { hash } = await import('node:crypto')
  await opened.create(`oidc:AccessToken:${hash('sha256', 'other', 'base64url')}`, keys[1]!, { ttlMs: 60_000 })
  await expect(records.read('AccessToken', 'other')).rejects.toThrow(/none of the secrets/)
})
