import type { KeySet } from '../core/access-tokens.ts'
import { letAnyPageRead } from './cors.ts'
import { type Route, requireHttpMethod } from './route.ts'

/** Whoever has the key set, which changes if the secrets are replaced. */
export interface KeySetHolder {
  readonly keySet: KeySet
}

/** The path of key sets that other services use too, under the root and under the base path. */
const wellKnownPath = '/.well-known/jwks.json'

/**
 * Routes of the key set that access tokens are verified with, by path. None if the service issues no access tokens, so that an
 * application that it is mounted in can have a key set of its own.
 */
export function keySetRoutes(keys: KeySetHolder | undefined, basePath: string): (readonly [path: string, Route])[] {
  if (keys === undefined) return []
  const route: Route = (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    // The keys are public.
    letAnyPageRead(exchange)
    const headers = { 'content-type': 'application/json', 'cache-control': `public, max-age=${maxAgeSeconds}` }
    exchange.output.send({ status: 200, headers, body: JSON.stringify(keys.keySet) })
  }
  // The same path if the base path is empty.
  return [...new Set([wellKnownPath, basePath + wellKnownPath])].map((path) => [path, route])
}

/**
 * Time in seconds for which the key set may be cached. So long a new secret has to be in the list of every instance before the
 * first token is signed with it.
 */
const maxAgeSeconds = 300
