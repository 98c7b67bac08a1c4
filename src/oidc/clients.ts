import { type Check, checkOf, type Fields, hasOnly, readJson } from '../base/json-file.ts'
import type { People } from '../core/users/people.ts'
import type { PastSession } from '../core/users/sessions.ts'
import { areGroups, groupsExpected, isInAny } from '../shared/groups.ts'
import { isLoopbackHost } from '../shared/origin.ts'
import type { ShownClient } from '../shared/page-values.ts'
import { isPlainLine } from '../shared/plain-line.ts'
import { issuerScopes } from './claims.ts'

/** A client of the clients file, or one that comes with a metadata document. */
export interface FileClient {
  /** Its metadata by the names of RFC 7591, which the library checks. */
  readonly metadata: ClientMetadata
  /** Whether it is the operator's own, which needs no consent. */
  readonly isFirstParty: boolean
  /** Whether it must use PKCE. */
  readonly requiresPkce: boolean
  /** Whether logouts are sent to any address, not only to public ones. */
  readonly isInPrivateNetwork: boolean
  /** Groups of which a user must be in one. Absent: anyone may use it. */
  readonly groups?: readonly string[] | undefined
  /** Address of the resource that all of its tokens are for, if a request names none. */
  readonly defaultResource?: string | undefined
  /** Host of the metadata document that a client comes with; `undefined` for a client of the file. */
  readonly documentHost?: string | undefined
  /** Time in seconds for which a used refresh token is taken again, as after an answer that was lost. */
  readonly refreshGraceSeconds: number
  /** Whether each refresh gives another refresh token, and uses the one before up. */
  readonly rotatesRefreshTokens: boolean
}

/** A client's metadata, as far as it is used here. */
export interface ClientMetadata {
  readonly client_id: string
  /** Empty for a client that uses the device grant alone. */
  readonly redirect_uris: readonly string[]
  readonly grant_types?: readonly unknown[] | undefined
  /** All that it may ask for, of the issuer and of resources. Absent: it may ask for anything. */
  readonly scope?: string | undefined
  readonly [name: string]: unknown
}

/** A client as people know it: by its own address if it names one, or by that of its first redirect URI. */
export function shownClient(metadata: ClientMetadata): ShownClient {
  const { client_id, client_name, client_uri, redirect_uris, policy_uri, tos_uri } = metadata
  const redirect = isWeb(metadata) ? URL.parse(String(redirect_uris[0]))?.origin : undefined
  const papers = { policy: homeOf(policy_uri), terms: homeOf(tos_uri) }
  return { name: String(client_name ?? client_id), home: homeOf(client_uri) ?? redirect, ...papers }
}

/**
 * The address that a client names as its own (client_uri), if people can be led there: https, without a user name,
 * which would read as another host.
 */
export function homeOf(address: unknown): string | undefined {
  const url = typeof address === 'string' ? URL.parse(address) : null
  return url?.protocol === 'https:' && url.username === '' && url.password === '' ? url.href : undefined
}

/** Longest text of a request or document in a line of the log, and on a page. */
export const longestShown = 200

/** A URI as logs and pages show it: without white space and control characters, and no longer than fits. */
export function shownUri(uri: unknown): string | undefined {
  return typeof uri === 'string' ? encodeURI(uri.toWellFormed()).slice(0, longestShown) : undefined
}

/** Where people find a client: the host of its document or its redirect URI; empty if that is on their device. */
export function hostOf({ metadata, documentHost }: FileClient): string {
  return documentHost ?? (isWeb(metadata) ? new URL(String(metadata.redirect_uris[0])).host : '')
}

/** A backend that access tokens are issued for (RFC 8707). */
export interface FileResource {
  /** Its address, which is the audience of its tokens. */
  readonly resource: string
  readonly scopes: readonly string[]
  /** What the page of consent says of scopes. A scope without words is shown by its name. */
  readonly scopeWords?: Readonly<Record<string, string>> | undefined
  /** Algorithm of its tokens' signatures. */
  readonly algorithm: ResourceAlgorithm
  /** Ids of the clients that may name it. Absent: all of them. */
  readonly clients?: readonly string[] | undefined
}

export type ResourceAlgorithm = 'ES256' | 'RS256'

/** The resources of a clients file, by address. */
export type FileResources = ReadonlyMap<string, FileResource>

