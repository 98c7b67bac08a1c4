import type { BetterAuthClientOptions } from 'better-auth/client'
import type { Services } from '../client/connect.ts'
import { type BetterFetch, callerOf, openStream } from './client-fetch.ts'

interface CallOptions {
  readonly signal?: AbortSignal
  readonly onHeader?: (headers: Headers) => void
}

type Order = { readonly orderId: string }

/**
 * The calls of OrderService over Better Auth's REST endpoints, in the place of the generated client: the client's own order
 * calls, with their retries and their watch, then work over either.
 */
export function orderService($fetch: BetterFetch, options: BetterAuthClientOptions | undefined): Services['order'] {
  const call = callerOf($fetch)
  const post =
    (path: string) =>
    (body: object, { signal }: CallOptions = {}): Promise<unknown> =>
      call(`/cross-device/${path}`, { body, signal })
  const service = {
    startOrder: post('start'),
    claimOrder: post('claim'),
    getOrderChallenge: (
      { orderId, challengeToken }: Order & { challengeToken: string },
      { signal }: CallOptions = {},
    ) =>
      call('/cross-device/challenge', {
        query: { orderId },
        headers: { authorization: `Bearer ${challengeToken}` },
        signal,
      }),
    approveOrder: post('approve'),
    rejectOrder: post('reject'),
    cancelOrder: post('cancel'),
    finalizeOrder: post('finalize'),
    async *watchOrder(
      { orderId, desktopToken, afterSequence }: Order & { desktopToken: string; afterSequence?: number },
      { signal, onHeader }: CallOptions = {},
    ): AsyncGenerator<unknown> {
      const response = await openStream($fetch, options, '/cross-device/events', {
        query: { orderId },
        headers: {
          authorization: `Bearer ${desktopToken}`,
          ...(afterSequence === undefined ? {} : { 'last-event-id': String(afterSequence) }),
        },
        signal,
      })
      onHeader?.(response.headers)
      if (response.body === null) return
      yield* serverSentData(response.body)
    },
  }
  // REST's JSON has the messages' fields, with numbers and words where they have other types; the calls take both.
  return service as unknown as Services['order']
}

/** The data of a stream of server-sent events, as JSON. */
async function* serverSentData(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<unknown> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += value
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1]
        text = text.slice(end + 2)
        if (data !== undefined) yield JSON.parse(data)
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}
