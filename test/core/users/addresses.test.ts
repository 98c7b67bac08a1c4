import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Keyring } from '../../../src/base/token.ts'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import { Sessions } from '../../../src/core/users/sessions.ts'
import { openStore } from '../../../src/index.ts'
import { dumpStore } from '../../support/store-dump.ts'
import { redisUrl } from '../../support/stores.ts'
import { temporaryStore } from '../../support/temporary-folder.ts'

const ip = '203.0.113.77'
const details = {
  userId: 'usr_1',
  adapterId: 'nimiq',
  publicKeyHex: 'ab'.repeat(32),
  address: 'NQ07 0000 0000 0000 0000 0000 0000 0000 0000',
  ip,
  userAgent: 'a browser',
}
const places = [
  { name: 'SQLite', open: temporaryStore },
  ...(redisUrl === undefined ? [] : [{ name: 'Redis', open: redisUrl }]),
]

describe.each(places)('addresses of sessions on $name', ({ open }) => {
  async function start(addressTtlSeconds?: number) {
    const url = await open()
    const store = await openStore(url)
    const lives = { ttlSeconds: 60, absoluteTtlSeconds: 60, addressTtlSeconds }
    const sessions = new Sessions(lives, store, new Keyring(['a secret '.repeat(4)]))
    // SQLite has what is over until it is swept, which is done every now and then.
    const isStored = async (): Promise<boolean> =>
      (await dumpStore(url)).some(({ text, ttlMs }) => ttlMs > 0 && text.includes(ip))
    return { store, sessions, isStored, [Symbol.asyncDispose]: async () => await store.close() }
  }

  test('are kept as long as the session by default', async () => {
    await using place = await start()
    const { sessions, isStored } = place
    const { session } = await sessions.create(details)
    expect((await sessions.list('usr_1')).find(({ id }) => id === session.id)?.ip).toBe(ip)
    expect(await isStored()).toBe(true)
    await sessions.end('usr_1', session.id)
    expect(await isStored()).toBe(false)
  })

  test('are kept for as long as the setting says, and the session lives on without', async () => {
    await using place = await start(1)
    const { sessions, isStored } = place
    const { token, session } = await sessions.create(details)
    expect(session.ip).toBe(ip)
    const listed = async () => (await sessions.list('usr_1')).find(({ id }) => id === session.id)?.ip
    expect(await listed()).toBe(ip)
    await setTimeout(1_100)
    expect(await listed()).toBe('')
    expect(await sessions.find(token)).toMatchObject({ id: session.id, ip: '', userAgent: 'a browser' })
    await sessions.end('usr_1', session.id)
    expect(await isStored()).toBe(false)
  })

  test('leave the store with the session, however that ends', async () => {
    await using place = await start(30)
    const { sessions, isStored } = place
    const [ended, takenBack] = [await sessions.create(details), await sessions.create(details)]
    expect(await isStored()).toBe(true)
    await sessions.end('usr_1', ended.session.id)
    await sessions.takeBack('usr_1', takenBack.session.id)
    expect(await isStored()).toBe(false)
  })

  test('are not stored at all with 0', async () => {
    await using place = await start(0)
    const { sessions, store, isStored } = place
    const { session } = await sessions.create(details)
    const computers = new KnownComputers(store, { addressTtlSeconds: 0 })
    const identity = { ...details, subject: details.publicKeyHex }
    await computers.remember(identity, 'computer', { orderId: 'order', at: Date.now() }, { ip, userAgent: 'a browser' })
    expect(await computers.list(identity)).toMatchObject([{ ip: '', userAgent: 'a browser' }])
    expect(await isStored()).toBe(false)
    expect((await sessions.list('usr_1')).find(({ id }) => id === session.id)?.ip).toBe('')
  })
})
