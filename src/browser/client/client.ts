import type { SignInResult } from '../../shared/session.ts'
import { defaultTimeoutMs, requireHttp } from './call.ts'
import { type ClientCalls, type ClientCallsOptions, clientCalls } from './calls.ts'
import {
  defaultPrefix,
  type Fetcher,
  type RestOptions,
  restInbox,
  restOf,
  restOrders,
  restSessions,
  restSignIn,
  restWallets,
} from './rest-api.ts'
import { restWatch } from './rest-watch.ts'
import { type SignInOptions, signIn } from './sign-in.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'

/** Options of {@link createCountersignClient}. Those that a call has too are its defaults. */
export interface CountersignClientOptions extends ClientCallsOptions, RestOptions {
  /** Function that makes the requests. Default: the global `fetch`. */
  readonly fetch?: Fetcher | undefined
}

/**
 * A client of one service, for every environment that has `fetch`. All calls reject with a `CountersignClientError`.
 */
export interface CountersignClient extends ClientCalls {}

/**
 * Makes a client over REST and server-sent events. If streams cannot be read, it polls. Throws a `TypeError` if
 * `baseUrl` is not an http or https address.
 */
export function createCountersignClient(options: CountersignClientOptions = {}): CountersignClient {
  const { baseUrl = '', endpointPrefix = defaultPrefix } = options
  requireHttp(baseUrl)
  const rest = restOf((url, init) => (options.fetch ?? globalThis.fetch)(url, init), options)
  const parts = {
    signIn: restSignIn(rest.call, endpointPrefix),
    order: { ...restOrders(rest.call), watchOrder: restWatch(rest) },
    session: restSessions(rest.call),
    wallet: restWallets(rest.call, endpointPrefix),
    inbox: restInbox(rest.call),
    tokens: new TokenStore(options),
  }
  return clientCalls(parts, options)
}

/** Options of {@link signInWithWallet}. */
export interface SignInWithWalletOptions extends SignInOptions, TokenStoreOptions, RestOptions {}

/**
 * Signs in with the caller's own `fetch`: nonce, wallet signature, verification. Small, for pages that need nothing
 * else of the client. Call it in a user gesture, because the wallet may open a window.
 *
 * Rejects with a `CountersignClientError`.
 */
export async function signInWithWallet(fetcher: Fetcher, options: SignInWithWalletOptions = {}): Promise<SignInResult> {
  const { baseUrl = '', endpointPrefix = defaultPrefix, timeoutMs = defaultTimeoutMs } = options
  const service = restSignIn(restOf(fetcher, options).call, endpointPrefix)
  return await signIn({ service, baseUrl, tokens: new TokenStore(options), timeoutMs }, options)
}
