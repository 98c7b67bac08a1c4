import { defaultTimeoutMs, requireHttp } from '../client/call.ts'
import { ComputerKey } from '../client/computer-key.ts'
import { type DesktopCalls, desktopCalls } from '../client/desktop-orders.ts'
import { defaultHeartbeatTimeoutMs } from '../client/order-watch.ts'
import { restDesktopOrders, restOf } from '../client/rest-api.ts'
import { restWatch } from '../client/rest-watch.ts'
import { announceSession } from '../client/session-news.ts'
import { TokenStore } from '../client/token-store.ts'

/** The service that the element's attributes name. */
export interface ElementService {
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  /** Path of the REST endpoints. */
  readonly basePath: string | undefined
  /** Path of the direct sign-in under `basePath`. */
  readonly endpointPrefix: string | undefined
  /** Key of the session token in `localStorage`. */
  readonly tokenStorageKey: string | undefined
}

/**
 * The calls that the element makes for orders, over REST. Throws a `TypeError` if `baseUrl` is not an http or https
 * address.
 */
export function desktopOf({ baseUrl, basePath, tokenStorageKey }: ElementService): DesktopCalls {
  requireHttp(baseUrl)
  const rest = restOf((url, init) => fetch(url, init), { baseUrl, basePath })
  return desktopCalls({
    service: { ...restDesktopOrders(rest.call), watchOrder: restWatch(rest) },
    baseUrl,
    computer: new ComputerKey(baseUrl),
    tokens: new TokenStore({ tokenStorageKey }),
    autoPersistToken: true,
    timeoutMs: defaultTimeoutMs,
    heartbeatTimeoutMs: defaultHeartbeatTimeoutMs,
    onSession: () => announceSession({ tokenStorageKey, baseUrl }),
  })
}
