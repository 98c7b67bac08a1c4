import { CountersignError } from './errors.ts'
import type { RequestContext } from './request.ts'

/** Scheme, host and port; no user, path, query or fragment. Other schemes than http are those of app shells. */
const originShape = /^([a-z][a-z0-9+.-]{0,31}):\/\/([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:\d{1,5})?$/i

/**
 * The canonical form of an origin (RFC 6454): lower case, without a default port. `undefined` for anything else, `null`
 * included, which browsers send for documents that have no origin to show.
 */
export function parseOrigin(text: string): string | undefined {
  const scheme = originShape.exec(text)?.[1]
  if (scheme === undefined) return undefined
  if (!/^https?$/i.test(scheme)) return text.toLowerCase()
  return URL.canParse(text) ? new URL(text).origin : undefined
}

/** What an {@link OriginPolicy} goes by. */
export interface OriginRules {
  /** Whether origins are compared at all. */
  readonly enforce: boolean
  /** The service's own origin. */
  readonly own: string
  /** Origins that may ask for a nonce, start an order, and use a session cookie. */
  readonly trusted: readonly string[]
}

/** Says which origins may do what. Every refusal names the origin that was seen and the setting to change. */
export class OriginPolicy {
  readonly #rules: () => OriginRules

  /** `rules` is asked at every call: the listening port, which default origins carry, may be known only later. */
  constructor(rules: () => OriginRules) {
    this.#rules = rules
  }

  /** Whether an origin is among the trusted ones, enforced or not. */
  isTrusted(origin: string | undefined): origin is string {
    const { trusted } = this.#rules()
    return origin !== undefined && trusted.includes(origin)
  }

  /** The request's origin, which must be a trusted one; else ORIGIN_NOT_TRUSTED. Where nothing is enforced, any will do. */
  requireTrusted(request: RequestContext): string {
    const { enforce, own } = this.#rules()
    if (this.isTrusted(request.origin)) return request.origin
    if (!enforce) return request.origin ?? own
    throw new CountersignError(
      'ORIGIN_NOT_TRUSTED',
      `${seen(request)} is not trusted; add it to trustedOrigins (COUNTERSIGN_TRUSTED_ORIGINS)${proxyHint(request)}`,
    )
  }

  /** Refuses a request from another origin than `expected` with ORIGIN_MISMATCH. `what` is what that origin belongs to. */
  requireSame(request: RequestContext, expected: string, what: string): void {
    this.#requireOneOf(request, [expected], what)
  }

  /** As {@link requireSame}, but lets the service's own origin (publicUrl), whose pages act for every order, pass too. */
  requireSameOrOwn(request: RequestContext, expected: string, what: string): void {
    this.#requireOneOf(request, [expected, this.#rules().own], what)
  }

  #requireOneOf(request: RequestContext, expected: readonly string[], what: string): void {
    if (!this.#rules().enforce) return
    if (request.origin !== undefined && expected.includes(request.origin)) return
    const allowed = [...new Set(expected)].join(' or ')
    throw new CountersignError(
      'ORIGIN_MISMATCH',
      `${seen(request)} is not that of the ${what}, ${allowed}; call from there, or correct publicUrl (COUNTERSIGN_PUBLIC_URL)${proxyHint(request)}`,
    )
  }
}

function seen(request: RequestContext): string {
  const value = request.origin ?? 'missing or malformed'
  return `The request's origin (${value}, read from the ${request.originSource})`
}

function proxyHint(request: RequestContext): string {
  if (request.originSource === 'Origin header') return ''
  return '; behind a proxy, set trustProxy (COUNTERSIGN_TRUST_PROXY) and let it send X-Forwarded-Host and X-Forwarded-Proto'
}
