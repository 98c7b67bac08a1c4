import { expect, test } from 'vitest'
import { createCountersignClient } from '../../../src/browser/client/index.ts'
import { signInWithFound } from '../../../src/browser/wallets/found-sign-in.ts'
import type { FoundWallet } from '../../../src/browser/wallets/index.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { fetchFrom, MapStorage } from '../client/support.ts'

const keys = makeWallet()

/** A wallet with state of its own, as classes have. */
class HouseWallet {
  readonly adapterId = 'nimiq'
  readonly #keys = keys
  listeners = 0

  sign(message: string): object {
    return { publicKey: this.#keys.publicKeyHex, signature: this.#keys.sign(message) }
  }

  onAccountChange(): () => void {
    this.listeners++
    return () => {}
  }
}

function found(connect: FoundWallet['connect']): FoundWallet {
  return { id: 'house', name: 'House wallet', adapterId: 'nimiq', kind: 'page', connect }
}

/** Signs in with a found wallet, at a service of its own, and counts the questions to the wallet's user. */
async function setUp() {
  const { url } = await startService()
  const client = createCountersignClient({ baseUrl: url, fetch: fetchFrom(url), storage: new MapStorage() })
  const controller = new AbortController()
  const asked = { count: 0 }
  const signIn = (wallet: FoundWallet) =>
    signInWithFound(wallet, {
      client,
      signal: controller.signal,
      async ask<T>(question: () => T): Promise<Awaited<T>> {
        asked.count++
        return await question()
      },
    })
  return { client, controller, asked, signIn }
}

test('a wallet that was found signs in, and its account switches are heard', async () => {
  const { client, asked, signIn } = await setUp()
  const wallet = new HouseWallet()
  const { session } = await signIn(found(() => wallet))
  expect(session.address).toBe(keys.address)
  expect(asked.count).toBe(1)
  client.onAccountChange(() => {})
  expect(wallet.listeners).toBe(1)
})

test('one that takes its time to connect is asked twice; one that never does is left', async () => {
  const { asked, controller, signIn } = await setUp()
  await signIn(found(async () => new HouseWallet()))
  expect(asked.count).toBe(2)
  const left = signIn(found(() => new Promise(() => {})))
  controller.abort()
  await expect(left).rejects.toMatchObject({ code: 'ABORTED' })
})

test.each([
  [{ code: 4001 }, 'WALLET_DECLINED'],
  [new Error('gone'), 'WALLET_FAILED'],
])('one that does not connect fails with a code: %j', async (thrown, code) => {
  const { signIn } = await setUp()
  await expect(signIn(found(() => Promise.reject(thrown)))).rejects.toMatchObject({ code })
})
