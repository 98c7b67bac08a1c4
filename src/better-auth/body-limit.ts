import type { BetterAuthPlugin } from '@better-auth/core'
import { FetchBody } from '../http/fetch-body.ts'
import { failureBody } from '../http/rest/serve.ts'
import { toFailure } from '../rpc/errors.ts'
import { maxBodyBytes } from '../wire/body.ts'

type OnRequest = NonNullable<BetterAuthPlugin['onRequest']>

/**
 * A plugin's `onRequest` that refuses bodies larger than {@link maxBodyBytes}, as the service does: Better Auth itself reads a body
 * to its end, however long it is. For the endpoints with these paths under Better Auth's base path; other requests stay as they are.
 */
export function limitBodies(paths: readonly string[]): OnRequest {
  return async (request) => {
    // Better Auth's option `skipTrailingSlashes` serves both.
    const path = URL.parse(request.url)?.pathname.replace(/\/+$/, '') ?? ''
    if (!request.body || request.bodyUsed || !paths.some((own) => path.endsWith(own))) return undefined
    try {
      const body = await new FetchBody(request).read(maxBodyBytes, (bytes) => new Uint8Array(bytes))
      return { request: new Request(request, { body }) }
    } catch (thrown) {
      const failure = toFailure(thrown)
      const init = { status: failure.httpStatus, headers: { 'cache-control': 'no-store' } }
      return { response: Response.json(failureBody(failure), init) }
    }
  }
}
