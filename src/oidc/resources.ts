import type { FileClient } from './clients.ts'
import { type Check, hasOnly } from './json-file.ts'

/** A backend that access tokens are issued for (RFC 8707). */
export interface FileResource {
  /** Its address, which is the audience of its tokens. */
  readonly resource: string
  readonly scopes: readonly string[]
  /** Algorithm of its tokens' signatures. */
  readonly algorithm: ResourceAlgorithm
  /** Ids of the clients that may name it. Absent: all of them. */
  readonly clients?: readonly string[] | undefined
}

export type ResourceAlgorithm = 'ES256' | 'RS256'

/** The resources of a clients file, by address. */
export type FileResources = ReadonlyMap<string, FileResource>

/** Reads a resource of the clients file. */
export function readResource(entry: unknown, check: Check): FileResource {
  check(
    hasOnly(entry, ['resource', 'scopes', 'algorithm', 'clients']),
    'may have "resource", "scopes", "algorithm" and "clients" only',
  )
  const { resource, scopes, algorithm = 'ES256', clients } = entry
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
  const isList = Array.isArray(clients) && clients.length > 0 && clients.every((each) => typeof each === 'string')
  check(clients === undefined || isList, 'clients must be a list of client ids')
  return { resource, scopes, algorithm, clients }
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

/**
 * What a client may ask for: of all that there is, the scopes that its metadata names, if it names any, at the
 * resources that are for it. Pages of consent, grants and tokens follow from this.
 */
export function offeredTo({ metadata }: Pick<FileClient, 'metadata'>, { scopes, resources }: Offered): Offered {
  const { client_id: clientId, scope } = metadata
  const own = scope?.split(' ')
  const isOwn = (each: string): boolean => own === undefined || own.includes(each)
  const itsResources = [...resources.values()].filter(({ clients }) => clients?.includes(clientId) !== false)
  return {
    scopes: scopes.filter(isOwn),
    resources: new Map(
      itsResources.map((each) => [each.resource, { ...each, scopes: each.scopes.filter(isOwn) }] as const),
    ),
  }
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

/** The permissions that are still offered. */
export function stillOffered(permissions: readonly Permission[], { scopes, resources }: Offered): Permission[] {
  return permissions.filter((each) => {
    const [scope = '', address] = each.split(' ')
    return (address === undefined ? scopes : resources.get(address)?.scopes)?.includes(scope) === true
  })
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
