import { parseOrigin } from '../origin.ts'
import type { RequestFacts } from './request.ts'

/** What decides whether a cookie counts. */
export interface CookieRules {
  /** Name of the session's cookie. */
  readonly cookieName: string
  /** Whether pages of an origin may act for their visitors. `own` is the origin that the request was sent to, if known. */
  trusts(origin: string, own: string | undefined): boolean
}

/** Most characters of a token that the service looks up (IntrospectSessionRequest in the proto). */
const maxTokenLength = 512

/** Whether a text can be a session's token: printable ASCII without spaces, at most 512 characters. */
export function isToken(text: string): boolean {
  return text.length <= maxTokenLength && /^[!-~]+$/.test(text)
}

/**
 * The token that a request presents: that of `Authorization: Bearer` (RFC 6750) or, without one, of the session's cookie. A
 * cookie does not count if another site can have sent the request: its Origin is not trusted, or it has none and its method may
 * change something.
 */
export function tokenOf(request: RequestFacts, rules: CookieRules): string | undefined {
  const bearer = /^Bearer +(\S+)\s*$/i.exec(request.header('authorization') ?? '')?.[1]
  if (bearer !== undefined) return bearer
  return mayUseCookie(request, rules) ? cookieToken(request.header('cookie') ?? '', rules.cookieName) : undefined
}

function mayUseCookie({ header, method, ownOrigin }: RequestFacts, { trusts }: CookieRules): boolean {
  const given = header('origin')
  if (given === undefined) return method === 'GET' || method === 'HEAD'
  const origin = parseOrigin(given)
  return origin !== undefined && trusts(origin, ownOrigin)
}

/**
 * The value of a cookie. With several of its name, none counts: browsers do not say which of them the service set, and the others
 * can be from a neighbouring host, port or path.
 */
function cookieToken(header: string, name: string): string | undefined {
  const beginning = `${name}=`
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(beginning))
    .map((pair) => pair.slice(beginning.length))
  return values.length === 1 ? values[0] : undefined
}
