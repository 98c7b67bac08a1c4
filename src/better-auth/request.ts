import type { AuthContext, BetterAuthPlugin, GenericEndpointContext } from '@better-auth/core'
import { getIP } from 'better-auth/api'
import { type RequestContext, readAddress, readRequest, withParts } from '../base/request.ts'
import { OriginPolicy } from '../core/origin-policy.ts'
import { fetchBody } from '../http/fetch.ts'
import { failureBody } from '../http/rest/serve.ts'
import { maxBodyBytes } from '../limits/limits.ts'
import { toFailure } from '../rpc/errors.ts'
import type { WalletSettings } from './settings.ts'

/**
 * The context of a request that Better Auth serves. The client's address is read by Better Auth's rules
 * (`advanced.ipAddress`); X-Forwarded-Host and -Proto count if its `advanced.trustedProxyHeaders` is true.
 */
export function requestOf(ctx: GenericEndpointContext): RequestContext {
  const { options, baseURL } = ctx.context
  const headers = ctx.headers ?? ctx.request?.headers ?? new Headers()
  // A call through auth.api has no request; without a baseURL there is no URL at all.
  const url = URL.parse(ctx.request?.url ?? baseURL)
  const scheme = url?.protocol === 'https:' ? 'https' : 'http'
  const trustedProxies = options.advanced?.trustedProxyHeaders === true ? 1 : 0
  const context = readRequest({ headers, scheme, authority: url?.host ?? '', remoteAddress: undefined }, trustedProxies)
  return withParts(context, {
    ip: readAddress(getIP(ctx.request ?? headers, options) ?? ''),
    behindUnknownProxy: !tellsNetworks(options),
  })
}

/**
 * Whether the addresses that Better Auth reads tell which clients share a network. They come from a header. Unless the
 * application says which one its proxy writes, or which proxies to trust, it can be the client's own word; and of an
 * IPv6 address the whole
 * /56 is needed.
 */
export function tellsNetworks({ advanced }: AuthContext['options']): boolean {
  const { ipAddressHeaders, trustedProxies, ipv6Subnet = 64 } = advanced?.ipAddress ?? {}
  return (ipAddressHeaders !== undefined || trustedProxies !== undefined) && ipv6Subnet >= 56
}

/**
 * The origins that count for a request: Better Auth's trusted ones, its patterns included, and those of the plugin
 * itself. If Better Auth has a function for them, they are what it returned for this request.
 */
export function originsOf(context: AuthContext, settings: WalletSettings): OriginPolicy {
  const own = new Set(settings.trustedOrigins)
  const trusted = (origin: string): boolean => context.isTrustedOrigin(origin) || own.has(origin)
  return new OriginPolicy({ enforce: settings.enforceOrigin, own: ownOrigin(context), trusted })
}

/** The path under which Better Auth serves its endpoints, such as /api/auth; empty if that is the root. */
export function basePathOf({ baseURL, options }: AuthContext): string {
  return (URL.parse(baseURL)?.pathname ?? options.basePath ?? '/api/auth').replace(/\/+$/, '')
}

/** The origin of Better Auth's own address. Empty if none is configured and it has seen no request. */
export function ownOrigin({ baseURL }: AuthContext): string {
  return URL.parse(baseURL)?.origin ?? ''
}

type OnRequest = NonNullable<BetterAuthPlugin['onRequest']>

/**
 * A plugin's `onRequest` that refuses bodies larger than {@link maxBodyBytes}, as the service does: Better Auth itself
 * reads a body to its end, however long it is. For the endpoints with these paths under Better Auth's base path; other
 * requests stay as they are.
 */
export function limitBodies(paths: readonly string[]): OnRequest {
  return async (request) => {
    // Better Auth's option `skipTrailingSlashes` serves both.
    const path = URL.parse(request.url)?.pathname.replace(/\/+$/, '') ?? ''
    if (!request.body || request.bodyUsed || !paths.some((own) => path.endsWith(own))) return undefined
    try {
      const body = new Uint8Array(await fetchBody(request).read(maxBodyBytes))
      return { request: new Request(request, { body }) }
    } catch (thrown) {
      const failure = toFailure(thrown)
      const init = { status: failure.httpStatus, headers: { 'cache-control': 'no-store' } }
      return { response: Response.json(failureBody(failure), init) }
    }
  }
}
