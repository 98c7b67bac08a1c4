import { hasPrefix, isDocumentAddress } from '../base/document-address.ts'
import type { Fields } from '../base/json-file.ts'
import type { Logger } from '../base/log.ts'
import type { Sampler } from '../base/timing/sampler.ts'
import { isPlainLine } from '../shared/plain-line.ts'
import { type ClientMetadata, type FileClient, homeOf, shownUri, spellings } from './clients.ts'
import { DocumentFetches, DocumentUnavailable, remember } from './document-fetches.ts'
import { answerMs, type FetchedJson, getJson } from './outgoing.ts'

/** Largest document or key set in bytes. */
const maxBytes = 5 * 1024

/** Bounds in ms of the time for which a document is used without another look, whatever its server says. */
const fresh = { least: 5 * 60_000, most: 60 * 60_000 }

/** Time in ms for which the last good document serves the token endpoint while its host is away. */
const staleMs = 24 * 60 * 60_000

/** Time in seconds for which a used refresh token of a public client is taken again. */
const publicGraceSeconds = 10

/** Time in ms for which a failure is remembered. */
const failedMs = 60_000

/** The document of a client is not known, and was not to be fetched. */
export class DocumentNotFetched extends Error {}

/** The document of a client was fetched and is not valid. */
export class DocumentInvalid extends Error {}

/** A client with a document, and until when that counts, by `performance.now()`. */
interface Known {
  readonly client: FileClient
  readonly freshUntil: number
  readonly lastUntil: number
}

interface Failure {
  readonly error: unknown
  readonly until: number
}

/** Who asks for a client with a document. */
export interface DocumentUse {
  /** Counts a request to the client's host, for the network that causes it. */
  readonly count: () => Promise<void> | undefined
  /** Networks that share the places for fetches, narrowest first. None if they are not told apart. */
  readonly networks: readonly string[]
  /** Whether a document may be fetched. If not, the last good one counts for up to 24 hours. */
  readonly mayFetch: boolean
  /** Whether a document counts that has not been looked at for up to 24 hours, if its host is away. */
  readonly takesStale: boolean
}

export interface DocumentParts {
  /** Beginnings of addresses, or whole ones, of documents that count; `*` for all. */
  readonly prefixes: readonly string[]
  /** Whether an id is that of an audience or resource: a token for the one would be for the other. */
  readonly isTaken: (id: string) => boolean
  /** Checks metadata as the library does. Rejects if they do not fit. */
  readonly validate: (metadata: ClientMetadata) => Promise<void>
  readonly log: Logger
  readonly sampler: Sampler
}

/**
 * Clients without a registration: the id of each is the address of a document with its metadata (OAuth Client ID
 * Metadata Document). Strangers choose the addresses, so what is fetched, kept and remembered is bounded.
 */
export class ClientDocuments {
  readonly #parts: DocumentParts
  /** By id, those used last behind the others. */
  readonly #known = new Map<string, Known>()
  readonly #failed = new Map<string, Failure>()
  readonly #fetches = new DocumentFetches((id) => this.#fetch(id))

  constructor(parts: DocumentParts) {
    this.#parts = parts
  }

  /** Whether a client_id is the address of a document, within the prefixes, and not taken. */
  allows(id: string): boolean {
    const { prefixes, isTaken } = this.#parts
    return isDocumentAddress(id) && hasPrefix(id, prefixes) && !isTaken(id)
  }

  /** The client of an id as it was seen last in this process. */
  seen(id: string): FileClient | undefined {
    return this.allows(id) ? this.#known.get(id)?.client : undefined
  }

  /**
   * The client of an id; `undefined` unless {@link allows} accepts the id. Rejects with {@link DocumentUnavailable},
   * {@link DocumentInvalid} or {@link DocumentNotFetched}.
   */
  async find(id: string, use: DocumentUse): Promise<FileClient | undefined> {
    if (!this.allows(id)) return undefined
    const known = this.#known.get(id)
    if (known !== undefined) remember(this.#known, id, known)
    if (known !== undefined && performance.now() < known.freshUntil) return known.client
    const isKept = known !== undefined && performance.now() < known.lastUntil
    if (!use.mayFetch) {
      // No one is signed in, so nothing is given: the document says only where `login_required` goes.
      if (isKept) return known.client
      throw new DocumentNotFetched('no one is signed in')
    }
    try {
      return (await this.#load(id, use)).client
    } catch (thrown) {
      if (use.takesStale && isKept) return known.client
      throw thrown
    }
  }

  async #load(id: string, { count, networks }: DocumentUse): Promise<Known> {
    this.#throwFailure(id)
    if (!this.#fetches.has(id)) {
      await count()
      this.#throwFailure(id)
    }
    return await this.#fetches.get({ id, networks })
  }

  #throwFailure(id: string): void {
    const failure = this.#failed.get(id)
    if (failure !== undefined && performance.now() < failure.until) throw failure.error
  }

