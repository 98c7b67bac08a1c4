import { createConnectTransport } from '@connectrpc/connect-web'
import { vi } from 'vitest'
import * as connect from '../../../src/browser/client/connect.ts'
import type {
  CountersignClient,
  CountersignClientOptions,
  TokenStorage,
  Wallet,
} from '../../../src/browser/client/index.ts'
import type { TestWallet } from '../../support/wallet.ts'

/** A storage as a browser has it, for one test. */
export class MapStorage implements TokenStorage {
  readonly entries = new Map<string, string>()
  getItem = (key: string): string | null => this.entries.get(key) ?? null
  setItem = (key: string, value: string): void => void this.entries.set(key, value)
  removeItem = (key: string): void => void this.entries.delete(key)
}

/** A test wallet as a page finds it. */
export function pageWallet(wallet: TestWallet): Wallet {
  return {
    adapterId: 'nimiq',
    sign: async (message) => ({ publicKey: wallet.publicKeyHex, signature: wallet.sign(message) }),
    getAddress: async () => wallet.address,
  }
}

/** A client over the generated clients, with the options of the one over REST. */
export function connectClient({ fetch, ...options }: CountersignClientOptions): CountersignClient {
  const { baseUrl = '' } = options
  const own: typeof globalThis.fetch = (input, init) =>
    (fetch ?? globalThis.fetch)(String(input), { ...init, credentials: 'include', redirect: 'manual' })
  return connect.createCountersignClient({ transport: createConnectTransport({ baseUrl, fetch: own }), ...options })
}

/** The code of the error that a promise rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'no error',
    (error) => error.code ?? `no code: ${error}`,
  )
}

/** `fetch` in a page of this origin, whichever way the requests take. */
export function fetchFrom(origin: string): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('origin', origin)
    return fetch(input, { ...init, headers })
  }
}

/**
 * Gives this process what a browser has and Node lacks: a document that can be hidden, and events of the window. Take
 * it away with `vi.unstubAllGlobals`.
 */
export function stubPage(visibilityState: 'visible' | 'hidden'): {
  readonly show: (state: 'visible' | 'hidden') => void
  readonly online: () => void
} {
  const document = Object.assign(new EventTarget(), { visibilityState })
  const window = new EventTarget()
  vi.stubGlobal('document', document)
  vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
  vi.stubGlobal('removeEventListener', window.removeEventListener.bind(window))
  return {
    show: (state) => {
      document.visibilityState = state
      document.dispatchEvent(new Event('visibilitychange'))
    },
    online: () => void window.dispatchEvent(new Event('online')),
  }
}
