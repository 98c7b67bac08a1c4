import { expect, onTestFinished, test } from 'vitest'
import { Keyring } from '../../src/base/token.ts'
import { OriginPolicy } from '../../src/core/origin-policy.ts'
import { Nonces } from '../../src/core/sign-in/nonce.ts'
import { Sessions } from '../../src/core/users/sessions.ts'
import { StandaloneHost } from '../../src/core/users/standalone.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { from } from '../core/order/support.ts'

const identity = { adapterId: 'nimiq', subject: '11', publicKeyHex: '11', address: 'NQ' }
const newer = /version 2 of a newer Countersign; this release reads versions up to 1: upgrade this instance/
const newerUser = /version 4 of a newer Countersign; this release reads versions up to 3: upgrade this instance/

async function open() {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const sessions = new Sessions({ ttlSeconds: 60, absoluteTtlSeconds: 60 }, store, new Keyring(['secret']))
  const settings = { syncAddressToUser: false, syncPublicKeyToUser: false, secureCookie: () => false }
  const origins = new OriginPolicy({ enforce: true, own: 'https://a.example', trusted: ['https://a.example'] })
  const host = new StandaloneHost({ ...settings, store, sessions, origins })
  const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
  const details = { userId: 'user', adapterId: 'nimiq', publicKeyHex: '11', address: 'NQ', ip: '', userAgent: '' }
  return { store, sessions, host, nonces, origins, details }
}

/** Gives a stored value another version, as another release would have written it. */
async function rewrite(store: Store, key: string, version: number | undefined): Promise<void> {
  const stored = await store.get(key)
  const { v, ...record } = JSON.parse(String(stored?.value))
  expect(v).toBe(1)
  const value = JSON.stringify(version === undefined ? record : { v: version, ...record })
  expect(await store.compareAndSet(key, Number(stored?.version), value, { ttlMs: 60_000 })).toBe(true)
}

test('a nonce of a newer release is refused in words that say what to do; one without a version is read', async () => {
  const { store, nonces, origins } = await open()
  const request = from('https://a.example')
  const { nonceId } = await nonces.issue('https://a.example')
  await rewrite(store, `nonce:${nonceId}`, 2)
  await expect(nonces.consume(nonceId, { request, origins })).rejects.toThrow(newer)
  const older = await nonces.issue('https://a.example')
  await rewrite(store, `nonce:${older.nonceId}`, undefined)
  expect((await nonces.consume(older.nonceId, { request, origins })).nonceId).toBe(older.nonceId)
})

test('a session of a newer release is refused in words that say what to do; one without a version is read', async () => {
  const { store, sessions, details } = await open()
  const { token, session } = await sessions.create(details)
  await rewrite(store, `session:${session.id}`, 2)
  await expect(sessions.find(token)).rejects.toThrow(newer)
  const older = await sessions.create(details)
  await rewrite(store, `session:${older.session.id}`, undefined)
  expect((await sessions.find(older.token))?.id).toBe(older.session.id)
})

test('a user of a newer release is refused in words that say what to do; one without a version is read', async () => {
  const { store, host } = await open()
  const { id } = await host.resolveUser(identity)
  await rewrite(store, `user:${id}`, undefined)
  expect(await host.findUser(id)).toEqual({ id, createdAt: expect.any(Number) })
  expect((await host.resolveUser(identity)).id).toBe(id)
  const stored = await store.get(`user:${id}`)
  const value = JSON.stringify({ ...JSON.parse(String(stored?.value)), v: 4 })
  await store.compareAndSet(`user:${id}`, Number(stored?.version), value, { ttlMs: 60_000 })
  await expect(host.resolveUser(identity)).rejects.toThrow(newerUser)
  await expect(host.findUser(id)).rejects.toThrow(newerUser)
})

test('a user keeps the id that releases before the subject gave', async () => {
  const { host } = await open()
  const publicKeyHex = '0a9b55420d3664996800f1d48f5683ced9b6666fd7d09e61641826f177350980'
  const { id } = await host.resolveUser({ ...identity, subject: publicKeyHex, publicKeyHex })
  expect(id).toBe('usr_O4F5rSAANNvaLJXsKwzy70')
})
