import type { Provider } from 'oidc-provider'
import type { AuditTrail } from '../base/audit.ts'
import type { Logger } from '../base/log.ts'
import type { RequestContext } from '../base/request.ts'
import { keyTimes } from '../base/rotation-key.ts'
import { type Keyring, randomText } from '../base/token.ts'
import type { ConnectedApps, ListedApp } from '../core/users/connected-apps.ts'
import type { StandaloneHost } from '../core/users/standalone.ts'
import type { IssuerRoute } from '../http/app.ts'
import { type Exchange, requireHttpMethod } from '../http/exchange.ts'
import { isForm, isJson, notJson } from '../http/refusals.ts'
import { CountersignError } from '../shared/errors.ts'
import { cookieNames, cookieValue } from '../shared/header-text.ts'
import type { Store } from '../store/store.ts'
import { BackChannel, type Logout } from './back-channel.ts'
import { askLibrary, type Callback, type LibraryAnswer } from './bridge.ts'
import type { OwnClaims } from './claims.ts'
import { isWeb, readClientsFile } from './clients.ts'
import { Grants, sidOf } from './grants.ts'
import { Interactions } from './interaction.ts'
import { publicKeys, type SigningJwk, signingKeys } from './keys.ts'
import {
  interactionCookie,
  interactionSeconds,
  type Library,
  type LibraryParts,
  type Loaded,
  loadLibrary,
  makeProvider,
  resumeCookie,
  sessionCookie,
} from './library.ts'
import { issuerPage, type PageLooks, type ShowPage } from './pages.ts'
import { haveEmail, readPeopleFile } from './people.ts'
import { requestState } from './request-state.ts'
import { scopeOf } from './resources.ts'
import { SealedRecords } from './sealed-records.ts'

/** Settings of the issuer. */
export interface IssuerSettings extends PageLooks {
  /** File with the clients. */
  readonly clientsFile: string
  /** Template of users' e-mail addresses, with `{user_id}`. Absent: no user has one. */
  readonly email?: string | undefined
  readonly claims?: OwnClaims | undefined
  /** File with claims of people. Absent: there is none. */
  readonly peopleFile?: string | undefined
  /** Longest life of a session in seconds. */
  readonly sessionSeconds: number
  /** Audiences of the service's own access tokens, which no client may have as its id. */
  readonly audiences: readonly string[]
}

/** What the issuer stands on. */
export interface IssuerParts {
  readonly settings: IssuerSettings
  /** Paths of the issuer's metadata, outside the base path. */
  readonly discoveryPaths: readonly string[]
  /** The service's public URL, which is the issuer. */
  readonly publicUrl: () => string
  readonly store: Store
  readonly keyring: Keyring
  readonly host: StandaloneHost
  readonly apps: ConnectedApps
  readonly audit: AuditTrail
  /**
   * Counts, for its network, a request of a sender that need not be known, and whose record lives for so many
   * milliseconds. Rejects with RATE_LIMITED or SERVER_BUSY beyond a limit.
   */
  readonly spend: (request: RequestContext, lifeMs: number) => Promise<void>
  /** Counts a wrong secret or token of a network. Rejects with RATE_LIMITED beyond its limit. */
  readonly countWrong: (request: RequestContext) => Promise<void> | undefined
  readonly log: Logger
}

