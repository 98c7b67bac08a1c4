import { aborted, type ClientErrorCode, CountersignClientError } from './errors.ts'
import { type SignInApi, type SignInOptions, signIn } from './sign-in.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'
import type { SignInResult } from './types.ts'

/** Makes HTTP requests, as `fetch` does. */
export type Fetcher = (url: string, init: RequestInit) => Promise<Response>

/** Where the REST endpoints are. */
export interface RestOptions {
  /** Address of the service. Default: the page's own origin. */
  readonly baseUrl?: string | undefined
  /** Path of the REST endpoints. Default /api/auth. */
  readonly basePath?: string | undefined
  /** Path of the direct sign-in endpoints under it. Default /wallet. */
  readonly endpointPrefix?: string | undefined
  /** How long a call may take, milliseconds. Default 15,000. */
  readonly timeoutMs?: number | undefined
}

/** Options of {@link signInWithWallet}. */
export interface SignInWithWalletOptions extends SignInOptions, TokenStoreOptions, RestOptions {}

/**
 * Signs in over REST with a fetcher of the caller's: nonce, wallet signature, verify. Small, for pages that need nothing
 * else of the client. Call it from a user's gesture: the wallet may open a window.
 *
 * Rejects with a `CountersignClientError`.
 */
export async function signInWithWallet(fetcher: Fetcher, options: SignInWithWalletOptions = {}): Promise<SignInResult> {
  return await signIn(restSignIn(fetcher, options), new TokenStore(options), options)
}

/** Direct sign-in over REST. */
export function restSignIn(fetcher: Fetcher, options: RestOptions): SignInApi {
  const { baseUrl = '', basePath = '/api/auth', endpointPrefix = '/wallet' } = options
  const root = baseUrl.replace(/\/+$/, '') + basePath + endpointPrefix
  const post = async <T>(path: string, body: object, signal: AbortSignal | undefined): Promise<T> => {
    const init: RequestInit = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      credentials: 'include',
      redirect: 'error',
      signal: callSignal(signal, options.timeoutMs),
    }
    let response: Response
    let json: Record<string, unknown> | undefined
    try {
      response = await fetcher(root + path, init)
      json = parseObject(await response.text())
    } catch (cause) {
      if (signal?.aborted) throw aborted(signal)
      throw new CountersignClientError('NETWORK', 'The service did not answer', { cause })
    }
    if (response.ok && json !== undefined) return json as T
    throw refusal(response, json)
  }
  return {
    issueNonce: (appName, signal) => post('/nonce', appName === undefined ? {} : { appName }, signal),
    verifySignIn: (proof, signal) => post('/verify', proof, signal),
  }
}

/** Aborts when the caller says so, and when the time is up. */
export function callSignal(signal: AbortSignal | undefined, timeoutMs = 15_000): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs)
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout])
}

function refusal(response: Response, json: Record<string, unknown> | undefined): CountersignClientError {
  const { code, message } = json ?? {}
  if (typeof code === 'string' && typeof message === 'string' && !response.ok) {
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined
    return new CountersignClientError(code as ClientErrorCode, message, { retryAfterMs })
  }
  // A proxy that does not reach the service.
  if ([429, 502, 503, 504].includes(response.status)) {
    return new CountersignClientError('NETWORK', `The service did not answer: HTTP ${response.status}`)
  }
  return new CountersignClientError('UNEXPECTED_ANSWER', `This is not the service: HTTP ${response.status}`)
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
