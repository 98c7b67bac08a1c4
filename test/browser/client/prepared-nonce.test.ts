import { describe, expect, test, vi } from 'vitest'
import {
  type CountersignClient,
  type CountersignClientOptions,
  createCountersignClient,
  type Wallet,
} from '../../../src/browser/client/index.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { codeOf, MapStorage, pageWallet, stubPage } from './support.ts'

const wallet = makeWallet()

async function setUp(options: CountersignClientOptions = {}) {
  const storage = new MapStorage()
  const { url } = await startService({ appName: 'Tally' })
  const client = createCountersignClient({ baseUrl: url, storage, wallet: pageWallet(wallet), ...options })
  return { url, storage, client }
}

describe('prepareSignIn', () => {
  test('lets the wallet open before anything is waited for, once for each nonce', async () => {
    const { client } = await setUp()
    const order: string[] = []
    const recording: Wallet = {
      sign: (message) => {
        order.push(message.split('\n')[0] as string)
        return pageWallet(wallet).sign(message)
      },
    }
    await client.prepareSignIn()
    const signedIn = client.signInWallet({ wallet: recording })
    expect(order).toEqual(['Tally requests authentication'])
    const second = client.signInWallet({ wallet: recording })
    expect(order).toHaveLength(1)
    expect((await signedIn).ok).toBe(true)
    expect((await second).ok).toBe(true)
  })

  test('keeps the nonce for the next tap when the user declines', async () => {
    const issued = vi.fn(fetch)
    const { client } = await setUp({ fetch: issued })
    await client.prepareSignIn()
    const declining: Wallet = { sign: () => Promise.reject(new Error('User rejected the request')) }
    expect(await codeOf(client.signInWallet({ wallet: declining }))).toBe('WALLET_DECLINED')
    await client.signInWallet()
    expect(issued.mock.calls.map(([url]) => String(url).split('/').at(-1))).toEqual(['nonce', 'verify'])
  })

  test('does not use a nonce that was asked for under another application name', async () => {
    const { client } = await setUp()
    await client.prepareSignIn()
    expect(await codeOf(client.signInWallet({ appName: 'Another' }))).toBe('APP_NAME_MISMATCH')
  })

  test('is told by the age of a nonce, not by this device\u2019s clock', async () => {
    const { url, storage } = await setUp()
    // The service is in this process and goes by the same clock: it is set right for as long as a call takes.
    const skewMs = 365 * 86_400_000
    const issued = vi.fn(async (input: RequestInfo | URL, init?: RequestInit) => {
      vi.setSystemTime(Date.now() - skewMs)
      const response = await fetch(input, init)
      vi.setSystemTime(Date.now() + skewMs)
      return response
    })
    const client = createCountersignClient({ baseUrl: url, storage, wallet: pageWallet(wallet), fetch: issued })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + skewMs })
    try {
      await client.prepareSignIn()
      await client.signInWallet()
      expect(issued).toHaveBeenCalledTimes(2)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a run that was ended does not take the nonce of the next one away', async () => {
    const answers: (() => void)[] = []
    const slow: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      await new Promise<void>((resolve) => answers.push(resolve))
      return response
    }
    const { client } = await setUp({ fetch: slow })
    const first = new AbortController()
    const started = [client.prepareSignIn({ signal: first.signal })]
    first.abort()
    started.push(client.prepareSignIn())
    await vi.waitFor(() => expect(answers).toHaveLength(2), 20_000)
    for (const answer of answers.reverse()) answer()
    await Promise.all(started)
    expect(await opensAtOnce(client)).toBe(true)
  })

  test('aborting an earlier preparation leaves a later one alone', async () => {
    const { client } = await setUp()
    const first = new AbortController()
    await client.prepareSignIn({ signal: first.signal })
    await client.prepareSignIn()
    first.abort()
    expect(await opensAtOnce(client)).toBe(true)
  })

  test('a nonce that comes after the end is not kept', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const slow: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      await promise
      return response
    }
    const { client } = await setUp({ fetch: slow })
    const controller = new AbortController()
    const started = client.prepareSignIn({ signal: controller.signal })
    controller.abort()
    resolve()
    await started
    expect(await opensAtOnce(client)).toBe(false)
  })

  test('does not ask the wallet for a caller that has left', async () => {
    const { client } = await setUp()
    await client.prepareSignIn()
    const signal = AbortSignal.abort()
    const sign = vi.fn()
    expect(await codeOf(client.signInWallet({ wallet: { sign }, signal }))).toBe('ABORTED')
    expect(sign).not.toHaveBeenCalled()
  })

  test('fetches another when the nonce has too little time left, and none once it is over', async () => {
    const issued = vi.fn(fetch)
    const { client } = await setUp({ fetch: issued })
    const controller = new AbortController()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    try {
      await client.prepareSignIn({ signal: controller.signal })
      expect(issued).toHaveBeenCalledTimes(1)
      // Of its 300 seconds, 60 are the user's.
      vi.advanceTimersByTime(239_000)
      expect(issued).toHaveBeenCalledTimes(1)
      vi.advanceTimersByTime(2000)
      await vi.waitFor(() => expect(issued).toHaveBeenCalledTimes(2), 20_000)
      controller.abort()
      vi.advanceTimersByTime(600_000)
      expect(issued).toHaveBeenCalledTimes(2)
    } finally {
      vi.useRealTimers()
    }
  })
})

/** Whether the wallet is asked before anything is waited for. */
async function opensAtOnce(client: CountersignClient): Promise<boolean> {
  const sign = vi.fn(() => Promise.reject(new Error('declined')))
  const signedIn = client.signInWallet({ wallet: { sign } })
  const asked = sign.mock.calls.length > 0
  expect(await codeOf(signedIn)).toBe('WALLET_DECLINED')
  return asked
}

describe('prepareSignIn in a page', () => {
  test('fetches no nonce for a hidden page, and one when it is shown again', async () => {
    const issued = vi.fn(fetch)
    const { client } = await setUp({ fetch: issued })
    const tab = stubPage('visible')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    try {
      await client.prepareSignIn()
      tab.show('hidden')
      vi.advanceTimersByTime(3_600_000)
      expect(issued).toHaveBeenCalledTimes(1)
      tab.show('visible')
      expect(issued).toHaveBeenCalledTimes(2)
      tab.online()
      await vi.waitFor(
        () => expect(issued.mock.settledResults.every(({ type }) => type === 'fulfilled')).toBe(true),
        20_000,
      )
    } finally {
      vi.useRealTimers()
      vi.unstubAllGlobals()
    }
  })
})
