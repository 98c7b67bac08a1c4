import { setTimeout as sleep } from 'node:timers/promises'
import * as client from 'openid-client'
import { describe, expect, test, vi } from 'vitest'
import { hashToken } from '../../src/base/token.ts'
import { ConnectedApps, type Eviction, GrantsFull, type StoredConnection } from '../../src/oidc/connected-apps.ts'
import { mapStore } from '../../src/store/map-store.ts'
import type { Store } from '../../src/store/store.ts'
import { memoryStore } from '../support/memory-store.ts'
import { rest } from '../support/rest.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  asked,
  Browser,
  contentOf,
  decide,
  discover,
  pass,
  refusalOf,
  request,
  shop,
  signInByOrder,
  startIssuer,
} from './support.ts'

const user = 'usr_1'
const quietly: Eviction = { ending: async () => {}, ended: () => {} }

const app = (clientId: string, isOfOrder = false) => ({ clientId, isOfOrder, scopes: ['openid'], isAllowed: true })

/** All connections of the user that the store has, also those that no list names. */
async function stored(store: Store): Promise<readonly StoredConnection[]> {
  const found: StoredConnection[] = []
  for await (const { value } of store.scan!(`app:${hashToken(user)}:`)) found.push(...JSON.parse(value).connections)
  return found
}

/** Asserts that each connection in the store is one that its user sees, and can end. */
async function expectListed(store: Store): Promise<void> {
  const seen = await new ConnectedApps(store).of(user)
  expect(new Set(seen.map(({ clientId }) => clientId)).size).toBeLessThanOrEqual(100)
  expect((await stored(store)).map(({ connection }) => connection).toSorted()).toEqual(
    seen.map(({ connection }) => connection).toSorted(),
  )
}

/** Connects 100 applications, the first of which was used longest ago. */
async function fill(store: Store, apps = new ConnectedApps(store)): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'] })
  for (let index = 0; index < 100; index++) {
    await apps.connect(user, app(`app ${index}`), quietly)
    vi.setSystemTime(Date.now() + 1)
  }
  vi.useRealTimers()
}

describe('the applications of a user', () => {
  test('are 100 at most: of others, the one that was used longest ago ends before the next is stored', async () => {
    const store = await memoryStore()
    const apps = new ConnectedApps(store)
    await fill(store, apps)
    const [first] = await apps.ofClient(user, 'app 0')
    const ended: string[] = []
    pass(3600)
    await apps.use(user, first!)
    await apps.connect(user, app('one more'), {
      async ending({ clientId, connection }) {
        ended.push(`ending ${clientId}`)
        expect(await apps.find(user, { clientId, connection })).toBeDefined()
        expect(await apps.ofClient(user, 'one more')).toEqual([])
      },
      ended: (clientId) => void ended.push(clientId),
    })
    expect(ended).toEqual(['ending app 1', 'app 1'])
    expect(await apps.ofClient(user, 'app 1')).toEqual([])
    expect((await apps.of(user)).length).toBe(100)
    expect(await apps.find(user, first!)).toBeDefined()
    await expectListed(store)
  })

  test('of another user, or disconnected before, end for none', async () => {
    const store = await memoryStore()
    const apps = new ConnectedApps(store)
    await fill(store, apps)
    const never = { ...quietly, ending: () => Promise.reject(new Error('an application ends')) }
    await apps.connect('usr_2', app('one more'), never)
    await apps.connect(user, app('app 0', true), never)
    for (const each of await apps.ofClient(user, 'app 7')) await apps.disconnect(user, each)
    await apps.connect(user, app('one more'), never)
    await apps.connect(user, app('app 0'), never)
    await expectListed(store)
  })

  test('that are used just as they are to end stay, and are not said to have ended', async () => {
    const store = await memoryStore()
    const others = new ConnectedApps(store)
    await fill(store, others)
    const [first] = await others.ofClient(user, 'app 0')
    pass(3600)
    const ended: string[] = []
    await new ConnectedApps(store).connect(user, app('one more'), {
      // Between the look at the records and the end of one of them.
      ending: () => others.use(user, first!),
      ended: (clientId) => void ended.push(clientId),
    })
    expect(await others.find(user, first!)).toBeDefined()
    expect(ended).toEqual(['app 1'])
    await expectListed(store)
  })

  test('that were connected directly end for none of a session that an order made', async () => {
    const store = await memoryStore()
    const apps = new ConnectedApps(store)
    const ended: string[] = []
    const noting: Eviction = { ...quietly, ended: (clientId) => void ended.push(clientId) }
    await fill(store, apps)
    const before = await stored(store)
    // Connected both ways: the session would reach one of two.
    await apps.connect(user, app('app 0', true), noting)
    await expect(apps.connect(user, app('of an order', true), noting)).rejects.toThrow(GrantsFull)
    expect(await apps.ofClient(user, 'of an order')).toEqual([])
    expect(await stored(store)).toEqual(expect.arrayContaining(before.map((each) => expect.objectContaining(each))))
    // With applications of its own kind, the oldest of these ends, though others were used longer ago.
    for (const name of ['app 7', 'app 8']) {
      for (const each of await apps.ofClient(user, name)) await apps.disconnect(user, each)
    }
    pass(1)
    await apps.connect(user, app('order 1', true), noting)
    pass(0.001)
    await apps.connect(user, app('order 2', true), noting)
    expect(ended).toEqual([])
    await apps.connect(user, app('order 3', true), noting)
    expect(ended).toEqual(['order 1'])
    await apps.connect(user, app('direct'), noting)
    expect(ended).toEqual(['order 1', 'app 1'])
    await expectListed(store)
  })

  test('are each in a record of its own, so that a use reads as much as with one', async () => {
    const store = await memoryStore()
    await fill(store)
    const sizes: number[] = []
    for await (const { value } of store.scan!('app')) sizes.push(Buffer.byteLength(value))
    expect(sizes.length).toBe(101)
    expect(Math.max(...sizes)).toBeLessThan(8 * 1024)
    const read: string[] = []
    const watched: Store = {
      ...mapStore(store, {}),
      get(key) {
        read.push(key)
        return store.get(key)
      },
    }
    const [each] = await new ConnectedApps(watched).ofClient(user, 'app 50')
    await new ConnectedApps(watched).find(user, each!)
    expect(read).toHaveLength(2)
  })

  test('of a user who is erased while two consents are in flight leave no record', async () => {
    const store = await memoryStore()
    const apps = new ConnectedApps(store)
    let isErased = false
    const late: Store = {
      ...mapStore(store, {}),
      async compareAndSet(key, ...change) {
        if (key.startsWith('app:') && !isErased) {
          isErased = true
          await apps.erase(user)
          expect(await apps.connect(user, app('shop'), quietly)).toBeUndefined()
        }
        return await store.compareAndSet(key, ...change)
      },
    }
    expect(await new ConnectedApps(late).connect(user, app('shop'), quietly)).toBeUndefined()
    expect(await stored(store)).toEqual([])
  })

  test('that are connected 60 at a time, over two handles, are 100 at most, and all are listed', async () => {
    const store = await memoryStore()
    await fill(store)
    // Each write waits for a while, so that the steps of all mix.
    const slow = mapStore(store, {
      async around(_operation, step) {
        await sleep(Math.random() * 5)
        return await step()
      },
    })
    const handles = [new ConnectedApps(slow), new ConnectedApps(slow)]
    const names = Array.from({ length: 60 }, (_unused, index) => `new ${index % 40}`)
    await Promise.all(names.map((name, index) => handles[index % 2]!.connect(user, app(name), quietly)))
    await expectListed(store)
  })
})

