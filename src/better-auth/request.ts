import type { AuthContext, GenericEndpointContext } from '@better-auth/core'
import { getIP } from 'better-auth/api'
import { OriginPolicy } from '../origin.ts'
import { type RequestContext, readRequest } from '../request.ts'
import type { WalletSettings } from './settings.ts'

/**
 * What the domain sees of a request that Better Auth serves. Addresses are those that Better Auth's own `advanced.ipAddress`
 * makes out; X-Forwarded-Host and -Proto count where its `advanced.trustedProxyHeaders` says so.
 */
export function requestOf(ctx: GenericEndpointContext): RequestContext {
  const { options, baseURL } = ctx.context
  const headers = ctx.headers ?? ctx.request?.headers ?? new Headers()
  // Without a request (a call through auth.api) and without a baseURL there is none.
  const url = URL.parse(ctx.request?.url ?? baseURL)
  const scheme = url?.protocol === 'https:' ? 'https' : 'http'
  const trustedProxies = options.advanced?.trustedProxyHeaders === true ? 1 : 0
  const context = readRequest({ headers, scheme, authority: url?.host ?? '', remoteAddress: undefined }, trustedProxies)
  return { ...context, ip: getIP(ctx.request ?? headers, options) ?? undefined }
}

/** The origins of a request: Better Auth's trusted ones, its patterns included, and those of the plugin itself. */
export function originsOf(context: AuthContext, request: RequestContext, settings: WalletSettings): OriginPolicy {
  const { origin } = request
  const known = origin !== undefined && context.isTrustedOrigin(origin)
  const trusted = [...(known ? [origin] : []), ...(settings.trustedOrigins ?? [])]
  return new OriginPolicy(() => ({ enforce: settings.enforceOrigin, own: ownOrigin(context), trusted }))
}

/** The origin of Better Auth's own address; empty where it has none configured and no request told it. */
export function ownOrigin({ baseURL }: AuthContext): string {
  return URL.parse(baseURL)?.origin ?? ''
}
