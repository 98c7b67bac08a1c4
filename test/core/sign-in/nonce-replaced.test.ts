import { describe, expect, test, vi } from 'vitest'
import { OriginPolicy } from '../../../src/core/origin-policy.ts'
import { type NonceStore, Nonces } from '../../../src/core/sign-in/nonce.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { from } from '../order/support.ts'

const origin = 'https://app.example'
const settings = { appName: 'App', ttlSeconds: 60 }
/** Whoever asks may use a nonce. */
const unenforced = new OriginPolicy({ enforce: false, own: origin, trusted: [origin] })

/** The record of a nonce with another text to sign. */
function forged(record: string): string {
  return JSON.stringify({ ...JSON.parse(record), message: 'what the attacker has a signature of' })
}

/** The application's nonce store; somebody writes to it after each read. */
function replacedStore(withTake: boolean): NonceStore & { readonly map: Map<string, string> } {
  const map = new Map<string, string>()
  const replace = (key: string): void => {
    const value = map.get(key)
    if (value !== undefined) map.set(key, forged(value))
  }
  return {
    map,
    async get(key) {
      const value = map.get(key)
      replace(key)
      return value
    },
    set: async (key, value) => map.set(key, value),
    delete: async (key) => map.delete(key),
    ...(withTake
      ? {
          async take(key: string) {
            const value = map.get(key)
            map.delete(key)
            return value
          },
        }
      : {}),
  }
}

describe('a nonce whose record is replaced between the look at it and its use is not found', () => {
  test.each([true, false])('in a nonce store of the application, with take: %s', async (withTake) => {
    const custom = replacedStore(withTake)
    const nonces = new Nonces({ ...settings, store: await memoryStore(), custom })
    const { nonceId } = await nonces.issue(origin)
    const refused = nonces.consume(nonceId, { request: from(undefined), origins: unenforced })
    await expect(refused).rejects.toMatchObject({ reason: 'NONCE_NOT_FOUND' })
    await expect(nonces.consume(nonceId, { request: from(undefined), origins: unenforced })).rejects.toMatchObject({
      reason: 'NONCE_NOT_FOUND',
    })
  })

  test('in the service’s own store, for a caller of unknown or other origin', async () => {
    for (const caller of [undefined, 'https://other.example']) {
      const store = await memoryStore()
      const nonces = new Nonces({ ...settings, store })
      const { nonceId } = await nonces.issue(origin)
      const key = `nonce:${nonceId}`
      const replace = async (): Promise<void> => {
        const value = (await store.take(key)) as string
        await store.create(key, forged(value), { ttlMs: 60_000 })
      }
      const take = store.take.bind(store)
      vi.spyOn(store, 'take').mockImplementationOnce(async (taken) => {
        await replace()
        return await take(taken)
      })
      await expect(nonces.consume(nonceId, { request: from(caller), origins: unenforced })).rejects.toMatchObject({
        reason: 'NONCE_NOT_FOUND',
      })
    }
  })

  test.each([
    ['with take', true, undefined],
    ['without take', false, undefined],
    ['without take, which returns null', false, null],
  ])('and one that is gone by then is not found either, in a nonce store %s', async (_name, withTake, absent) => {
    const custom = replacedStore(withTake)
    let reads = 0
    const gone: NonceStore = {
      ...custom,
      async get(key) {
        if (reads++ > 0) return absent
        const value = custom.map.get(key)
        custom.map.delete(key)
        return value
      },
    }
    const nonces = new Nonces({ ...settings, store: await memoryStore(), custom: gone })
    const { nonceId } = await nonces.issue(origin)
    await expect(nonces.consume(nonceId, { request: from(undefined), origins: unenforced })).rejects.toMatchObject({
      reason: 'NONCE_NOT_FOUND',
    })
  })
})
