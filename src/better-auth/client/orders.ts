import type { BetterAuthClientOptions } from 'better-auth/client'
import type { OrderApi } from '../../client/api.ts'
import { restOrders } from '../../client/rest-api.ts'
import { restWatch } from '../../client/rest-watch.ts'
import { type BetterFetch, callerOf, openStream } from './fetch.ts'

/** The calls for orders over Better Auth's REST endpoints. */
export function orderService($fetch: BetterFetch, options: BetterAuthClientOptions | undefined): OrderApi {
  const call = callerOf($fetch)
  return {
    ...restOrders(call),
    watchOrder: restWatch({ open: (path, init) => openStream($fetch, options, path, init), call }),
  }
}