/** The clients of a file, by id. */
export type FileClients = ReadonlyMap<string, FileClient>

/** Content of a clients file. */
export interface ClientsFile {
  readonly clients: FileClients
  readonly resources: FileResources
  /** The file's spelling of each resource, by the form that all of its spellings have in common. */
  readonly addresses: ReadonlyMap<string, string>
}

/** Fewest characters of a client's secret: 128 random bits in hex. */
const leastSecret = 32

/**
 * Reads a clients file, all of it or nothing. The library checks the rest of a client's metadata.
 *
 * @throws TypeError of one line that names the file and the client, if something does not fit.
 */
export async function readClientsFile(file: string): Promise<ClientsFile> {
  const where = `oidc.clients (COUNTERSIGN_OIDC_CLIENTS), the file ${file}, `
  const check: Check = checkOf(where)
  const json = await readJson(file, check)
  const { clients: entries, resources: listed = [] } = hasOnly(json, ['clients', 'resources']) ? json : {}
  check(Array.isArray(entries), 'must be {"clients": [{"metadata": {…}}, …]}')
  check(Array.isArray(listed), 'resources must be a list')
  const clients = new Map<string, FileClient>()
  for (const [index, entry] of entries.entries()) {
    const checkHere: Check = checkOf(`${where}client ${index + 1}: `)
    const client = readClient(entry, checkHere)
    checkHere(!clients.has(client.metadata.client_id), 'client_id is that of another')
    clients.set(client.metadata.client_id, client)
  }
  const resources = new Map<string, FileResource>()
  const addresses = new Map<string, string>()
  for (const [index, entry] of listed.entries()) {
    const checkHere: Check = checkOf(`${where}resource ${index + 1}: `)
    const resource = readResource(entry, checkHere)
    const canonical = canonicalAddress(resource.resource) ?? resource.resource
    checkHere(!addresses.has(canonical), 'resource is that of another')
    checkHere(!clients.has(resource.resource), 'resource is the id of a client')
    const unknown = resource.clients?.find((each) => !clients.has(each))
    checkHere(unknown === undefined, `clients names ${unknown}, which is the id of no client`)
    resources.set(resource.resource, resource)
    addresses.set(canonical, resource.resource)
  }
  const scopes = [...issuerScopes, ...[...resources.values()].flatMap((each) => each.scopes)]
  for (const [clientId, client] of clients) {
    const { metadata, defaultResource } = client
    const checkHere: Check = checkOf(`${where}client ${clientId}: `)
    const isOffered =
      defaultResource === undefined || offeredTo(client, { scopes: [], resources }).resources.has(defaultResource)
    checkHere(isOffered, 'default_resource must be the address of one of its resources')
    const unknown = metadata.scope?.split(' ').find((each) => !scopes.includes(each))
    checkHere(unknown === undefined, `scope names "${unknown}", which is none of the issuer or a resource`)
  }
  return { clients, resources, addresses }
}

/** Names of RFC 7591, and of OpenID Connect's additions to it, that the issuer takes. */
const metadataNames: ReadonlySet<string> = new Set([
  ...'client_id client_secret client_id_issued_at client_secret_expires_at software_id software_version'.split(' '),
  ...'client_name client_uri logo_uri policy_uri tos_uri contacts'.split(' '),
  ...'application_type redirect_uris post_logout_redirect_uris initiate_login_uri'.split(' '),
  ...'grant_types response_types response_modes scope default_max_age require_auth_time subject_type'.split(' '),
  ...'token_endpoint_auth_method token_endpoint_auth_signing_alg id_token_signed_response_alg jwks'.split(' '),
  ...'backchannel_logout_uri backchannel_logout_session_required'.split(' '),
  ...'dpop_bound_access_tokens require_pushed_authorization_requests'.split(' '),
])

/** Names of a client's entry in the file. */
const names = [
  'metadata',
  'first_party',
  'groups',
  'default_resource',
  'pkce',
  'private_network',
  'refresh_grace_seconds',
  'refresh_rotation',
]

