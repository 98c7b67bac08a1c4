import { type Call, run } from './call.ts'
import { ComputerKey } from './computer-key.ts'
import { connectServices, type Services } from './connect.ts'
import { given } from './given.ts'
import { defaultHeartbeatTimeoutMs } from './order-watch.ts'
import { type OrderCalls, orderCalls } from './orders.ts'
import { plain } from './plain.ts'
import { PreparedNonce } from './prepared-nonce.ts'
import { type RestOptions, restSignIn } from './rest.ts'
import { type SessionCalls, sessionCalls } from './sessions.ts'
import { type SignInApi, type SignInOptions, signIn } from './sign-in.ts'
import { defaultTimeoutMs } from './time-limit.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'
import type { NonceChallenge, SignInResult } from './types.ts'

/** Options of {@link createCountersignClient}. Those that a call has too are its defaults. */
export interface CountersignClientOptions extends Omit<SignInOptions, 'signal'>, TokenStoreOptions, RestOptions {
  /** Function that makes the requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /**
   * Path of the REST endpoints for direct sign-in. With it, `signInWallet` uses REST, for hosts that serve nothing else;
   * without it, Connect, like all other calls.
   */
  readonly endpointPrefix?: string | undefined
  /**
   * Longest silence of an order's event stream before it is opened again, in milliseconds. Default 40,000; the service sends
   * a heartbeat every 15,000.
   */
  readonly heartbeatTimeoutMs?: number | undefined
  /**
   * Whether orders are started with a key of this computer, which the client makes and keeps in the browser's IndexedDB: the
   * phone's user can then let the computer be remembered, so that its next orders need no return code. Default true.
   */
  readonly knownComputer?: boolean | undefined
}

/** Options of {@link CountersignClient.prepareSignIn}. */
export type PrepareSignInOptions = Pick<SignInOptions, 'appName' | 'signal'>

/** A client of one service, for every environment that has `fetch`. All calls reject with a `CountersignClientError`. */
export interface CountersignClient extends OrderCalls, SessionCalls {
  /**
   * Signs in with a wallet on this device: nonce, wallet signature, verification. Call it in a user gesture, because the
   * wallet may open a window. It does not retry: after NETWORK, call it again.
   */
  signInWallet(options?: SignInOptions): Promise<SignInResult>
  /**
   * Fetches a nonce in advance, so that `signInWallet` makes no network call between the tap and the wallet. The nonce is
   * replaced before it expires for as long as the page is visible, until the user has signed in or `signal` aborts.
   */
  prepareSignIn(options?: PrepareSignInOptions): Promise<void>
  /** The stored session token, or `undefined` if there is none. */
  readStoredToken(): string | undefined
  /** Removes the stored session token. The session itself goes on; `signOut` ends it. */
  clearStoredToken(): void
}

/** Makes a client. Throws a `TypeError` if `baseUrl` is not an http or https address. */
export function createCountersignClient(options: CountersignClientOptions = {}): CountersignClient {
  const { baseUrl = '', autoPersistToken = true, knownComputer = true } = options
  const { timeoutMs = defaultTimeoutMs, heartbeatTimeoutMs = defaultHeartbeatTimeoutMs } = options
  requireHttp(baseUrl)
  const fetch = (): typeof globalThis.fetch => options.fetch ?? globalThis.fetch
  const tokens = new TokenStore(options)
  const services = connectServices({ baseUrl, fetch, token: () => tokens.read() })
  const api =
    options.endpointPrefix === undefined
      ? connectSignIn(services, timeoutMs)
      : restSignIn((url, init) => fetch()(url, init), options)
  const { wallet, requestAddressBeforeVerify } = options
  const proofDefaults = { wallet, requestAddressBeforeVerify }
  const signInDefaults = { ...proofDefaults, appName: options.appName, autoPersistToken }
  const prepared = new PreparedNonce((appName) => api.issueNonce(appName, undefined))
  return {
    signInWallet: (call = {}) => signIn(api, tokens, { ...signInDefaults, ...given(call) }, prepared),
    prepareSignIn: ({ appName = options.appName, signal } = {}) => prepared.start(appName, signal),
    readStoredToken: () => tokens.read(),
    clearStoredToken: () => tokens.clear(),
    ...sessionCalls(services.session, tokens, timeoutMs),
    ...orderCalls({
      service: services.order,
      computer: knownComputer ? new ComputerKey(baseUrl) : undefined,
      tokens,
      autoPersistToken,
      proofDefaults,
      timeoutMs,
      heartbeatTimeoutMs,
    }),
  }
}

/** The calls of a direct sign-in over Connect. */
function connectSignIn({ signIn: service }: Services, timeoutMs: number): SignInApi {
  const plainly = async <T>(call: Call<Parameters<typeof plain>[0]>, signal: AbortSignal | undefined): Promise<T> =>
    plain<T>(await run(call, signal, timeoutMs))
  return {
    issueNonce: (appName, signal) =>
      plainly<NonceChallenge>((call) => service.issueNonce(appName === undefined ? {} : { appName }, call), signal),
    verifySignIn: (proof, signal) => plainly<SignInResult>((call) => service.verifySignIn(proof, call), signal),
  }
}

function requireHttp(baseUrl: string): void {
  if (baseUrl === '') return
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== ''
  ) {
    throw new TypeError(`baseUrl must be an http or https address such as https://auth.example, not ${baseUrl}`)
  }
}
