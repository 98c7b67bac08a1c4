import type { KoaContextWithOIDC } from 'oidc-provider'
import { permissionsIn } from './grants.ts'
import type { Loaded, SharedParts } from './parts.ts'

/** Life of an access token in seconds. */
export const tokenSeconds = 15 * 60

type ResourceParts = Pick<SharedParts, 'directory' | 'library'>

/** The library's endpoints at which a client asks for scopes of a user. */
const asking: ReadonlySet<string> = new Set(['authorization', 'pushed_authorization_request', 'device_authorization'])

/** Access tokens for resources: a JWT for the one that a request names, or whose scopes the user has allowed. */
export function resourceIndicators({ clients, ...offered }: Loaded, { directory, library }: ResourceParts) {
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