function readClient(entry: unknown, check: Check): FileClient {
  check(hasOnly(entry, names), `may have ${names.join(', ')} only`)
  const { first_party: isFirstParty = false, pkce = 'required', private_network: isInPrivateNetwork = false } = entry
  const {
    metadata,
    groups,
    default_resource: defaultResource,
    refresh_grace_seconds: grace = 0,
    refresh_rotation: rotates = true,
  } = entry
  check(typeof metadata === 'object' && metadata !== null, 'has no metadata')
  const { client_id: id, redirect_uris: uris, client_secret: secret, ...others } = metadata as Fields
  for (const name of ['jwks_uri', 'sector_identifier_uri']) {
    check(others[name] === undefined, `${name} is not supported`)
  }
  const unknown = Object.keys(metadata).find((name) => !metadataNames.has(name))
  check(unknown === undefined, `there is no metadata "${unknown}"`)
  check(
    typeof id === 'string' && /^[A-Za-z0-9][!-~]{0,199}$/.test(id),
    'client_id must be 1 to 200 visible ASCII characters, the first a letter or digit',
  )
  check(Array.isArray(uris), 'redirect_uris must be a list of addresses')
  const { grant_types: grants } = others
  check(grants === undefined || Array.isArray(grants), 'grant_types must be a list')
  const own: ClientMetadata = { ...(metadata as ClientMetadata), redirect_uris: uris.flatMap(spellings) }
  check(uris.length > 0 || usesDevices(own), 'redirect_uris must be a list of addresses')
  check(
    secret === undefined || (typeof secret === 'string' && /^[!-~]+$/.test(secret) && secret.length >= leastSecret),
    `client_secret must have ${leastSecret} characters or more, visible ASCII without spaces, such as the output ` +
      'of: openssl rand -hex 32',
  )
  const { scope } = others
  check(scope === undefined || typeof scope === 'string', 'scope must be a text such as "openid profile"')
  check(typeof isFirstParty === 'boolean', 'first_party must be true or false')
  check(pkce === 'required' || pkce === 'optional', 'pkce must be "required" or "optional"')
  check(!isFirstParty || isWeb(own), 'first_party needs https for every redirect URI, and not the device grant')
  const requiresPkce = pkce === 'required'
  const hasSecret = others.token_endpoint_auth_method !== 'none'
  check(requiresPkce || hasSecret, 'pkce must be "required" for a client without a secret')
  // An empty list would be taken for no condition.
  check(
    groups === undefined || (areGroups(groups) && groups.length > 0),
    `groups must be ${groupsExpected}, one or more`,
  )
  check(typeof isInPrivateNetwork === 'boolean', 'private_network must be true or false')
  check(typeof grace === 'number' && grace >= 0 && grace <= 30, 'refresh_grace_seconds must be 0 to 30')
  check(typeof rotates === 'boolean', 'refresh_rotation must be true or false')
  // Without a secret, a copy of a token that never changes would go unnoticed (OAuth 2.1, 4.3.1).
  check(rotates || hasSecret, 'refresh_rotation must be true for a client without a secret or key')
  const { backchannel_logout_uri: logoutUri } = others
  check(
    logoutUri === undefined || isInPrivateNetwork || isPublicUri(logoutUri),
    'backchannel_logout_uri must be https on port 443; for others set "private_network": true',
  )
  check(
    defaultResource === undefined || typeof defaultResource === 'string',
    'default_resource must be the address of a resource',
  )
  const flags = { isFirstParty, requiresPkce, isInPrivateNetwork, groups, defaultResource }
  // Without an address, nothing can be answered there.
  const responses = uris.length === 0 ? { response_types: [] } : {}
  return { metadata: { ...responses, ...own }, ...flags, refreshGraceSeconds: grace, rotatesRefreshTokens: rotates }
}

/** The device grant (RFC 8628, 3.4). */
export const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** Whether a client may use the device grant. */
export function usesDevices({ grant_types: grants }: Pick<ClientMetadata, 'grant_types'>): boolean {
  return grants?.includes(deviceGrant) === true
}

/** On loopback, both spellings of an address without a path (RFC 3986, 6.2.3): the library compares texts. */
export function spellings(uri: unknown): readonly string[] {
  const [, origin] = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?)\/?$/.exec(String(uri)) ?? []
  return origin === undefined ? [uri as string] : [origin, `${origin}/`]
}

/**
 * Whether every redirect URI of a client is https, so that its owner alone gets what is sent there. An application on
 * the user's device can have any other: a loopback port, or a scheme that another application can take, too. A client
 * that uses the device grant counts as one, whatever its redirect URIs are: anyone can begin with its id.
 */
