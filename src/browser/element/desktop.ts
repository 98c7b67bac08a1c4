import { defaultTimeoutMs, requireHttp } from '../client/call.ts'
import type { ServiceAddress } from '../client/calls.ts'
import { ComputerKey } from '../client/computer-key.ts'
import { type DesktopCalls, desktopCalls } from '../client/desktop-orders.ts'
import { defaultHeartbeatTimeoutMs } from '../client/order-watch.ts'
import { type RestOptions, restDesktopOrders, restOf } from '../client/rest-api.ts'
import { restWatch } from '../client/rest-watch.ts'
import { announceSession } from '../client/session-news.ts'
import { TokenStore, type TokenStoreOptions } from '../client/token-store.ts'

/** The service that the element's attributes name. */
export interface ElementService
  extends ServiceAddress,
    Pick<RestOptions, 'endpointPrefix'>,
    Pick<TokenStoreOptions, 'tokenStorageKey'> {}

/**
 * What the element's calls are made of, over REST. Throws a `TypeError` if `baseUrl` is not an http or https address.
 */
export function partsOf({ baseUrl, basePath, tokenStorageKey }: ElementService) {
  requireHttp(baseUrl)
  return {
    rest: restOf((url, init) => fetch(url, init), { baseUrl, basePath }),
    parts: {
      baseUrl,
      tokens: new TokenStore({ tokenStorageKey }),
      timeoutMs: defaultTimeoutMs,
      onSession: () => announceSession({ tokenStorageKey, baseUrl }),
    },
  }
}

/** The calls that the element makes for orders. */
export function desktopOf(service: ElementService): DesktopCalls {
  const { rest, parts } = partsOf(service)
  return desktopCalls({
    ...parts,
    service: { ...restDesktopOrders(rest.call), watchOrder: restWatch(rest) },
    computer: new ComputerKey(parts.baseUrl),
    autoPersistToken: true,
    heartbeatTimeoutMs: defaultHeartbeatTimeoutMs,
  })
}