/** The issuer, as the service serves it. */
export interface Issuer {
  /** The route of a path that is the issuer's; `undefined` for any other. */
  find(path: string): IssuerRoute | undefined
  /** Public keys for the service's key set. */
  readonly keySet: { readonly keys: readonly object[] }
  /** The applications that a user has connected, those used last first. */
  listApps(userId: string): Promise<ListedApp[]>
  /** Reads the clients file and the keys again. Resolves with what puts them in force. */
  prepare(): Promise<() => void>
  /** Stops sending logouts, and waits for those on their way, for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** Name of the cookie with the browser's own secret, before what is the cookie's own. */
const browserCookie = 'countersign_oidc_browser_'

/** Makes the issuer. Rejects with a `TypeError` of one line if the clients file or a client does not fit. */
export async function createIssuer(parts: IssuerParts): Promise<Issuer> {
  const library = await loadLibrary()
  const issuer = new LibraryIssuer(parts, library)
  const apply = await issuer.prepare()
  apply()
  issuer.start()
  return issuer
}

class LibraryIssuer implements Issuer {
  readonly #parts: IssuerParts
  readonly #libraryParts: LibraryParts
  readonly #records: SealedRecords
  readonly #grants: Grants
  readonly #interactions: Interactions
  readonly #page: ShowPage
  readonly #routes: ReadonlyMap<string, IssuerRoute>
  readonly #base: string
  #loaded: Loaded = { clients: new Map(), resources: new Map(), scopes: [], keys: [], people: new Map() }
  /** Made for a public URL, which follows from the port if it is not set. */
  #made: { readonly issuer: string; readonly provider: Provider; readonly callback: Callback } | undefined
  readonly #backChannel: BackChannel
  #keyTimer: NodeJS.Timeout | undefined

