import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { createCountersignClient } from '../../../src/browser/client/index.ts'
import { SessionStore, storeOf } from '../../../src/browser/react/session-store.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { fetchFrom, MapStorage, pageWallet, stubPage } from '../client/support.ts'

afterEach(() => vi.unstubAllGlobals())

/** A client of a service whose answers to questions for the session can be held back. */
async function setUp() {
  const { url } = await startService()
  const gate = { open: Promise.resolve(), isDown: false }
  const asked: string[] = []
  const client = createCountersignClient({
    baseUrl: url,
    storage: new MapStorage(),
    wallet: pageWallet(makeWallet()),
    fetch: async (input, init) => {
      if (!input.includes('/session?')) return await fetchFrom(url)(input, init)
      asked.push(input)
      if (gate.isDown) throw new TypeError('the network is down')
      const response = await fetchFrom(url)(input, init)
      await gate.open
      return response
    },
  })
  const store = new SessionStore(client)
  const seen: string[] = []
  const subscribe = () => store.subscribe(() => seen.push(store.getState().status))
  return { client, store, gate, asked, seen, subscribe }
}

test('asks once, however many components show the session', async () => {
  const { store, asked, seen, subscribe } = await setUp()
  expect(store.getState().status).toBe('loading')
  // As StrictMode does.
  subscribe()()
  onTestFinished(subscribe())
  onTestFinished(store.subscribe(() => {}))
  await expect.poll(() => seen).toEqual(['signed-out'])
  expect(asked).toHaveLength(1)
})

test('an answer that is older than a sign-in does not undo it', async () => {
  const { client, store, gate, seen, subscribe } = await setUp()
  const held = Promise.withResolvers<void>()
  gate.open = held.promise
  onTestFinished(subscribe())
  const asking = store.refresh()
  await client.signInWallet()
  held.resolve()
  await asking
  await expect.poll(() => seen).toEqual(['signed-in'])
  expect(store.getState().status).toBe('signed-in')
})

test('an outage keeps the user, and the page asks again when it wakes up', async () => {
  const page = stubPage('visible')
  vi.stubGlobal('location', new URL('http://localhost'))
  const { client, store, gate, asked, subscribe } = await setUp()
  const stop = subscribe()
  const { session } = await client.signInWallet()
  await expect.poll(() => store.getState().session?.id).toBe(session.id)
  gate.isDown = true
  await store.refresh()
  expect(store.getState()).toMatchObject({
    status: 'unavailable',
    session: { id: session.id },
    error: { code: 'NETWORK' },
  })
  gate.isDown = false
  page.online()
  await expect.poll(() => store.getState().status).toBe('signed-in')
  gate.isDown = true
  await store.refresh()
  stop()
  const before = asked.length
  page.online()
  expect(asked).toHaveLength(before)
})

test('signs out, and says so only if the service does', async () => {
  const { client, store, subscribe } = await setUp()
  onTestFinished(subscribe())
  await client.signInWallet()
  await store.signOut()
  expect(store.getState()).toMatchObject({ status: 'signed-out', session: undefined })
  expect(await client.getCurrentSession()).toBeUndefined()
})

test('there is one store for a client', async () => {
  const { client } = await setUp()
  expect(storeOf(client)).toBe(storeOf(client))
  expect(storeOf({ ...client })).not.toBe(storeOf(client))
})