  async #fetch(id: string): Promise<Known> {
    try {
      const known = await this.#read(id)
      this.#failed.delete(id)
      remember(this.#known, id, known)
      return known
    } catch (error) {
      remember(this.#failed, id, { error, until: performance.now() + failedMs })
      throw error
    }
  }

  /** Gets a document and its keys, in the time of one answer, so that no place is taken for longer. */
  async #read(id: string): Promise<Known> {
    const signal = AbortSignal.timeout(answerMs)
    const document = await fetchJson(id, signal)
    const { jwksUri, unused, ...client } = readDocument(id, document.json)
    if (unused.length > 0) this.#logUnused(id, unused)
    const keys = jwksUri === undefined ? undefined : await fetchJson(jwksUri, signal)
    const metadata = keys === undefined ? client.metadata : { ...client.metadata, jwks: keys.json }
    await this.#parts.validate(metadata).catch((cause: Error & { readonly error_description?: string }) => {
      throw new DocumentInvalid(cause.error_description ?? cause.message, { cause })
    })
    const now = performance.now()
    const life = Math.min(lifeOf(document), keys === undefined ? fresh.most : lifeOf(keys))
    return { client: { ...client, metadata }, freshUntil: now + life, lastUntil: now + staleMs }
  }

  #logUnused(id: string, unused: readonly unknown[]): void {
    const { log, sampler } = this.#parts
    const redirectUris = unused.slice(0, 10).map((uri) => shownUri(uri) ?? typeof uri)
    sampler.add(new URL(id).host, 'unused', (repeated) =>
      log.info('a client document has redirect URIs that cannot be used', {
        clientId: id,
        redirectUris: redirectUris.join(' '),
        repeated,
      }),
    )
  }
}

/** The host of the document that a client_id names; `undefined` if it names none. */
export function documentHostOf(id: unknown): string | undefined {
  return typeof id === 'string' && isDocumentAddress(id) ? new URL(id).host : undefined
}

interface ReadDocument extends FileClient {
  readonly jwksUri?: string | undefined
  /** Redirect URIs that cannot be used. */
  readonly unused: readonly unknown[]
}

/** The client that a document describes. Of its metadata, only what is named here counts. */
function readDocument(id: string, json: unknown): ReadDocument {
  const named = typeof json === 'object' && json !== null ? Object.entries(json) : []
  const fields: Fields = Object.fromEntries(named.filter(([, value]) => value !== null))
  const { origin, host } = new URL(id)
  const { client_name: name, client_uri: home, redirect_uris: uris, jwks, jwks_uri: jwksUri } = fields
  const { token_endpoint_auth_method: method = 'none' } = fields
  const { grant_types: grants = ['authorization_code'], response_types: responses = ['code'] } = fields
  require(fields.client_id === id, 'client_id is not the address of the document')
  const listed: readonly unknown[] = Array.isArray(uris) ? uris : []
  const usable = listed.filter(isSafeRedirect)
  require(usable.length > 0, 'redirect_uris must have an address that is https, or leads to the device')
  require(isTexts(grants) && grants.includes('authorization_code'), 'grant_types must have authorization_code')
  require(isTexts(responses) && responses.includes('code'), 'response_types must have code')
  require(method === 'none' ||
    method === 'private_key_jwt', 'token_endpoint_auth_method must be none or private_key_jwt')
  const usesUri = method === 'private_key_jwt' && jwks === undefined
  require(!usesUri || isOf(origin, jwksUri), 'private_key_jwt needs jwks, or a jwks_uri of the same origin')
  const isName = typeof name === 'string' && name.length <= 80 && name.trim() === name && isPlainLine(name)
  const metadata: ClientMetadata = {
    client_id: id,
    client_name: isName && name !== '' ? name : host,
    client_uri: isOf(origin, home) ? (homeOf(home) ?? origin) : origin,
    ...Object.fromEntries(
      ['policy_uri', 'tos_uri'].map((key) => [key, fields[key]]).filter(([, uri]) => isOf(origin, uri)),
    ),
    redirect_uris: usable.flatMap(spellings),
    grant_types: ['authorization_code', 'refresh_token'].filter((each) => grants.includes(each)),
    response_types: ['code'],
    token_endpoint_auth_method: method,
    // For the library, this one has addresses of all kinds, and loopback ones with any port.
    application_type: 'native',
    ...(method === 'private_key_jwt' && !usesUri ? { jwks } : {}),
  }
  // A public client often refreshes twice at once: in two windows, or for two addresses of one service.
  const refreshGraceSeconds = method === 'none' ? publicGraceSeconds : 0
  const rules = { isFirstParty: false, requiresPkce: true, isInPrivateNetwork: false, rotatesRefreshTokens: true }
  const flags = { ...rules, refreshGraceSeconds }
  const unused = listed.filter((uri) => !isSafeRedirect(uri))
  return { metadata, ...flags, documentHost: host, jwksUri: usesUri ? String(jwksUri) : undefined, unused }
}

function require(fits: boolean, expected: string): asserts fits {
  if (!fits) throw new DocumentInvalid(expected)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

/** The names of the device itself that the library takes with any port. */
const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])$/

/** Schemes that lead to no application: a browser runs or shows what they name, or sends the answer as clear text. */
const foreignSchemes = /^(javascript|vbscript|data|blob|file|about|view-source|ftp|wss?):$/

/**
 * Whether an answer can be sent to an address, and no one on the way reads it: by https, over http to the device itself
 * only, or to an application by its scheme.
 */
function isSafeRedirect(uri: unknown): uri is string {
  const url = typeof uri === 'string' ? URL.parse(uri) : null
  if (url === null || url.href.includes('#')) return false
  const isOnDevice = loopbackHost.test(url.hostname)
  if (url.protocol === 'https:') return !isOnDevice
  return url.protocol === 'http:' ? isOnDevice : !foreignSchemes.test(url.protocol)
}

function isOf(origin: string, address: unknown): address is string {
  return typeof address === 'string' && URL.parse(address)?.origin === origin
}

async function fetchJson(address: string, signal: AbortSignal): Promise<FetchedJson> {
  try {
    return await getJson(new URL(address), { maxBytes, signal })
  } catch (cause) {
    throw new DocumentUnavailable(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

function lifeOf({ maxAgeSeconds = 0 }: FetchedJson): number {
  return Math.min(Math.max(maxAgeSeconds * 1000, fresh.least), fresh.most)
}
