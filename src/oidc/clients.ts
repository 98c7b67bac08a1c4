import { readFile } from 'node:fs/promises'
import { isLoopbackHost } from '../shared/origin.ts'
import { type FileResource, type FileResources, readResource } from './resources.ts'

/** A client of the clients file. */
export interface FileClient {
  /** Its metadata by the names of RFC 7591, which the library checks. */
  readonly metadata: ClientMetadata
  /** Whether it is the operator's own, which needs no consent. */
  readonly isFirstParty: boolean
  /** Whether it must use PKCE. */
  readonly requiresPkce: boolean
  /** Whether it is told of logouts at any address, not only at public ones. */
  readonly isInPrivateNetwork: boolean
  /** Time in seconds for which a used refresh token is taken again, as after an answer that was lost. */
  readonly refreshGraceSeconds: number
}

/** What is looked at here of a client's metadata. */
export interface ClientMetadata {
  readonly client_id: string
  readonly redirect_uris: readonly string[]
  readonly [name: string]: unknown
}

/** The clients of a file, by id. */
export type FileClients = ReadonlyMap<string, FileClient>

/** What a clients file has. */
export interface ClientsFile {
  readonly clients: FileClients
  readonly resources: FileResources
}

/** Fewest characters of a client's secret: 128 random bits in hex. */
const leastSecret = 32

/** Grants and responses that a client can have here. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
}

/**
 * Reads a clients file, as a whole or not at all.
 *
 * @throws TypeError of one line that names the file and the client, if something does not fit.
 */
export async function readClientsFile(file: string): Promise<ClientsFile> {
  const fail = (what: string): never => {
    throw new TypeError(`oidc.clients (COUNTERSIGN_OIDC_CLIENTS), the file ${file}, ${what}`)
  }
  let json: unknown
  try {
    json = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    return fail(code === undefined ? 'is not JSON' : `cannot be read: ${code}`)
  }
  const clients = new Map<string, FileClient>()
  const { clients: entries, resources: listed = [] } = objectWith(json, ['clients', 'resources']) ?? {}
  if (!Array.isArray(entries) || entries.length === 0) return fail('must be {"clients": [{"metadata": {…}}, …]}')
  if (!Array.isArray(listed)) return fail('resources must be a list')
  for (const [index, entry] of entries.entries()) {
    const client = readClient(entry, (what) => fail(`client ${index + 1}: ${what}`))
    if (clients.has(client.metadata.client_id)) return fail(`client ${index + 1}: client_id is that of another`)
    clients.set(client.metadata.client_id, client)
  }
  const resources = new Map<string, FileResource>()
  for (const [index, entry] of listed.entries()) {
    const failHere = (what: string): never => fail(`resource ${index + 1}: ${what}`)
    const fields = objectWith(entry, ['resource', 'scopes', 'algorithm'])
    if (fields === undefined) return failHere('may have "resource", "scopes" and "algorithm" only')
    const resource = readResource(fields, failHere)
    if (resources.has(resource.resource)) return failHere('resource is that of another')
    if (clients.has(resource.resource)) return failHere('resource is the id of a client')
    resources.set(resource.resource, resource)
  }
  return { clients, resources }
}

function readClient(entry: unknown, fail: (what: string) => never): FileClient {
  const names = ['metadata', 'first_party', 'pkce', 'private_network', 'refresh_grace_seconds']
  const fields = objectWith(entry, names)
  if (fields === undefined) return fail(`may have ${names.join(', ')} only`)
  const { first_party: firstParty = false, pkce = 'required', private_network: isPrivate = false } = fields
  const { refresh_grace_seconds: grace = 0 } = fields
  const metadata = fields.metadata as ClientMetadata
  if (typeof metadata !== 'object' || metadata === null) return fail('has no metadata')
  const { client_id: clientId, redirect_uris: redirectUris } = metadata
  if (typeof clientId !== 'string' || !/^[A-Za-z0-9][!-~]{0,199}$/.test(clientId)) {
    return fail('client_id must be 1 to 200 visible ASCII characters, the first a letter or digit')
  }
  if (!Array.isArray(redirectUris) || redirectUris.length === 0)
    return fail('redirect_uris must be a list of addresses')
  for (const [name, values] of Object.entries(allowed)) {
    const given = metadata[name] ?? []
    if (!Array.isArray(given) || given.some((value) => !values.includes(value))) {
      return fail(`${name} may contain ${values.join(' and ')} only`)
    }
  }
  for (const name of ['jwks_uri', 'sector_identifier_uri']) {
    if (metadata[name] !== undefined) return fail(`${name} is not supported`)
  }
  const { client_secret: secret } = metadata
  if (secret !== undefined && (typeof secret !== 'string' || secret.length < leastSecret)) {
    return fail(`client_secret must have ${leastSecret} characters or more`)
  }
  if (typeof firstParty !== 'boolean') return fail('first_party must be true or false')
  if (pkce !== 'required' && pkce !== 'optional') return fail('pkce must be "required" or "optional"')
  if (firstParty && !isWeb(redirectUris)) return fail('first_party needs https for every redirect URI')
  if (pkce === 'optional' && metadata.token_endpoint_auth_method === 'none') {
    return fail('pkce must be "required" for a client without a secret')
  }
  if (typeof isPrivate !== 'boolean') return fail('private_network must be true or false')
  if (typeof grace !== 'number' || !(grace >= 0 && grace <= 30)) return fail('refresh_grace_seconds must be 0 to 30')
  const { backchannel_logout_uri: logoutUri } = metadata
  if (logoutUri !== undefined && !(isPrivate || isPublicAddress(logoutUri))) {
    return fail('backchannel_logout_uri must be https on port 443; for others set "private_network": true')
  }
  return {
    metadata,
    isFirstParty: firstParty,
    requiresPkce: pkce === 'required',
    isInPrivateNetwork: isPrivate,
    refreshGraceSeconds: grace,
  }
}

/**
 * Whether every redirect URI of a client is https, so that its owner alone gets what is sent there. An application on
 * the user's device can have any other: a loopback port, or a scheme that another application can take, too.
 */
export function isWeb(redirectUris: readonly unknown[]): boolean {
  return redirectUris.every((uri) => {
    const url = typeof uri === 'string' ? URL.parse(uri) : null
    return url?.protocol === 'https:' && !isLoopbackHost(url.hostname)
  })
}

function isPublicAddress(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null
  return url?.protocol === 'https:' && url.port === ''
}

/** An object that has no other names than these; else `undefined`. */
function objectWith(value: unknown, names: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.keys(value).every((name) => names.includes(name)) ? (value as Record<string, unknown>) : undefined
}
