import { defaultPrefix, restOf, restSignIn } from '../rest-api.ts'
import { requireHttp } from '../service-address.ts'
import { announceSession } from '../session-news.ts'
import { type SignInCalls, signInCalls } from '../sign-in-calls.ts'
import { defaultTimeoutMs } from '../time-limit.ts'
import { TokenStore } from '../token-store.ts'
import type { ElementService } from './desktop.ts'

/** The calls of a sign-in on this device, over REST. Throws a `TypeError` if `baseUrl` is not an http or https address. */
export function deviceCallsOf(service: ElementService): SignInCalls {
  const { baseUrl, basePath, endpointPrefix = defaultPrefix, tokenStorageKey } = service
  requireHttp(baseUrl)
  const rest = restOf((url, init) => fetch(url, init), { baseUrl, basePath })
  return signInCalls({
    service: restSignIn(rest.call, endpointPrefix),
    baseUrl,
    tokens: new TokenStore({ tokenStorageKey }),
    defaults: {},
    timeoutMs: defaultTimeoutMs,
    onSession: () => announceSession({ tokenStorageKey, baseUrl }),
  })
}