  constructor(parts: IssuerParts, library: Library) {
    this.#parts = parts
    const { settings, store, keyring, host } = parts
    const findSession = (id: string) => host.findSession(id)
    this.#base = `${settings.basePath}/oidc`
    this.#records = new SealedRecords(store, keyring)
    this.#grants = new Grants({
      records: this.#records,
      store,
      apps: parts.apps,
      offline: host.offline,
      sessionClients: host.sessionClients,
      isLive: async ({ id }) => (await findSession(id)) !== undefined,
      sessionSeconds: settings.sessionSeconds,
    })
    this.#backChannel = new BackChannel({
      store,
      sessionClients: host.sessionClients,
      isLive: async (id) => (await findSession(id)) !== undefined,
      isWanted: (clientId) => this.#loaded.clients.get(clientId)?.metadata.backchannel_logout_uri !== undefined,
      send: (logout) => this.#sendLogout(logout),
      log: parts.log,
    })
    this.#page = issuerPage(settings)
    this.#interactions = new Interactions({
      records: this.#records,
      grants: this.#grants,
      clients: () => this.#loaded.clients,
      offered: () => this.#loaded,
      keyring,
      store,
      page: this.#page,
      signInPath: `${settings.basePath}/sign-in`,
      audit: parts.audit,
      endSession: async ({ userId, id }) => void (await host.endSession(userId, id)),
    })
    this.#libraryParts = {
      ...parts,
      library,
      base: this.#base,
      records: this.#records,
      grants: this.#grants,
      interactions: this.#interactions,
      page: this.#page,
    }
    const forBackends = (endpoint: IssuerRoute['endpoint'], methods: readonly string[]): IssuerRoute => ({
      endpoint,
      serve: (exchange) => this.#serveLibrary(exchange, methods, 'backend'),
    })
    const routes: readonly IssuerRoute[] = [
      forBackends('token', ['POST', 'OPTIONS']),
      forBackends('userinfo', ['GET', 'POST', 'OPTIONS']),
      forBackends('introspect', ['POST', 'OPTIONS']),
      forBackends('revoke', ['POST', 'OPTIONS']),
      forBackends('par', ['POST', 'OPTIONS']),
      { endpoint: 'authorize', serve: (exchange) => this.#serveAuthorize(exchange) },
      { endpoint: 'logout', serve: (exchange) => this.#serveLogout(exchange) },
    ]
    const discovery = forBackends('discovery', ['GET', 'HEAD', 'OPTIONS'])
    this.#routes = new Map([
      ...routes.map((route) => [`${this.#base}/${route.endpoint}`, route] as const),
      ...parts.discoveryPaths.map((path) => [path, discovery] as const),
    ])
  }

  get keySet(): { readonly keys: readonly object[] } {
    return { keys: publicKeys(this.#loaded.keys) }
  }

  find(path: string): IssuerRoute | undefined {
    const route = this.#routes.get(path)
    if (route !== undefined) return route
    const [, kind, uid] = /^\/(authorize|interaction)\/([\w-]{1,64})$/.exec(path.slice(this.#base.length)) ?? []
    if (!path.startsWith(`${this.#base}/`) || uid === undefined) return undefined
    return kind === 'authorize'
      ? { endpoint: 'authorize', serve: (exchange) => this.#serveLibrary(exchange, ['GET'], 'browser') }
      : { endpoint: 'interaction', serve: (exchange) => this.#serveInteraction(exchange, uid) }
  }

  async listApps(userId: string): Promise<ListedApp[]> {
    const apps = [...(await this.#parts.apps.of(userId))].sort(([, a], [, b]) => b.lastUsedAt - a.lastUsedAt)
    return apps.map(([clientId, { scopes, connectedAt, lastUsedAt }]) => {
      const metadata = this.#loaded.clients.get(clientId)?.metadata
      const [redirectUri] = metadata?.redirect_uris ?? []
      return {
        clientId,
        name: String(metadata?.client_name ?? clientId),
        host: metadata !== undefined && isWeb(metadata.redirect_uris) ? new URL(String(redirectUri)).host : '',
        scopes: [...new Set(scopes.map(scopeOf))],
        connectedAt,
        lastUsedAt,
      }
    })
  }

  async prepare(): Promise<() => void> {
    const { settings, publicUrl } = this.#parts
    const { clients, resources } = await readClientsFile(settings.clientsFile)
    const people = settings.peopleFile === undefined ? new Map() : await readPeopleFile(settings.peopleFile)
    const canHaveEmail = (settings.email ?? settings.claims) !== undefined || haveEmail(people)
    const scopes = ['openid', 'offline_access', 'profile', 'wallet', 'groups', ...(canHaveEmail ? ['email'] : [])]
    const loaded: Loaded = { clients, resources, scopes, keys: await this.#readKeys(), people }
    const shared = settings.audiences.find((each) => resources.has(each))
    if (shared !== undefined) {
      throw new TypeError(
        `oidc.clients (COUNTERSIGN_OIDC_CLIENTS), resource ${shared}: it is one of accessTokens.audiences (COUNTERSIGN_ACCESS_TOKEN_AUDIENCES), too; leave one out`,
      )
    }
    // The library checks a client when it is used first: here, so that a mistake stops the start.
    const provider = makeProvider(publicUrl(), loaded, this.#libraryParts)
    for (const clientId of clients.keys()) {
      if (settings.audiences.includes(clientId)) {
        throw new TypeError(
          `oidc.clients (COUNTERSIGN_OIDC_CLIENTS), client ${clientId}: its id is one of accessTokens.audiences (COUNTERSIGN_ACCESS_TOKEN_AUDIENCES); a token for the one would be for the other`,
        )
      }
      await provider.Client.find(clientId).catch((cause: Error & { error_description?: string }) => {
        const why = cause.error_description ?? cause.message
        throw new TypeError(`oidc.clients (COUNTERSIGN_OIDC_CLIENTS), client ${clientId}: ${why}`, { cause })
      })
    }
    return () => {
      this.#loaded = loaded
      this.#made = undefined
    }
  }

  start(): void {
    this.#backChannel.start()
    this.#keyTimer = setInterval(() => void this.#renewKeys(), keyTimes.lookMs).unref()
  }

  #readKeys(): Promise<readonly SigningJwk[]> {
    const { keyring, store } = this.#parts
    // The last instance publishes a new key one look after the first, and applications can have asked it just before.
    const overlapMs = keyTimes.publishMs + keyTimes.lookMs
    return signingKeys({ records: this.#records, keyring, store, overlapMs })
  }

  /** Goes by another RSA key once one has been made, or its time has come. */
  async #renewKeys(): Promise<void> {
    // If the store is away, which the log says, the next look comes.
    const keys = await this.#readKeys().catch(() => undefined)
    const names = (some: readonly SigningJwk[]): string => some.map(({ kid }) => kid).join()
    if (keys === undefined || names(keys) === names(this.#loaded.keys)) return
    this.#loaded = { ...this.#loaded, keys }
    this.#made = undefined
  }

  async close(graceMs: number): Promise<void> {
    clearInterval(this.#keyTimer)
    await this.#backChannel.close(graceMs)
  }

  get #current(): { readonly provider: Provider; readonly callback: Callback } {
    const issuer = this.#parts.publicUrl()
    if (this.#made?.issuer !== issuer) {
      const provider = makeProvider(issuer, this.#loaded, this.#libraryParts)
      this.#made = { issuer, provider, callback: provider.callback() as unknown as Callback }
    }
    return this.#made
  }

  /** Sends a client the logout of a session, by a token that is made now: it is valid for two minutes. */
  async #sendLogout({ clientId, userId, sessionId }: Logout): Promise<void> {
    const client = (await this.#current.provider.Client.find(clientId)) as LogoutClient | undefined
    await client?.backchannelLogout(userId, sidOf(sessionId, clientId))
  }

  async #serveLibrary(exchange: Exchange, methods: readonly string[], kind: 'browser' | 'backend'): Promise<void> {
    requireHttpMethod(exchange, methods)
    // What stores something for a sender that need not be known.
    if (/\/(authorize|par)$/.test(exchange.path)) await this.#parts.spend(exchange.context, interactionSeconds * 1000)
    const isBrowser = kind === 'browser'
    const current = isBrowser ? await this.#parts.host.browserSession(exchange.context) : undefined
    const browser = isBrowser ? this.#browserOf(exchange) : undefined
    const request = exchange.context
    const state = { session: current?.session, browserSecrets: browser?.secrets ?? [], request }
    const answer = await requestState.run(state, () => this.#ask(exchange))
    if (answer.status === 404) throw notFound(exchange.path)
    if (answer.status === 401) await this.#parts.countWrong(exchange.context)
    this.#send(exchange, answer, [...(current?.cookies ?? []), ...(browser?.cookies ?? [])])
  }

  /**
   * A form (OpenID Connect Core, 3.1.2.1) goes on as a navigation: a browser sends no cookie with a form of another site.
   */
  async #serveAuthorize(exchange: Exchange): Promise<void> {
    requireHttpMethod(exchange, ['GET', 'POST'])
    if (exchange.method === 'GET') return await this.#serveLibrary(exchange, ['GET'], 'browser')
    if (!isForm(exchange.headers)) {
      throw new CountersignError('INVALID_REQUEST', 'Send the parameters as a form (application/x-www-form-urlencoded)')
    }
    const parameters = new URLSearchParams((await exchange.body.read(16 * 1024)).toString())
    const location = `${this.#parts.publicUrl()}${this.#base}/authorize?${parameters}`
    exchange.output.send({ status: 303, headers: { location, 'cache-control': 'no-store' }, body: '' })
  }

  async #serveInteraction(exchange: Exchange, uid: string): Promise<void> {
    requireHttpMethod(exchange, ['GET', 'POST'])
    const current = await this.#parts.host.browserSession(exchange.context)
    const session = current?.session
    const state = { session, browserSecrets: this.#secretsIn(exchange) }
    if (exchange.method === 'POST') {
      const input = await this.#inputOf(exchange)
      const redirectTo = await requestState.run(state, () =>
        this.#interactions.decide(uid, { session, input, request: exchange.context }),
      )
      return this.#sendJson(exchange, { redirectTo }, [])
    }
    const isBack = new URLSearchParams(exchange.query).get('back') === '1'
    const step = { uid, path: exchange.path, isBack, session }
    const answer = await requestState.run(state, () => this.#interactions.show(step))
    this.#send(exchange, answer, current?.cookies ?? [])
  }

  async #serveLogout(exchange: Exchange): Promise<void> {
    requireHttpMethod(exchange, ['GET', 'POST'])
    const session = (await this.#parts.host.browserSession(exchange.context))?.session
    if (exchange.method === 'POST') {
      const input = await this.#inputOf(exchange)
      const redirectTo = await this.#interactions.logOut(session, input)
      return this.#sendJson(exchange, { redirectTo: redirectTo ?? '' }, [this.#parts.host.clearedCookie])
    }
    const answer = await requestState.run({ session, browserSecrets: [] }, () => this.#ask(exchange))
    this.#send(exchange, answer, [])
  }

  /** Has the library answer a request, of which it sees the cookies that are its own and no others. */
  async #ask(exchange: Exchange): Promise<LibraryAnswer> {
    const own = [interactionCookie, resumeCookie]
      .flatMap((name) => [name, `${name}.sig`])
      .flatMap((name) => {
        const value = cookieValue(exchange.headers.cookie, name)
        return value === undefined ? [] : [`${name}=${value}`]
      })
    const sessionId = requestState.getStore()?.session?.id
    const session = sessionId === undefined ? [] : this.#signedCookie(sessionCookie, sessionId)
    const cookies = [...own, ...session]
    const isDiscovery = this.#parts.discoveryPaths.includes(exchange.path)
    return await askLibrary(this.#current.callback, exchange, {
      issuer: this.#parts.publicUrl(),
      cookie: cookies.length === 0 ? undefined : cookies.join('; '),
      headers: { ...libraryHeaders, ...(isDiscovery ? { 'cache-control': 'public, max-age=300' } : {}) },
    })
  }

  #signedCookie(name: string, value: string): string[] {
    const pair = `${name}=${value}`
    return [pair, `${name}.sig=${this.#parts.keyring.sign('oidc cookie', pair)}`]
  }

  /** Sends an answer. The library's session cookie stays here. */
  #send({ output }: Exchange, { status, headers, body }: LibraryAnswer, cookies: readonly string[]): void {
    const { 'set-cookie': set, 'content-length': _length, 'transfer-encoding': _encoding, ...others } = headers
    const kept = [set ?? []].flat().filter((cookie) => !String(cookie).startsWith(sessionCookie))
    const all = [...kept.map(String), ...cookies]
    output.send({ status, headers: { ...others, ...(all.length === 0 ? {} : { 'set-cookie': all }) }, body })
  }

  #sendJson({ output }: Exchange, json: object, cookies: readonly string[]): void {
    const headers = {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(cookies.length === 0 ? {} : { 'set-cookie': [...cookies] }),
    }
    output.send({ status: 200, headers, body: JSON.stringify(json) })
  }

  /** The JSON of a page of the issuer's own origin; other trusted origins are refused. */
  async #inputOf({ headers, body }: Exchange): Promise<unknown> {
    const own = new URL(this.#parts.publicUrl()).origin
    if (headers.origin !== own) {
      throw new CountersignError('ORIGIN_NOT_TRUSTED', `This is for pages of ${own} only`, {
        metadata: { origin: String(headers.origin ?? ''), origin_source: 'Origin header' },
      })
    }
    if (!isJson(headers)) throw notJson()
    try {
      const json: unknown = JSON.parse((await body.read(16 * 1024)).toString())
      if (typeof json === 'object' && json !== null) return json
    } catch (cause) {
      if (cause instanceof CountersignError) throw cause
    }
    throw notJson()
  }

  get #browserCookie(): string {
    return this.#parts.publicUrl().startsWith('https:') ? `__Host-${browserCookie}` : browserCookie
  }

  #secretsIn({ headers: { cookie } }: Exchange): readonly string[] {
    return cookieNames(cookie, this.#browserCookie).flatMap((name) => cookieValue(cookie, name) ?? [])
  }

  /**
   * The browser's secrets. If it has none, one is made, in a cookie of its own name: of several tabs that open at once,
   * none takes another's away.
   */
  #browserOf(exchange: Exchange): { secrets: readonly string[]; cookies: readonly string[] } {
    const known = this.#secretsIn(exchange)
    if (known.length > 0) return { secrets: known, cookies: [] }
    const secret = randomText(32)
    const isSecure = this.#parts.publicUrl().startsWith('https:')
    const attributes = `Path=/; HttpOnly;${isSecure ? ' Secure;' : ''} SameSite=Lax`
    return { secrets: [secret], cookies: [`${this.#browserCookie}${randomText(6)}=${secret}; ${attributes}`] }
  }
}

/** What is called of the library's client, which its types leave out. */
interface LogoutClient {
  backchannelLogout(sub: string, sid: string): Promise<void>
}

/** Headers that every answer of the library has. It adds the hash of its one script to the policy. */
const libraryHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
}

function notFound(path: string): CountersignError {
  return new CountersignError('ROUTE_NOT_FOUND', `There is nothing at ${path}`, { metadata: { path } })
}
