import type { BetterAuthClientOptions, BetterAuthClientPlugin } from 'better-auth/client'
import { given } from '../../shared/defined-fields.ts'
import { aborted, CountersignClientError } from '../client/errors.ts'
import { bearer, type RestCall, type RestCallInit, type RestRefusal, refusalError } from '../client/rest-api.ts'
import type { TokenStore } from '../client/token-store.ts'

/** Better Auth's own fetch. */
export type BetterFetch = Parameters<NonNullable<BetterAuthClientPlugin['getActions']>>[0]

type BetterFetchPlugin = NonNullable<BetterAuthClientPlugin['fetchPlugins']>[number]

/** The status line of an answer that is not a success. */
export interface RefusalStatus {
  /** HTTP status. */
  readonly status: number
  /** Reason phrase of the status; empty over HTTP/2. */
  readonly statusText: string
}

/**
 * Makes calls through Better Auth's own fetch, so that its base address, options and plugins apply. `onRefusal` gets
 * the status of each answer that is not a success.
 */
export function callerOf($fetch: BetterFetch, onRefusal: (status: RefusalStatus) => void = () => {}): RestCall {
  return async <T>(path: string, { body, query, headers, signal, keepalive }: RestCallInit = {}): Promise<T> => {
    let answer: { data: unknown; error: RestRefusal | null }
    let limiterAsks: string | null = null
    // A hook in the options would take the place of the application's own.
    const plugin: BetterFetchPlugin = {
      id: 'countersign-limit',
      name: "Wait that Better Auth's rate limiter asks for",
      hooks: {
        onError({ response }) {
          limiterAsks = response.headers.get('x-retry-after')
          onRefusal(response)
        },
      },
    }
    try {
      answer = await $fetch(path, {
        plugins: [plugin],
        // The application's own option may say otherwise; then there would be no `error` to read.
        throw: false,
        method: body === undefined ? 'GET' : 'POST',
        ...given({ keepalive, body, query, headers, signal }),
      })
    } catch (cause) {
      if (cause instanceof CountersignClientError) throw cause
      throw signal?.aborted
        ? aborted(signal)
        : new CountersignClientError('NETWORK', 'The service did not answer', { cause })
    }
    if (answer.error !== null) throw clientError(answer.error, limiterAsks)
    return answer.data as T
  }
}

/**
 * Wait in seconds that Better Auth's rate limiter stands for if the browser does not show its header to a page
 * elsewhere.
 */
const usualLimiterWait = 10

function clientError(refusal: RestRefusal, limiterAsks: string | null): CountersignClientError {
  // Better Auth's own rate limiter answers without a code, and with a header of its own.
  if (refusal.status === 429 && refusal.code === undefined) {
    const retryAfterMs = Number(limiterAsks ?? usualLimiterWait) * 1000
    return new CountersignClientError('RATE_LIMITED', 'Too many requests; try again later', { retryAfterMs })
  }
  return refusalError(refusal)
}

/**
 * Opens a stream through Better Auth's fetch. That would read the stream to its end, so the response is intercepted.
 */
export async function openStream(
  $fetch: BetterFetch,
  options: BetterAuthClientOptions | undefined,
  path: string,
  init: RestCallInit,
): Promise<Response> {
  const fetchOf = options?.fetchOptions?.customFetchImpl ?? globalThis.fetch
  let opened: Response | undefined
  const taking = ((target: string, given?: object) =>
    $fetch(target, {
      ...given,
      customFetchImpl: async (input: string | URL | Request, sent?: RequestInit) => {
        const response = await fetchOf(input, sent)
        if (!response.ok) return response
        opened = response
        return new Response(null, { status: 204 })
      },
    })) as BetterFetch
  await callerOf(taking)(path, init)
  return opened as unknown as Response
}

/**
 * Sends the stored token with Better Auth's requests, unless they have a token of their own. Removes it after signing
 * out, and if Better Auth has no session for it.
 */
export function bearerPlugin(tokens: TokenStore): BetterFetchPlugin {
  return {
    id: 'countersign-token',
    name: 'Countersign session token',
    hooks: {
      onRequest(context) {
        const token = tokens.read()
        // Only to the service's own address.
        const own = context.baseURL !== undefined && String(context.url).startsWith(context.baseURL)
        if (token !== undefined && own && !context.headers.has('authorization')) {
          context.headers.set('authorization', bearer(token))
        }
        return context
      },
      onSuccess({ data, request }) {
        const token = tokens.read()
        if (token === undefined || request.headers.get('authorization') !== bearer(token)) return
        const path = URL.parse(String(request.url), 'http://localhost')?.pathname ?? ''
        if (path.endsWith('/sign-out') || (path.endsWith('/get-session') && data === null)) tokens.clear()
      },
    },
  }
}
