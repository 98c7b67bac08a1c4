import { expect, onTestFinished, test } from 'vitest'
import { OfflineAccess } from '../../src/oidc/session-ends.ts'
import { openStore } from '../../src/store/open.ts'

const session = {
  id: 'session',
  userId: 'user',
  adapterId: 'nimiq',
  publicKeyHex: '00',
  address: 'NQ00',
  createdAt: 1,
  expiresAt: 2,
  ip: '',
  userAgent: '',
}

test('offline access that begins while all of it is ended is found by the next call that ends all', async () => {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const offline = new OfflineAccess(store)
  // Between the two steps of the beginning.
  const create = store.create.bind(store)
  store.create = async (...call) => {
    await offline.endThose({ userId: session.userId })
    return await create(...call)
  }
  await offline.keep(session)
  expect(await offline.of(session.userId)).toMatchObject([{ id: session.id }])
  await offline.endThose({ userId: session.userId })
  expect(await offline.of(session.userId)).toEqual([])
  expect(await offline.find(session.id)).toBeUndefined()
})
