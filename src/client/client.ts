import { connectServices, type Services, toClientError } from './connect.ts'
import { given, type OrderCalls, orderCalls } from './orders.ts'
import { plain } from './plain.ts'
import { PreparedNonce } from './prepared-nonce.ts'
import { callSignal, type RestOptions, restSignIn } from './rest.ts'
import { type SessionCalls, sessionCalls } from './sessions.ts'
import { type SignInApi, type SignInOptions, signIn } from './sign-in.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'
import type { NonceChallenge, SignInResult } from './types.ts'

/** How to make a client. What a single call can also be told is the default for those that are not. */
export interface CountersignClientOptions extends Omit<SignInOptions, 'signal'>, TokenStoreOptions, RestOptions {
  /** Makes the requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /**
   * Path of the REST endpoints for direct sign-in. When it is given, `signInWallet` uses them, for hosts that serve no
   * others; without it, it uses Connect like all other calls.
   */
  readonly endpointPrefix?: string | undefined
  /**
   * How long an order's stream may be silent before it is taken for dead, milliseconds. Default 40,000; the service gives a
   * sign of life every 15,000.
   */
  readonly heartbeatTimeoutMs?: number | undefined
}

/** How a nonce is prepared. */
export type PrepareSignInOptions = Pick<SignInOptions, 'appName' | 'signal'>

/** A client of one service, for web pages and whatever else has `fetch`. All calls reject with a `CountersignClientError`. */
export interface CountersignClient extends OrderCalls, SessionCalls {
  /**
   * Signs in with a wallet that this device can reach: nonce, wallet signature, verify. Call it from a user's gesture: the
   * wallet may open a window. Not retried: after NETWORK, sign in again.
   */
  signInWallet(options?: SignInOptions): Promise<SignInResult>
  /**
   * Fetches a nonce before it is needed, so that `signInWallet` has no network call between the tap and the wallet. It is kept
   * fresh for as long as the page can be seen, until the sign-in or until `signal` aborts.
   */
  prepareSignIn(options?: PrepareSignInOptions): Promise<void>
  /** The session token that was kept at sign-in; `undefined` when there is none. */
  readStoredToken(): string | undefined
  /** Drops the stored token. It ends no session: `signOut` does. */
  clearStoredToken(): void
}

/** Makes a client. Throws a `TypeError` when an option does not fit. */
export function createCountersignClient(options: CountersignClientOptions = {}): CountersignClient {
  const { baseUrl = '', timeoutMs = 15_000, heartbeatTimeoutMs = 40_000, autoPersistToken = true } = options
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
      tokens,
      autoPersistToken,
      proofDefaults,
      timeoutMs,
      silenceMs: heartbeatTimeoutMs,
    }),
  }
}

function connectSignIn({ signIn: service }: Services, timeoutMs: number): SignInApi {
  const run = async <T>(call: Promise<Parameters<typeof plain>[0]>, signal: AbortSignal | undefined): Promise<T> => {
    try {
      return plain<T>(await call)
    } catch (thrown) {
      throw toClientError(thrown, signal)
    }
  }
  return {
    issueNonce: (appName, signal) =>
      run<NonceChallenge>(
        service.issueNonce(appName === undefined ? {} : { appName }, { signal: callSignal(signal, timeoutMs) }),
        signal,
      ),
    verifySignIn: (proof, signal) =>
      run<SignInResult>(service.verifySignIn(proof, { signal: callSignal(signal, timeoutMs) }), signal),
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
