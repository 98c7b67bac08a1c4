import { bearerTokenOf, cookieValue } from '../../shared/header-text.ts'
import { parseOrigin } from '../../shared/origin.ts'
import type { SessionText } from './introspection.ts'

/** A request as the Fetch API has it: a `Request`, or an object that has the same three properties. */
export interface FetchRequest {
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  readonly headers: Pick<Headers, 'get'>
}

/** A request as Node has it: an `IncomingMessage` of node:http, or a request of node:http2. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: object | undefined
}

/** A request, or the headers of one. */
export type RequestInput = Pick<Headers, 'get'> | FetchRequest | NodeRequest

/** What is looked at in a request. */
export interface RequestFacts {
  /** A header by its name in lower case. */
  header(name: string): string | undefined
  /** Method in upper case; `undefined` if it is unknown. */
  readonly method: string | undefined
  /** Origin that the request was sent to; `undefined` if it is unknown. */
  readonly ownOrigin: string | undefined
}

/** Reads a request in any of the forms that frameworks have. Throws a `TypeError` if it is none of them. */
export function readRequest(request: RequestInput): RequestFacts {
  if (typeof request === 'object' && request !== null) {
    if ('get' in request && typeof request.get === 'function' && !('headers' in request)) {
      return { header: fromHeaders(request), method: undefined, ownOrigin: undefined }
    }
    if ('headers' in request && typeof request.headers === 'object' && request.headers !== null) {
      return isFetchRequest(request) ? readFetchRequest(request) : readNodeRequest(request as NodeRequest)
    }
  }
  throw new TypeError('verify takes a token, Headers, a Request or an IncomingMessage')
}

function isFetchRequest(request: object): request is FetchRequest {
  return 'get' in (request as FetchRequest).headers && typeof (request as FetchRequest).headers.get === 'function'
}

function readFetchRequest({ method, url, headers }: FetchRequest): RequestFacts {
  const ownOrigin = URL.canParse(url) ? parseOrigin(new URL(url).origin) : undefined
  return { header: fromHeaders(headers), method: method.toUpperCase(), ownOrigin }
}

function fromHeaders(headers: Pick<Headers, 'get'>): RequestFacts['header'] {
  return (name) => headers.get(name) ?? undefined
}

function readNodeRequest({ method, headers, socket }: NodeRequest): RequestFacts {
  const header = (name: string): string | undefined => {
    const value = headers[name]
    return typeof value === 'object' ? value.join(name === 'cookie' ? '; ' : ', ') : value
  }
  const scheme = socket !== undefined && 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http'
  const ownOrigin = parseOrigin(`${scheme}://${header(':authority') ?? header('host') ?? ''}`)
  return { header, method: method?.toUpperCase(), ownOrigin }
}

/** What decides whether a cookie counts. */
export interface CookieRules {
  /** Name of the session's cookie. */
  readonly cookieName: string
  /**
   * Whether pages of an origin may act for their visitors. `own` is the origin that the request was sent to, if known.
   */
  trusts(origin: string, own: string | undefined): boolean
}

/**
 * The token or cookie that a request presents, or why its cookie does not count: a sentence for the developer. Both are
 * absent without either.
 */
export interface Credential {
  readonly presented?: SessionText | undefined
  readonly refusal?: string | undefined
}

/** Most characters of a token that the service looks up (IntrospectSessionRequest in the proto). */
const maxTokenLength = 512

/** Whether a text can be a session's token: printable ASCII without spaces, at most 512 characters. */
export function isToken(text: string): boolean {
  return text.length <= maxTokenLength && /^[!-~]+$/.test(text)
}

/**
 * The credential of a request: the token of `Authorization: Bearer` (RFC 6750) or, without one, of the session's
 * cookie. A cookie does not count if another site can have sent the request: its Origin is not trusted, or it has none
 * and its method may change something.
 */
export function credentialOf(request: RequestFacts, rules: CookieRules): Credential {
  const bearer = bearerTokenOf(request.header('authorization'))
  if (bearer !== undefined) return { presented: { text: bearer, form: 'token' } }
  const cookie = cookieValue(request.header('cookie'), rules.cookieName)
  if (cookie === undefined) return {}
  const refusal = refusalOf(request, rules)
  return refusal === undefined ? { presented: { text: cookie, form: 'cookie' } } : { refusal }
}

function refusalOf({ header, method, ownOrigin }: RequestFacts, { trusts }: CookieRules): string | undefined {
  const given = header('origin')
  if (given === undefined) {
    if (method === 'GET' || method === 'HEAD') return undefined
    return 'Cookie refused: no Origin, and no GET or HEAD. Send the token as Authorization: Bearer.'
  }
  const origin = parseOrigin(given)
  if (origin === undefined)
    return 'Cookie refused: the Origin header has no origin. Send the token as Authorization: Bearer.'
  if (trusts(origin, ownOrigin)) return undefined
  return `Cookie refused: origin ${origin} is not trusted. Add it to trustedOrigins.`
}
