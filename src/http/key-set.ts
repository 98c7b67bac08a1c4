import type { KeySet } from '../access-token/signing-keys.ts'
import { type Route, requireHttpMethod } from './route.ts'

/** The path of key sets that other services use too, under the root and under the base path. */
const wellKnownPath = '/.well-known/jwks.json'

/**
 * Routes of the key set that access tokens are verified with, by path. None if the service issues no access tokens, so that an
 * application that it is mounted in can have a key set of its own.
 */
export function keySetRoutes(keySet: KeySet | undefined, basePath: string): (readonly [path: string, Route])[] {
  if (keySet === undefined) return []
  const body = JSON.stringify(keySet)
  const route: Route = (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    const { headers: sent, output } = exchange
    // Pages of any origin may read it: the keys are public. Those of trusted origins may with cookies too, which excludes a `*`.
    output.setHeader('access-control-allow-origin', sent.origin ?? '*')
    const headers = { 'content-type': 'application/json', 'cache-control': `public, max-age=${maxAgeSeconds}` }
    output.send({ status: 200, headers, body })
  }
  // The same path if the base path is empty.
  return [...new Set([wellKnownPath, basePath + wellKnownPath])].map((path) => [path, route])
}

/**
 * Time in seconds for which the key set may be cached. So long a new secret has to be in the list of every instance before the
 * first token is signed with it.
 */
const maxAgeSeconds = 300
