import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { changeRecord } from '../../src/base/record.ts'
import { Keyring } from '../../src/base/token.ts'
import { OriginPolicy } from '../../src/core/origin-policy.ts'
import { Nonces } from '../../src/core/sign-in/nonce.ts'
import { Sessions } from '../../src/core/users/sessions.ts'
import type { Store } from '../../src/store/store.ts'
import { from } from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { TestHost } from '../support/standalone.ts'

const identity = { adapterId: 'nimiq', subject: '11', publicKeyHex: '11', address: 'NQ' }
const refusal = /has version 2, and this release reads version 1: upgrade this instance$/

async function open() {
  const store = await memoryStore()
  const sessions = new Sessions({ ttlSeconds: 60, absoluteTtlSeconds: 60 }, store, new Keyring(['secret']))
  const origins = new OriginPolicy({ enforce: true, own: 'https://a.example', trusted: ['https://a.example'] })
  const host = new TestHost(store, { origins })
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
  const details = { userId: 'user', adapterId: 'nimiq', publicKeyHex: '11', address: 'NQ', ip: '', userAgent: '' }
  return { store, sessions, host, nonces, origins, details }
}

/** Gives a stored value another version, as a newer release would write it. */
async function rewrite(store: Store, key: string): Promise<void> {
  const stored = await store.get(key)
  const record = JSON.parse(String(stored?.value))
  expect(record.v).toBe(1)
  const value = JSON.stringify({ ...record, v: 2 })
  expect(await store.compareAndSet(key, Number(stored?.version), value, { ttlMs: 60_000 })).toBe(true)
}

test('a nonce of a newer release is refused in words that say what to do', async () => {
  const { store, nonces, origins } = await open()
  const request = from('https://a.example')
  const { nonceId } = await nonces.issue('https://a.example')
  await rewrite(store, `nonce:${nonceId}`)
  await expect(nonces.consume(nonceId, { request, origins })).rejects.toThrow(refusal)
})

test('a session of a newer release is refused in the words of docs/operations.md', async () => {
  const { store, sessions, details } = await open()
  const { token, session } = await sessions.create(details)
  await rewrite(store, `session:${session.id}`)
  const refused = await sessions.find(token).catch((thrown: Error) => thrown.message)
  expect(refused).toMatch(refusal)
  expect(await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')).toContain(`\n${refused}\n`)
})

test('a user of a newer release is refused in words that say what to do', async () => {
  const { store, host } = await open()
  const { id } = await host.resolveUser(identity)
  await rewrite(store, `user:${id}`)
  await expect(host.resolveUser(identity)).rejects.toThrow(refusal)
  await expect(host.users.find(id)).rejects.toThrow(refusal)
})

test('the id of a user is made of the wallet', async () => {
  const { host } = await open()
  const publicKeyHex = '0a9b55420d3664996800f1d48f5683ced9b6666fd7d09e61641826f177350980'
  const { id } = await host.resolveUser({ ...identity, subject: publicKeyHex, publicKeyHex })
  expect(id).toBe('usr_O4F5rSAANNvaLJXsKwzy70')
})

describe('changeRecord', () => {
  const life = { ttlMs: 60_000 }
  const read = (text: string) => Number(text)

  test('stores a first value, then one made of what is there', async () => {
    const { store } = await open()
    const add = () => changeRecord(store, 'sum', read, (sum = 0) => ({ value: String(sum + 1), life, sum }))
    expect(await add()).toEqual({ value: '1', life, sum: 0 })
    expect(await add()).toEqual({ value: '2', life, sum: 1 })
    expect(await store.get('sum')).toEqual({ value: '2', version: 2 })
  })

  test('changes nothing for undefined', async () => {
    const { store } = await open()
    expect(await changeRecord(store, 'none', read, () => undefined)).toBeUndefined()
    expect(await store.get('none')).toBeUndefined()
  })

  test('loses no change of callers at the same time', async () => {
    const { store } = await open()
    const add = () => changeRecord(store, 'sum', read, async (sum = 0) => ({ value: String(sum + 1), life }))
    await Promise.all(Array.from({ length: 50 }, add))
    expect((await store.get('sum'))?.value).toBe('50')
  })

  test('gives up on a store whose writes never succeed', async () => {
    const { store } = await open()
    const stuck = { ...store, get: async () => undefined, now: () => 0, create: async () => false }
    const change = vi.fn(() => ({ value: '', life }))
    const refusal = await changeRecord(stuck, 'session:telltale', read, change).catch((error: unknown) => error)
    expect(refusal).toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    expect(inspect(refusal)).not.toContain('telltale')
    expect(change).toHaveBeenCalledTimes(256)
  })
})
