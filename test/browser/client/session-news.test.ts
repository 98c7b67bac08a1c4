import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type ClientCalls,
  createCountersignClient,
  type Session,
  type Wallet,
} from '../../../src/browser/client/index.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { MapStorage, pageWallet, stubPage } from './support.ts'

const wallet = makeWallet()

async function setUp() {
  const { url } = await startService()
  const storage = new MapStorage()
  return { url, storage, client: createCountersignClient({ baseUrl: url, storage, wallet: pageWallet(wallet) }) }
}

/** What a client tells of its session: identifiers, and undefined for none. */
function told(client: ClientCalls) {
  const ids: (string | undefined)[] = []
  const stop = client.onSession((session: Session | undefined) => void ids.push(session?.id))
  return { ids, stop }
}

describe('onSession', () => {
  test('tells a sign-in and a sign-out, once each, until it is ended', async () => {
    const { client } = await setUp()
    const { ids, stop } = told(client)
    const { session } = await client.signInWallet()
    expect(ids).toEqual([session.id])
    await client.getCurrentSession()
    await client.signOut()
    await client.signOut()
    expect(ids).toEqual([session.id, undefined])
    stop()
    await client.signInWallet()
    expect(ids).toHaveLength(2)
  })

  test('tells the session of an order', async () => {
    const { client } = await setUp()
    const { ids } = told(client)
    const order = await client.startOrder({ kind: 'login' })
    const claim = await client.claimOrder(order.claimUrl)
    await client.approveOrder(claim, { challenge: await client.getOrderChallenge(claim) })
    const finalized = await client.finalizeOrder(order)
    expect(ids).toEqual([finalized.kind === 'login' ? finalized.session.id : 'no login'])
  })

  test('tells that the session has ended elsewhere, when a call finds out', async () => {
    const { client, url } = await setUp()
    const { session } = await client.signInWallet()
    const other = createCountersignClient({ baseUrl: url, storage: new MapStorage(), wallet: pageWallet(wallet) })
    await other.signInWallet()
    const { ids } = told(client)
    await other.revokeSession(session.id)
    expect(ids).toEqual([])
    expect(await client.getCurrentSession()).toBeUndefined()
    expect(ids).toEqual([undefined])
  })

  test('does not take an outage for the end of the session', async () => {
    const { url, storage } = await setUp()
    const fetch = () => Promise.reject(new TypeError('fetch failed'))
    const client = createCountersignClient({ baseUrl: url, storage, fetch })
    storage.setItem('countersign.token', 'css_kept')
    const { ids } = told(client)
    await expect(client.getCurrentSession()).rejects.toMatchObject({ code: 'NETWORK' })
    await expect(client.signOut()).rejects.toMatchObject({ code: 'NETWORK' })
    expect(ids).toEqual([])
    expect(client.readStoredToken()).toBe('css_kept')
  })
})

describe('news from another client', () => {
  /** Two clients of one page origin, as in two tabs. The second one's questions for the session wait for `gate`. */
  async function twoTabs() {
    const { url, storage, client } = await setUp()
    stubPage('visible')
    vi.stubGlobal('location', new URL('https://app.example'))
    onTestFinished(() => void vi.unstubAllGlobals())
    const asked = vi.fn()
    let gate: Promise<unknown> = Promise.resolve()
    const second = createCountersignClient({
      baseUrl: url,
      storage,
      wallet: pageWallet(makeWallet()),
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        if (!String(input).includes('/api/auth/session?')) return response
        asked()
        await gate
        return response
      },
    })
    const news = told(second)
    onTestFinished(news.stop)
    return { first: client, second, asked, ...news, hold: (until: Promise<unknown>) => (gate = until) }
  }

  test('is asked for at the service', async () => {
    const { first, ids, asked } = await twoTabs()
    const { session } = await first.signInWallet()
    await expect.poll(() => ids).toEqual([session.id])
    await first.signOut()
    await expect.poll(() => ids).toEqual([session.id, undefined])
    expect(asked).toHaveBeenCalledTimes(2)
  })

  test('news that is overtaken by a change here is not told', async () => {
    const { first, second, ids, asked, hold } = await twoTabs()
    const answered = Promise.withResolvers<void>()
    hold(answered.promise)
    await first.signInWallet()
    await expect.poll(() => asked).toHaveBeenCalled()
    const { session } = await second.signInWallet()
    answered.resolve()
    // The next news goes through the same gate, after the one that was held.
    await first.signOut()
    await expect.poll(() => ids.at(-1)).toBeUndefined()
    expect(ids).toEqual([session.id, undefined])
  })
})

describe('onAccountChange', () => {
  /** A wallet whose user switches accounts when the test says so. */
  function switchingWallet() {
    const listeners = new Set<(account: { address: string } | undefined) => void>()
    const made: Wallet = {
      ...pageWallet(wallet),
      onAccountChange: (listener) => {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    }
    return { wallet: made, listeners, change: (address: string) => [...listeners].map((tell) => tell({ address })) }
  }

  test('passes on what the wallet tells, and ends no session', async () => {
    const { url, storage } = await setUp()
    const own = switchingWallet()
    const client = createCountersignClient({ baseUrl: url, storage, wallet: own.wallet })
    const { ids } = told(client)
    const accounts: unknown[] = []
    const stop = client.onAccountChange((account) => void accounts.push(account))
    own.change('first')
    const { session } = await client.signInWallet()
    own.change('second')
    expect(accounts).toEqual([{ address: 'first' }, { address: 'second' }])
    expect(ids).toEqual([session.id])
    expect((await client.getCurrentSession())?.id).toBe(session.id)
    stop()
    expect(own.listeners.size).toBe(0)
  })

  test('follows the wallet that has signed in', async () => {
    const { url, storage } = await setUp()
    const [own, other] = [switchingWallet(), switchingWallet()]
    const client = createCountersignClient({ baseUrl: url, storage, wallet: own.wallet })
    const accounts: unknown[] = []
    client.onAccountChange((account) => void accounts.push(account?.address))
    await client.signInWallet({ wallet: other.wallet })
    own.change('of the first wallet')
    other.change('of the second wallet')
    expect(accounts).toEqual(['of the second wallet'])
    // One that cannot tell, and no wallet at all.
    await client.signInWallet({ wallet: pageWallet(wallet) })
    other.change('of a wallet that is not used any more')
    expect(accounts).toHaveLength(1)
    createCountersignClient({ baseUrl: url, storage }).onAccountChange(() => {})()
  })
})
