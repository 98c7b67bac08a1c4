import { aborted, CountersignClientError } from './errors.ts'
import { refusalError } from './refusal.ts'
import type { RestCall, RestCallInit } from './rest-orders.ts'
import { defaultTimeoutMs, withTimeLimit } from './time-limit.ts'

/** A function that makes HTTP requests, as `fetch` does. */
export type Fetcher = (url: string, init: RequestInit) => Promise<Response>

/** Address and time limit of the REST endpoints. */
export interface RestOptions {
  /** Address of the service. Default: the page's own origin. */
  readonly baseUrl?: string | undefined
  /** Path of the REST endpoints. Default /api/auth. */
  readonly basePath?: string | undefined
  /** Path of the direct sign-in endpoints under `basePath`. Default /wallet. */
  readonly endpointPrefix?: string | undefined
  /** Time limit of a call, in milliseconds. Default 15,000. */
  readonly timeoutMs?: number | undefined
}

/** Path of the direct sign-in endpoints, unless the options say otherwise. */
export const defaultPrefix = '/wallet'

/** Ways to the REST endpoints, by their paths under the base path. */
export interface Rest {
  /** POST with a body, GET without. Rejects with a `CountersignClientError`. */
  readonly call: RestCall
  /** The same for an answer that is a stream, without a time limit. */
  readonly open: (path: string, init: RestCallInit) => Promise<Response>
}

/** Calls of REST endpoints by their paths under the base path: POST with a body, GET without. */
export function restCalls(fetcher: Fetcher, options: Omit<RestOptions, 'endpointPrefix'>): RestCall {
  return restOf(fetcher, options).call
}

/** The REST endpoints of a service. */
export function restOf(fetcher: Fetcher, options: Omit<RestOptions, 'endpointPrefix'>): Rest {
  const { baseUrl = '', basePath = '/api/auth', timeoutMs: usualMs = defaultTimeoutMs } = options
  const root = baseUrl.replace(/\/+$/, '') + basePath

  /** Makes a request and reads the answer, of which a failure leaves nothing to read. */
  const answerOf = async <T>(
    path: string,
    { body, query, headers: own, signal, keepalive }: RestCallInit,
    limited: AbortSignal | undefined,
    read: (response: Response) => Promise<T | undefined> | T,
  ): Promise<T> => {
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`
    const init: RequestInit = {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...own },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(keepalive === undefined ? {} : { keepalive }),
      ...(limited === undefined ? {} : { signal: limited }),
    }
    let response: Response
    let refusal: Record<string, unknown> | undefined
    let answer: T | undefined
    try {
      response = await send(fetcher, root + path + search, init)
      if (response.ok) answer = await read(response)
      else refusal = parseObject(await response.text())
    } catch (cause) {
      if (signal?.aborted) throw aborted(signal)
      throw new CountersignClientError('NETWORK', 'The service did not answer', { cause })
    }
    const { status, headers } = response
    if (answer !== undefined) return answer
    throw refusalError({ ...refusal, status, retryAfterMs: retryAfterMs(headers) })
  }

  return {
    call: <T>(path: string, init: RestCallInit = {}) => {
      const limited = withTimeLimit(init.signal, init.timeoutMs ?? usualMs)
      return answerOf<T>(path, init, limited, async (response) => parseObject(await response.text()) as T | undefined)
    },
    open: (path, init) => answerOf(path, init, init.signal, (response) => response),
  }
}

/**
 * Sends a request with the cookies of its address. A redirect is a failure: tokens go to no other address. workerd knows no
 * `redirect: 'error'`, and refuses `credentials` and `keepalive`, which are left out where a request has no such thing.
 */
export async function send(fetcher: Fetcher, url: string, { keepalive, ...init }: RequestInit): Promise<Response> {
  const own: RequestInit = {
    ...('credentials' in Request.prototype ? { credentials: 'include' } : {}),
    ...(keepalive === true && 'keepalive' in Request.prototype ? { keepalive } : {}),
  }
  const response = await fetcher(url, { ...init, ...own, redirect: 'manual' })
  // Browsers hide the status of a redirect.
  if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
    throw new TypeError('the service sends elsewhere')
  }
  return response
}

/** The time of a Retry-After header in whole seconds (RFC 9110, 10.2.3), in milliseconds. */
function retryAfterMs(headers: Headers): number | undefined {
  const [seconds] = /^\d{1,9}$/.exec(headers.get('retry-after') ?? '') ?? []
  return seconds === undefined ? undefined : Number(seconds) * 1000
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
