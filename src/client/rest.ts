import { signInPaths } from '../rest-paths.ts'
import { aborted, CountersignClientError } from './errors.ts'
import { refusalError } from './refusal.ts'
import type { RestCall } from './rest-orders.ts'
import { type SignInApi, type SignInOptions, signIn } from './sign-in.ts'
import { defaultTimeoutMs, withTimeLimit } from './time-limit.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'
import type { SignInResult } from './types.ts'

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

/** Options of {@link signInWithWallet}. */
export interface SignInWithWalletOptions extends SignInOptions, TokenStoreOptions, RestOptions {}

/**
 * Signs in over REST with the caller's own `fetch`: nonce, wallet signature, verification. Small, for pages that need nothing
 * else of the client. Call it in a user gesture, because the wallet may open a window.
 *
 * Rejects with a `CountersignClientError`.
 */
export async function signInWithWallet(fetcher: Fetcher, options: SignInWithWalletOptions = {}): Promise<SignInResult> {
  return await signIn(restSignIn(fetcher, options), new TokenStore(options), options)
}

/** The calls of a direct sign-in over REST. */
export function restSignIn(fetcher: Fetcher, options: RestOptions): SignInApi {
  const { endpointPrefix = '/wallet' } = options
  const call = restCalls(fetcher, options)
  const post = <T>(path: string, body: object, signal: AbortSignal | undefined): Promise<T> =>
    call(endpointPrefix + path, { body, signal })
  return {
    issueNonce: (appName, signal) => post(signInPaths.nonce, appName === undefined ? {} : { appName }, signal),
    verifySignIn: (proof, signal) => post(signInPaths.verify, proof, signal),
  }
}

/** Calls of REST endpoints by their paths under the base path: POST with a body, GET without. */
export function restCalls(fetcher: Fetcher, options: Omit<RestOptions, 'endpointPrefix'>): RestCall {
  const { baseUrl = '', basePath = '/api/auth', timeoutMs = defaultTimeoutMs } = options
  const root = baseUrl.replace(/\/+$/, '') + basePath
  return async <T>(path: string, { body, query, headers: own, signal }: Parameters<RestCall>[1] = {}): Promise<T> => {
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`
    const init: RequestInit = {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...own },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      credentials: 'include',
      redirect: 'error',
      signal: withTimeLimit(signal, timeoutMs),
    }
    let response: Response
    let json: Record<string, unknown> | undefined
    try {
      response = await fetcher(root + path + search, init)
      json = parseObject(await response.text())
    } catch (cause) {
      if (signal?.aborted) throw aborted(signal)
      throw new CountersignClientError('NETWORK', 'The service did not answer', { cause })
    }
    const { ok, status, headers } = response
    if (ok && json !== undefined) return json as T
    throw refusalError({ ...(ok ? {} : json), status, retryAfterMs: retryAfterMs(headers) })
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
