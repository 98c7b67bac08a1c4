import { requireHttp } from './call.ts'
import { type ClientCalls, type ClientCallsOptions, clientCalls } from './calls.ts'
import { connectApi, connectServices } from './connect.ts'
import { type RestOptions, restCalls, restSignIn } from './rest-api.ts'
import { TokenStore } from './token-store.ts'

/** Options of {@link createCountersignClient}. Those that a call has too are its defaults. */
export interface CountersignClientOptions extends ClientCallsOptions, RestOptions {
  /** Function that makes the requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /**
   * Path of the REST endpoints for direct sign-in. With it, `signInWallet` uses REST, for hosts that serve nothing
   * else; without it, Connect, like all other calls.
   */
  readonly endpointPrefix?: string | undefined
}

/**
 * A client of one service, for every environment that has `fetch`. All calls reject with a `CountersignClientError`.
 */
export interface CountersignClient extends ClientCalls {}

/** Makes a client. Throws a `TypeError` if `baseUrl` is not an http or https address. */
export function createCountersignClient(options: CountersignClientOptions = {}): CountersignClient {
  const { baseUrl = '', endpointPrefix } = options
  requireHttp(baseUrl)
  const fetch = (): typeof globalThis.fetch => options.fetch ?? globalThis.fetch
  const tokens = new TokenStore(options)
  const token = (): string | undefined => tokens.read()
  const api = connectApi(connectServices({ baseUrl, fetch, token }), token)
  const signIn =
    endpointPrefix === undefined
      ? api.signIn
      : restSignIn(
          restCalls((url, init) => fetch()(url, init), options),
          endpointPrefix,
        )
  return clientCalls({ ...api, signIn, tokens }, options)
}