describe('at an issuer with more applications than a user can have', () => {
  const named = (id: string) => ({ ...shop, metadata: { ...shop.metadata, client_id: id } })
  const own = Array.from({ length: 101 }, (_unused, index) => ({ ...named(`own-${index}`), first_party: true }))
  const address = (id: string): string => `/api/auth/oidc/authorize?${new URLSearchParams({ ...asked, client_id: id })}`

  test('a session has 100, the next is refused with words; another session ends what was used longest ago', async () => {
    const late = named('late')
    const events: object[] = []
    const { url } = await startIssuer([shop, late, ...own], { onAuditEvent: (event) => void events.push(event) })
    const wallet = makeWallet()
    const browser = new Browser(url)
    const { token } = await browser.signIn(wallet)
    const config = await discover(url)
    // The first, which is used no more from here on.
    const first = await request(config, { scope: 'openid' })
    const tokens = await first.redeem(await decide(browser, await browser.open(first.address)))
    await sleep(2)
    for (let index = 0; index < 99; index++) {
      const { address: end } = await browser.open(address(`own-${index}`))
      expect(end.searchParams.has('code')).toBe(true)
    }
    const list = async () => (await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })).json.apps
    expect(await list()).toHaveLength(100)
    const refused = { error: 'access_denied', description: expect.stringMatching(/has 100 applications.*sign out/) }
    const answer = ({ searchParams: found }: URL) => ({
      error: found.get('error'),
      description: found.get('error_description'),
    })
    expect(answer((await browser.open(address('own-99'))).address)).toEqual(refused)
    // The page of consent answers as much.
    const page = await browser.open((await request(await discover(url, late.metadata), { scope: 'openid' })).address)
    expect(contentOf(page.text).kind).toBe('consent')
    expect(answer(await decide(browser, page))).toEqual(refused)
    expect(await list()).toHaveLength(100)
    expect((await list()).map(({ clientId }: { clientId: string }) => clientId)).not.toContain('own-99')

    const another = new Browser(url)
    await another.signIn(wallet)
    expect((await another.open(address('own-99'))).address.searchParams.has('code')).toBe(true)
    expect(await list()).toHaveLength(100)
    expect((await list()).map(({ clientId }: { clientId: string }) => clientId)).not.toContain('shop')
    expect(await refusalOf(client.refreshTokenGrant(config, String(tokens.refresh_token)))).toBe('invalid_grant')
    expect(events).toContainEqual(expect.objectContaining({ type: 'app.disconnected', clientId: 'shop' }))
    // A session that an order made ends none of these, and is refused with words.
    const relayed = new Browser(url)
    await signInByOrder(relayed, wallet)
    const seen = await list()
    expect(answer((await relayed.open(address('own-100'))).address)).toEqual({
      error: 'access_denied',
      description: expect.stringMatching(/has 100 applications.*sign in with a wallet on this device/),
    })
    expect(await list()).toEqual(seen)
    expect(events.filter((event) => 'type' in event && event.type === 'app.disconnected')).toHaveLength(1)
    // What has ended makes room in the session.
    expect((await browser.open(address('own-100'))).address.searchParams.has('code')).toBe(true)
  })
})
