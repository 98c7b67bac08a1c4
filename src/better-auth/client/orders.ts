import type { BetterAuthClientOptions } from 'better-auth/client'
import type { Services } from '../../client/connect.ts'
import { CountersignClientError } from '../../client/errors.ts'
import { readEventStream } from '../../client/event-stream.ts'
import { bearer, restOrders } from '../../client/rest-orders.ts'
import type { DesktopOrder } from '../../client/types.ts'
import { orderPaths } from '../../rest-paths.ts'
import { type BetterFetch, callerOf, openStream } from './fetch.ts'

interface WatchOptions {
  readonly signal?: AbortSignal
  readonly onHeader?: (headers: Headers) => void
}

/**
 * The calls of OrderService over Better Auth's REST endpoints, in the shape of the generated client, so that the client's own
 * order calls, with their retries and their watch, work over either.
 */
export function orderService($fetch: BetterFetch, options: BetterAuthClientOptions | undefined): Services['order'] {
  const service = {
    ...restOrders(callerOf($fetch)),
    async *watchOrder(
      { orderId, desktopToken, afterSequence }: DesktopOrder & { readonly afterSequence?: number },
      { signal, onHeader }: WatchOptions = {},
    ): AsyncGenerator<unknown> {
      const response = await openStream($fetch, options, orderPaths.events, {
        query: { orderId },
        headers: {
          authorization: bearer(desktopToken),
          ...(afterSequence === undefined ? {} : { 'last-event-id': String(afterSequence) }),
        },
        signal,
      })
      onHeader?.(response.headers)
      if (response.body === null) return
      for await (const { name, data } of readEventStream(response.body)) if (eventNames.has(name)) yield parse(data)
    },
  }
  // As with the other calls, REST's JSON has numbers and words for some of the types.
  return service as unknown as Services['order']
}

/** Names of the events that a WatchOrderResponse is sent as. A newer service may send others. */
const eventNames: ReadonlySet<string> = new Set(['message', 'heartbeat', 'reconnect'])

function parse(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw new CountersignClientError('UNEXPECTED_ANSWER', 'An event of the order is not JSON', { cause })
  }
}
