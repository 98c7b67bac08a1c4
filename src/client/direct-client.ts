import { type ClientCalls, type ClientCallsOptions, clientCalls } from './calls.ts'
import { defaultPrefix, type Fetcher, type RestOptions, restOf } from './rest.ts'
import { restSessions, restSignIn, restWallets } from './rest-api.ts'
import { restOrders } from './rest-orders.ts'
import { restWatch } from './rest-watch.ts'
import { requireHttp } from './service-address.ts'
import { TokenStore } from './token-store.ts'

/** Options of {@link createDirectClient}. Those that a call has too are its defaults. */
export interface DirectClientOptions extends ClientCallsOptions, RestOptions {
  /** Function that makes the requests. Default: the global `fetch`. */
  readonly fetch?: Fetcher | undefined
}

/** A client of one service over REST. It has no `revokeSession` and no `revokeOtherSessions`, which REST does not have. */
export interface DirectClient extends ClientCalls {}

/**
 * Makes a client that uses REST and server-sent events: a third of the size of the one that uses Connect. If streams cannot be
 * read, it polls. Throws a `TypeError` if `baseUrl` is not an http or https address.
 */
export function createDirectClient(options: DirectClientOptions = {}): DirectClient {
  const { baseUrl = '', endpointPrefix = defaultPrefix } = options
  requireHttp(baseUrl)
  const rest = restOf((url, init) => (options.fetch ?? globalThis.fetch)(url, init), options)
  const tokens = new TokenStore(options)
  const token = (): string | undefined => tokens.read()
  const parts = {
    signIn: restSignIn(rest.call, endpointPrefix),
    order: { ...restOrders(rest.call), watchOrder: restWatch(rest) },
    session: restSessions(rest.call, token),
    wallet: restWallets(rest.call, endpointPrefix, token),
    tokens,
  }
  return clientCalls(parts, options).calls
}
