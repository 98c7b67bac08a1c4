import { headerOf, type RequestContext } from '../base/request.ts'
import { CountersignError, type ErrorMetadata } from '../shared/errors.ts'

/** Settings of an {@link OriginPolicy}. */
export interface OriginRules {
  /** Whether origins are compared at all. */
  readonly enforce: boolean
  /** The service's own origin. */
  readonly own: string
  /** Origins that may ask for a nonce, start an order, and use a session cookie; or a function that knows them. */
  readonly trusted: readonly string[] | ((origin: string) => boolean)
}

/** Values of Sec-Fetch-Site that indicate another origin (Fetch Metadata, 2.3). */
const foreignSites: ReadonlySet<string> = new Set(['cross-site', 'same-site'])

/** Decides which origins may do what. Each refusal names the origin that was seen and the setting to change. */
export class OriginPolicy {
  #rules: OriginRules
  #trusts: (origin: string) => boolean

  constructor(rules: OriginRules) {
    this.#rules = rules
    this.#trusts = predicateOf(rules.trusted)
  }

  /**
   * Replaces the rules. The default origins contain the listening port, which is known only once the service listens.
   */
  replaceRules(rules: OriginRules): void {
    this.#rules = rules
    this.#trusts = predicateOf(rules.trusted)
  }

  /** Whether an origin is one of the trusted origins, enforced or not. */
  isTrusted(origin: string | undefined): origin is string {
    return origin !== undefined && this.#trusts(origin)
  }

  /**
   * Whether a nonce or an order that was made for this origin may be used: the origin is one of the trusted ones now.
   * If origins are not enforced, any is.
   */
  accepts(origin: string): boolean {
    return !this.#rules.enforce || this.isTrusted(origin)
  }

  /**
   * Whether a page of a foreign origin had its visitor's browser send a request. Without an Origin, Fetch
   * Metadata decides: a page reads its own origin without one, and every other origin that is trusted with one.
   */
  isForeign(request: RequestContext): boolean {
    const { enforce, own } = this.#rules
    if (!enforce) return false
    if (request.originSource === 'Origin header') return request.origin !== own && !this.isTrusted(request.origin)
    return foreignSites.has(headerOf(request, 'sec-fetch-site') ?? '')
  }

  /** Whether a request comes from the service's own origin. */
  isOwn({ origin }: RequestContext): boolean {
    return origin === this.#rules.own
  }

  /**
   * The request's origin, which must be a trusted one; else ORIGIN_NOT_TRUSTED. If origins are not enforced, any
   * passes.
   */
  requireTrusted(request: RequestContext): string {
    const { enforce, own } = this.#rules
    if (this.isTrusted(request.origin)) return request.origin
    if (!enforce) return request.origin ?? own
    throw new CountersignError(
      'ORIGIN_NOT_TRUSTED',
      `${seen(request)} is not trusted; add it to trustedOrigins (COUNTERSIGN_TRUSTED_ORIGINS)${proxyHint(request)}`,
      { metadata: { ...metadataOf(request), setting: 'COUNTERSIGN_TRUSTED_ORIGINS' } },
    )
  }

  /**
   * Refuses a request from any other origin than the service's own with ORIGIN_NOT_TRUSTED, also if it is trusted, and
   * also if origins are not enforced.
   */
  requireOwn(request: RequestContext): void {
    if (this.isOwn(request)) return
    const { own } = this.#rules
    throw new CountersignError('ORIGIN_NOT_TRUSTED', `${seen(request)} is not ${own}, which alone may do this`, {
      metadata: metadataOf(request),
    })
  }

  /** Refuses a request from any other origin than `expected` with ORIGIN_MISMATCH. `what` is bound to that origin. */
  requireSame(request: RequestContext, expected: string, what: 'nonce' | 'order'): void {
    this.#requireOneOf(request, [expected], what)
  }

  /**
   * As {@link requireSame}, but the service's own origin (publicUrl) passes too: its approval page serves every order.
   */
  requireSameOrOwn(request: RequestContext, expected: string, what: 'nonce' | 'order'): void {
    this.#requireOneOf(request, [expected, this.#rules.own], what)
  }

  #requireOneOf(request: RequestContext, expected: readonly string[], what: 'nonce' | 'order'): void {
    if (!this.#rules.enforce) return
    if (request.origin !== undefined && expected.includes(request.origin)) return
    const allowed = [...new Set(expected)]
    throw new CountersignError(
      'ORIGIN_MISMATCH',
      `${seen(request)} is not the origin of the ${what}, ${allowed.join(' or ')}; call from there, or correct ` +
        `publicUrl (COUNTERSIGN_PUBLIC_URL)${proxyHint(request)}`,
      {
        metadata: {
          ...metadataOf(request),
          expected: allowed.join(', '),
          bound_to: what,
          setting: 'COUNTERSIGN_PUBLIC_URL',
        },
      },
    )
  }
}

function predicateOf(trusted: OriginRules['trusted']): (origin: string) => boolean {
  if (typeof trusted === 'function') return trusted
  const origins = new Set(trusted)
  return (origin) => origins.has(origin)
}

function metadataOf({ origin, originSource }: RequestContext): ErrorMetadata {
  const proxy = isOwnWord(originSource) ? {} : { proxy_setting: 'COUNTERSIGN_TRUST_PROXY' }
  return { origin: origin ?? '', origin_source: originSource, ...proxy }
}

/** Whether the caller named the origin itself, so that no proxy can have changed it. */
function isOwnWord(source: RequestContext['originSource']): boolean {
  return source === 'Origin header' || source === 'field requester.origin'
}

function seen(request: RequestContext): string {
  const value = request.origin ?? 'missing or malformed'
  return `The request's origin (${value}, read from the ${request.originSource})`
}

function proxyHint(request: RequestContext): string {
  if (isOwnWord(request.originSource)) return ''
  return (
    '; behind a proxy, set trustProxy (COUNTERSIGN_TRUST_PROXY) and make the proxy send X-Forwarded-Host ' +
    'and X-Forwarded-Proto'
  )
}
