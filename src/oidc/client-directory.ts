import { networksOf, type RequestContext } from '../base/request.ts'
import type { RateLimiter } from '../limits/rate.ts'
import { ClientDocuments, type DocumentParts, type DocumentUse } from './client-documents.ts'
import { type FileClient, type Offered, offeredTo } from './clients.ts'
import { DocumentUnavailable } from './document-fetches.ts'
import type { IssuerSettings, Loaded } from './issuer-parts.ts'

/** Who asks for a client. */
export interface ClientUse {
  /** The request in which it is asked for; `undefined` for work of the service itself. */
  readonly request: RequestContext | undefined
  /** Name of the library's endpoint; `undefined` for pages of ours. */
  readonly route: string | undefined
  /** Whether its document may be fetched. Default: true. */
  readonly mayFetch?: boolean
}

interface DirectoryParts extends Pick<DocumentParts, 'validate' | 'log' | 'sampler'> {
  readonly settings: Pick<IssuerSettings, 'oidc' | 'accessTokens'>
  /** What is in force now. */
  readonly loaded: () => Pick<Loaded, 'clients' | 'resources'>
  /** Absent if the rate limits are off. */
  readonly limiter: RateLimiter | undefined
}

/** Endpoints that applications call by themselves. All others are opened by a browser. */
const backendRoutes: ReadonlySet<string | undefined> = new Set([
  'token',
  'userinfo',
  'introspection',
  'revocation',
  'pushed_authorization_request',
  'device_authorization',
])

/** Work of the service itself, which takes the place of no network. */
const unasked: DocumentUse = { count: () => undefined, networks: [], mayFetch: true, takesStale: false }

/** All clients: those of the clients file, and those that come with a metadata document. */
export class ClientDirectory {
  readonly #parts: DirectoryParts
  readonly #documents: ClientDocuments
  /** Requests that were refused: the library asks again to say so. */
  readonly #refused = new WeakMap<RequestContext, DocumentUnavailable>()

  constructor(parts: DirectoryParts) {
    const { settings, loaded, validate, log, sampler } = parts
    this.#parts = parts
    this.#documents = new ClientDocuments({
      prefixes: settings.oidc.clientDocuments ?? [],
      isTaken: (id) => loaded().resources.has(id) || settings.accessTokens.audiences?.includes(id) === true,
      validate,
      log,
      sampler,
    })
  }

  /**
   * The client of an id, or `undefined`. Its document is fetched if it has to be, which counts for the caller's network
   * as a request for authorization does. Rejects with `DocumentUnavailable`, `DocumentInvalid` or `DocumentNotFetched`,
   * or with RATE_LIMITED.
   */
  async find(id: string, { request, route, mayFetch = true }: ClientUse): Promise<FileClient | undefined> {
    const { loaded, limiter } = this.#parts
    const client = loaded().clients.get(id)
    if (client !== undefined || request === undefined) return client ?? (await this.#documents.find(id, unasked))
    const refused = this.#refused.get(request)
    if (refused !== undefined) throw refused
    const isBackend = backendRoutes.has(route)
    const isForeign = isBackend ? limiter?.isForeign(request) : limiter?.isForeignNavigation(request)
    const networks = limiter === undefined || request.ip === undefined ? [] : networksOf(request.ip)
    const use = {
      count: () => (isBackend ? limiter?.spend('sign-in', request) : limiter?.spendNavigation('sign-in', request)),
      networks: networks.map((network) => (isForeign ? `${network} foreign` : network)),
      mayFetch,
      takesStale: route === 'token',
    }
    return await this.#documents.find(id, use).catch((thrown: unknown) => {
      if (thrown instanceof DocumentUnavailable) this.#refused.set(request, thrown)
      throw thrown
    })
  }

  /** The client, if it is in the file or a document of it in the cache, for lists and for texts of errors. */
  seen(id: string): FileClient | undefined {
    return this.#parts.loaded().clients.get(id) ?? this.#documents.seen(id)
  }

  /** What a client may ask for, or `undefined` if there is no such client. No document bounds it. */
  offeredTo(id: string, offered: Offered): Offered | undefined {
    const client = this.#parts.loaded().clients.get(id)
    if (client !== undefined) return offeredTo(client, offered)
    const metadata = { client_id: id, redirect_uris: [] }
    return this.#documents.allows(id) ? offeredTo({ metadata }, offered) : undefined
  }
}
