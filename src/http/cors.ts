import { cors } from '@connectrpc/connect'
import type { Exchange } from './exchange.ts'

/** Time in seconds for which a browser may cache a preflight's answer: 2 hours, the most that Chrome allows. */
const maxAgeSeconds = 7200

const exposedHeaders = [...cors.exposedHeaders, 'Set-Auth-Token', 'Retry-After'].join(', ')

/**
 * Lets pages of any origin read a public answer. Pages of trusted origins may also send cookies, which excludes a `*`.
 */
export function letAnyPageRead({ headers, output }: Pick<Exchange, 'headers' | 'output'>): void {
  output.setHeaders({ 'access-control-allow-origin': headers.origin ?? '*' })
}

/** In every answer, so that no cache gives one origin's answer to another. */
const forEveryone = { vary: 'Origin' } as const

const preflightAnswer = {
  'access-control-allow-methods': cors.allowedMethods.join(', '),
  'access-control-allow-headers': [...cors.allowedHeaders, 'Authorization', 'Last-Event-ID'].join(', '),
  'access-control-max-age': String(maxAgeSeconds),
} as const

function permitting(origin: string): Record<string, string> {
  return { ...forEveryone, 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' }
}

/** Names of headers, as a preflight lists them. */
const headerNames = /^[\w-]{1,100}(?:, ?[\w-]{1,100}){0,49}$/

/** Permits a preflight of any page for a public document, with any headers that its script sends. */
function permittingAnyPage(asked: string | undefined): Record<string, string> {
  const allowed = asked !== undefined && headerNames.test(asked) ? { 'access-control-allow-headers': asked } : {}
  return {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD',
    ...allowed,
    'access-control-max-age': String(maxAgeSeconds),
  }
}

/**
 * Lets the pages of trusted origins call the service, with cookies, and read its answers (the Fetch standard's CORS
 * protocol). Call it before any other writer to the output.
 *
 * `origins` gets the Origin header in its canonical form. A missing or malformed one is not trusted. Returns
 * `'permitted'` or `'refused'` for a preflight, which has then been answered: 204, without permissions if the origin is
 * not trusted. With `isPublic`, for a document that all pages may read, every preflight is permitted. Serve any other
 * request, from every origin: browsers hide the answer from a page without permission, and calls that change something
 * check the origin themselves.
 */
export function applyCors(
  { method, headers, context, output }: Pick<Exchange, 'method' | 'headers' | 'context' | 'output'>,
  origins: { isTrusted(origin: string): boolean },
  isPublic = false,
): 'permitted' | 'refused' | 'continue' {
  const origin = context.originSource === 'Origin header' ? context.origin : undefined
  const isPreflight =
    method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
  const trusted = origin !== undefined && origins.isTrusted(origin)
  if (isPreflight && isPublic) {
    const anyPage = permittingAnyPage(headers['access-control-request-headers'])
    output.setHeaders({ ...anyPage, ...(trusted ? permitting(origin) : {}) })
  } else if (!trusted) output.setHeaders(forEveryone)
  else if (isPreflight) output.setHeaders({ ...permitting(origin), ...preflightAnswer })
  else output.setHeaders({ ...permitting(origin), 'access-control-expose-headers': exposedHeaders })
  if (!isPreflight) return 'continue'
  output.send({ status: 204, headers: {} })
  return trusted || isPublic ? 'permitted' : 'refused'
}
