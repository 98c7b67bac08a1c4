import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose'
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider'
import { type AccountParts, accountsOf } from './accounts.ts'
import type { ClientDirectory } from './client-directory.ts'
import type { Offered } from './clients.ts'
import { permissionsIn, scopeOf } from './grants.ts'
import type { Loaded } from './issuer-parts.ts'
import type { Library } from './library-request.ts'

/** Life of an access token in seconds. */
export const tokenSeconds = 15 * 60

interface ResourceParts {
  readonly directory: ClientDirectory
  readonly library: Library
}

/** What {@link requireGrantable} asks. */
export interface GrantableParts extends ResourceParts, AccountParts {}

/** The library's endpoints at which a client asks for scopes of a user. */
const asking: ReadonlySet<string> = new Set(['authorization', 'pushed_authorization_request', 'device_authorization'])

/** Access tokens for resources: a JWT for the one that a request names, or whose scopes the user has allowed. */
export function resourceIndicators(
  { clients, ...offered }: Pick<Loaded, 'clients' | 'scopes' | 'resources'>,
  { directory, library }: ResourceParts,
) {
  const { InvalidScope, InvalidTarget } = library.errors
  return {
    enabled: true,
    // None that a client, or its entry in the file, did not name. Of several, it has to choose one for each token.
    defaultResource: async (_ctx: unknown, { clientId }: { clientId: string }, oneOf?: readonly string[]) =>
      (oneOf ?? clients.get(clientId)?.defaultResource) as never,
    getResourceServerInfo: async (
      { oidc }: KoaContextWithOIDC,
      address: string,
      { clientId }: { clientId: string },
    ) => {
      const { params = {}, route } = oidc
      const its = directory.offeredTo(clientId, offered)?.resources
      const found = its?.get(address)
      if (found === undefined) throw new InvalidTarget()
      if (params.scope === undefined && asking.has(route)) {
        const named = [params.resource ?? []].flat().map(String)
        params.scope = [...new Set(named.flatMap((each) => its?.get(each)?.scopes ?? []))].join(' ')
      }
      const beyond = offered.resources.get(address)?.scopes.filter((each) => !found.scopes.includes(each)) ?? []
      const asked = String(params.scope ?? '').split(' ')
      const notOwn = beyond.find((each) => asked.includes(each))
      if (notOwn !== undefined) throw new InvalidScope('requested scope is not allowed', notOwn)
      return {
        audience: address,
        scope: found.scopes.join(' '),
        accessTokenTTL: tokenSeconds,
        accessTokenFormat: 'jwt' as const,
        jwt: { sign: { alg: found.algorithm } },
      }
    },
    useGrantedResource: async () => true,
  }
}

/** Refuses a request for a sign-in or a device that asks for nothing that there is, before anyone is asked. */
export function requireScope(
  { oidc }: KoaContextWithOIDC,
  loaded: Loaded,
  { directory, library }: ResourceParts,
): void {
  const { params = {}, client } = oidc
  const its = directory.offeredTo(String(client?.clientId), loaded)
  if (its !== undefined && permissionsIn(params, its).size > 0) return
  const scope = typeof params.scope === 'string' ? params.scope : ''
  const text = 'no scope that the client may have is asked for; name one, such as openid, or a resource'
  throw new library.errors.InvalidScope(text, scope)
}

/**
 * Leaves scopes out of a refresh that the request for authorization left out: those that there are not, and offline
 * access without a consent to it. Many clients repeat what they asked for. With none left, the library refuses them.
 */
export function leaveOutUnknown(
  { params }: Pick<KoaContextWithOIDC['oidc'], 'params'>,
  { scope, resource }: AdapterPayload,
  offered: Offered | undefined,
): void {
  if (params === undefined || typeof params.scope !== 'string' || offered === undefined) return
  const known = new Set([...permissionsIn({ scope: params.scope, resource }, offered)].map(scopeOf))
  if (scope?.split(' ').includes('offline_access') !== true) known.delete('offline_access')
  if (known.size > 0) params.scope = [...known].join(' ')
}

/**
 * Refuses a request for tokens as the library does, but before its code or refresh token is used, so that the right
 * request may follow: it names a resource that is not for it, comes with another key, or its user may not use the
 * client.
 */
export async function requireGrantable(
  ctx: KoaContextWithOIDC,
  payload: AdapterPayload,
  loaded: Pick<Loaded, 'clients' | 'scopes' | 'resources' | 'people'>,
  parts: GrantableParts,
): Promise<void> {
  const { InvalidGrant, InvalidTarget } = parts.library.errors
  const { params = {}, client } = ctx.oidc
  if (client === undefined) throw new TypeError('the client is known here')
  const granted = [payload.resource ?? []].flat()
  const [resource, ...others] = [(params.resource as string | string[] | undefined) ?? granted].flat()
  if (others.length > 0) throw new InvalidTarget('only one resource can be named for a token')
  if (resource !== undefined) {
    if (!granted.includes(resource)) throw new InvalidTarget()
    await resourceIndicators(loaded, parts).getResourceServerInfo(ctx, resource, client)
  }
  const proof = ctx.get('DPoP')
  if (payload.dpopJkt !== undefined) {
    // The library has verified it.
    const { jwk } = proof === '' ? {} : decodeProtectedHeader(proof)
    const thumbprint = jwk && (await calculateJwkThumbprint(jwk))
    if (thumbprint !== payload.dpopJkt) throw new InvalidGrant('DPoP proof key thumbprint does not match dpop_jkt')
  }
  // For a refresh, the library has asked.
  const isKnown = ctx.oidc.entities.Account !== undefined
  const account = isKnown || (await accountsOf(parts, loaded)(ctx, String(payload.accountId), payload as never))
  if (account === undefined) throw new InvalidGrant('the user is not signed in any more')
}
