import type { BetterAuthClientOptions, BetterAuthClientPlugin } from 'better-auth/client'
import { aborted, type ClientErrorCode, CountersignClientError } from '../client/errors.ts'
import type { TokenStore } from '../client/token-store.ts'

/** Better Auth's own fetch. */
export type BetterFetch = Parameters<NonNullable<BetterAuthClientPlugin['getActions']>>[0]

type BetterFetchPlugin = NonNullable<BetterAuthClientPlugin['fetchPlugins']>[number]

/** What a call is told. */
export interface CallInit {
  readonly body?: object | undefined
  readonly query?: Record<string, string> | undefined
  readonly headers?: Record<string, string> | undefined
  readonly signal?: AbortSignal | undefined
}

/** Makes calls through Better Auth's own fetch, so that its base address, options and plugins hold. */
export type Caller = <T>(path: string, init?: CallInit) => Promise<T>

/** Calls an endpoint: POST with a body, GET without. Rejects with a `CountersignClientError`. */
export function callerOf($fetch: BetterFetch): Caller {
  return async <T>(path: string, { body, query, headers, signal }: CallInit = {}): Promise<T> => {
    let answer: { data: unknown; error: Refusal | null }
    try {
      answer = await $fetch(path, {
        method: body === undefined ? 'GET' : 'POST',
        ...(body === undefined ? {} : { body }),
        ...(query === undefined ? {} : { query }),
        ...(headers === undefined ? {} : { headers }),
        ...(signal === undefined ? {} : { signal }),
      })
    } catch (cause) {
      if (cause instanceof CountersignClientError) throw cause
      throw signal?.aborted
        ? aborted(signal)
        : new CountersignClientError('NETWORK', 'The service did not answer', { cause })
    }
    if (answer.error !== null) throw clientError(answer.error)
    return answer.data as T
  }
}

/** What Better Auth's fetch makes of an answer that is an error. */
interface Refusal {
  readonly status: number
  readonly code?: string
  readonly message?: string
}

function clientError({ status, code, message }: Refusal): CountersignClientError {
  if (code !== undefined && message !== undefined) return new CountersignClientError(code as ClientErrorCode, message)
  // Better Auth's own rate limiter says it by the status alone.
  if (status === 429) return new CountersignClientError('RATE_LIMITED', 'Too many requests; try again later')
  if ([502, 503, 504].includes(status)) {
    return new CountersignClientError('NETWORK', `The service did not answer: HTTP ${status}`)
  }
  return new CountersignClientError('UNEXPECTED_ANSWER', `This is not the service: HTTP ${status}`)
}

/** Opens a stream through Better Auth's fetch, which would read it to its end; so the response is taken before it does. */
export async function openStream(
  $fetch: BetterFetch,
  options: BetterAuthClientOptions | undefined,
  path: string,
  init: CallInit,
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
 * Sends the stored token along with Better Auth's requests, unless they bring one of their own, and drops it once it is over:
 * by signing out, or when Better Auth knows no session for it.
 */
export function bearerPlugin(tokens: TokenStore): BetterFetchPlugin {
  return {
    id: 'countersign-token',
    name: 'Countersign session token',
    hooks: {
      onRequest(context) {
        const token = tokens.read()
        // Only where the address is the service's own: a token goes nowhere else.
        const own = context.baseURL !== undefined && String(context.url).startsWith(context.baseURL)
        if (token !== undefined && own && !context.headers.has('authorization')) {
          context.headers.set('authorization', `Bearer ${token}`)
        }
        return context
      },
      onSuccess({ data, request }) {
        const sent = /^Bearer (.*)$/.exec(request.headers.get('authorization') ?? '')?.[1]
        const path = URL.parse(String(request.url), 'http://localhost')?.pathname ?? ''
        if (path.endsWith('/sign-out') || (path.endsWith('/get-session') && data === null)) tokens.forget(sent)
      },
    },
  }
}
