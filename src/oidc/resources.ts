import { type Check, hasOnly } from './json-file.ts'

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

/** Reads a resource of the clients file. */
export function readResource(entry: unknown, check: Check): FileResource {
  check(hasOnly(entry, ['resource', 'scopes', 'algorithm']), 'may have "resource", "scopes" and "algorithm" only')
  const { resource, scopes, algorithm = 'ES256' } = entry
  check(
    typeof resource === 'string' && URL.parse(resource)?.hash === '' && /^[!-~]{1,200}$/.test(resource),
    'resource must be an address of 1 to 200 characters without a fragment, such as https://orders.example',
  )
  const isScope = (each: unknown): boolean => typeof each === 'string' && /^[!#-[\]-~]{1,100}$/.test(each)
  check(
    Array.isArray(scopes) && scopes.length > 0 && scopes.every(isScope),
    'scopes must be a list such as ["orders:read"]',
  )
  check(algorithm === 'ES256' || algorithm === 'RS256', 'algorithm must be ES256 or RS256')
  return { resource, scopes, algorithm }
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
