/** A backend that access tokens are issued for (RFC 8707). */
export interface FileResource {
  /** Its address, which is the audience of its tokens. */
  readonly resource: string
  readonly scopes: readonly string[]
  /** Algorithm of its tokens' signatures. */
  readonly algorithm: ResourceAlgorithm
}

export type ResourceAlgorithm = 'ES256' | 'RS256'

/** The resources of a clients file, by address. */
export type FileResources = ReadonlyMap<string, FileResource>

/** What is said of a resource that does not fit. */
type Fail = (what: string) => never

/** Reads a resource of the clients file, whose names have been checked. */
export function readResource(fields: Readonly<Record<string, unknown>>, fail: Fail): FileResource {
  const { resource, scopes, algorithm = 'ES256' } = fields
  const url = typeof resource === 'string' ? URL.parse(resource) : null
  if (url === null || url.hash !== '' || !/^[!-~]{1,200}$/.test(String(resource))) {
    return fail('resource must be an address of 1 to 200 characters without a fragment, such as https://orders.example')
  }
  const isScope = (each: unknown): boolean => typeof each === 'string' && /^[!#-[\]-~]{1,100}$/.test(each)
  if (!Array.isArray(scopes) || scopes.length === 0 || !scopes.every(isScope)) {
    return fail('scopes must be a list such as ["orders:read"]')
  }
  if (algorithm !== 'ES256' && algorithm !== 'RS256') return fail('algorithm must be ES256 or RS256')
  return { resource: String(resource), scopes, algorithm }
}

/**
 * What is asked of a user, or has been allowed: scopes of the issuer, such as `profile`, and those of a resource with
 * its address behind a space, such as `orders:read https://orders.example`. Neither can contain a space.
 */
export type Permission = string

/** The scope of a permission. */
export function scopeOf(permission: Permission): string {
  return permission.split(' ')[0] ?? ''
}

/** What there is to be asked for. */
export interface Offered {
  readonly scopes: readonly string[]
  readonly resources: FileResources
}

/** The permissions that a request asks for, of those that there are. */
export function permissionsIn(
  { scope, resource }: { readonly scope?: unknown; readonly resource?: unknown },
  { scopes, resources }: Offered,
): Set<Permission> {
  const asked = typeof scope === 'string' ? [...new Set(scope.split(' '))] : []
  const addresses = [resource ?? []].flat().map(String)
  return new Set([
    ...asked.filter((each) => scopes.includes(each)),
    ...addresses.flatMap((address) =>
      asked.filter((each) => resources.get(address)?.scopes.includes(each)).map((each) => `${each} ${address}`),
    ),
  ])
}

/** Permissions as the library writes them in a grant. */
export function grantOf(permissions: readonly Permission[]): {
  readonly openid: { readonly scope: string }
  readonly resources: Readonly<Record<string, string>>
} {
  const byAddress = Map.groupBy(permissions, (each) => each.split(' ')[1] ?? '')
  const scopesAt = (address: string): string => (byAddress.get(address) ?? []).map(scopeOf).join(' ')
  const addresses = [...byAddress.keys()].filter((address) => address !== '')
  return {
    openid: { scope: scopesAt('') },
    resources: Object.fromEntries(addresses.map((address) => [address, scopesAt(address)])),
  }
}