export function isWeb(metadata: Pick<ClientMetadata, 'redirect_uris' | 'grant_types'>): boolean {
  if (usesDevices(metadata)) return false
  return metadata.redirect_uris.every((uri: unknown) => {
    const url = typeof uri === 'string' ? URL.parse(uri) : null
    return url?.protocol === 'https:' && !isLoopbackHost(url.hostname)
  })
}

/**
 * Whether what a user has allowed a client is kept. It is not where another application on the device can take the
 * answer, or where a stranger can change the client's document.
 */
export function keepsConsent({ metadata, documentHost }: FileClient): boolean {
  return documentHost === undefined && isWeb(metadata)
}

function isPublicUri(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null
  return url?.protocol === 'https:' && url.port === ''
}

/** Reads a resource of the clients file. */
function readResource(entry: unknown, check: Check): FileResource {
  check(
    hasOnly(entry, ['resource', 'scopes', 'algorithm', 'clients']),
    'may have "resource", "scopes", "algorithm" and "clients" only',
  )
  const { resource, scopes: given, algorithm = 'ES256', clients } = entry
  check(
    typeof resource === 'string' && URL.parse(resource)?.hash === '' && /^[!-~]{1,200}$/.test(resource),
    'resource must be an address of 1 to 200 characters without a fragment, such as https://orders.example',
  )
  const scopeWords = typeof given === 'object' && !Array.isArray(given) && given !== null ? given : undefined
  const scopes = scopeWords === undefined ? given : Object.keys(scopeWords)
  const isScope = (each: unknown): boolean => typeof each === 'string' && /^[!#-[\]-~]{1,100}$/.test(each)
  check(
    Array.isArray(scopes) && scopes.length > 0 && scopes.every(isScope),
    'scopes must be a list such as ["orders:read"], or an object such as {"orders:read": "See your orders"}',
  )
  const areWords = Object.values(scopeWords ?? {}).every(
    (each) => typeof each === 'string' && each.trim() !== '' && each.length <= longestShown && isPlainLine(each),
  )
  check(areWords, `words of scopes must be one line of 1 to ${longestShown} characters each`)
  check(algorithm === 'ES256' || algorithm === 'RS256', 'algorithm must be ES256 or RS256')
  const isList = Array.isArray(clients) && clients.length > 0 && clients.every((each) => typeof each === 'string')
  check(clients === undefined || isList, 'clients must be a list of client ids')
  return { resource, scopes, scopeWords: scopeWords as FileResource['scopeWords'], algorithm, clients }
}

/** The words of what a client asks for, by its name with the address of its resource. */
export function wordsOf(asked: Iterable<string>, resources: FileResources): Readonly<Record<string, string>> {
  const entries = [...asked].map((each) => {
    const [scope = '', resource = ''] = each.split(' ')
    return [each, resources.get(resource)?.scopeWords?.[scope]]
  })
  return Object.fromEntries(entries.filter(([, words]) => words !== undefined))
}

/** Whether a user may use a client. */
export function mayUse(user: PastSession, { groups }: Pick<FileClient, 'groups'>, people: People): boolean {
  return groups === undefined || isInAny(people.find(user)?.groups ?? [], groups)
}

/** Number of clients that anyone who signs in may use. */
export function openClientsIn(clients: FileClients): number {
  return [...clients.values()].filter(({ groups }) => groups === undefined).length
}

/** Scopes and resources that clients may ask for. */
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

/** Characters of a URI (RFC 3986, 2), in the form `scheme://authority…`. No browser's repairs are wanted here. */
const uriShape = /^[a-z][a-z\d+.-]*:\/\/(?!\/)(?:[\w.~:/?[\]@!$&'()*+,;=-]|%[\da-f]{2})+$/i

/**
 * The one form of all spellings of an address that name the same by RFC 3986, 6.2.2 and 6.2.3: case of scheme, host and
 * escapes, escapes of characters that need none, dot segments, the scheme's own port, and the path `/`. `undefined` for
 * what is no such address.
 */
export function canonicalAddress(text: string): string | undefined {
  if (!uriShape.test(text)) return undefined
  return URL.parse(text)?.href.replace(/%[\da-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
  })
}
