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
      credentials: 'include',
      // Not `error`, which workerd does not know. An answer that leads elsewhere is no answer of the service.
      redirect: 'manual',
      ...(keepalive === undefined ? {} : { keepalive }),
      ...(limited === undefined ? {} : { signal: limited }),
    }
    let response: Response
    let refusal: Record<string, unknown> | undefined
    let answer: T | undefined
    try {
      response = await fetcher(root + path + search, init)
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

function retryAfterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
