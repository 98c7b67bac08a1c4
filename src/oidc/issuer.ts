import { isDeepStrictEqual } from 'node:util'
import type { Provider } from 'oidc-provider'
import { type Check, checkOf } from '../base/json-file.ts'
import type { RequestContext } from '../base/request.ts'
import { Sampler } from '../base/timing/sampler.ts'
import type { Keyring } from '../base/token.ts'
import type { Session } from '../core/users/host.ts'
import type { People } from '../core/users/people.ts'
import type { PartRoute, PartRoutes } from '../http/app.ts'
import { type Exchange, type Route, requireHttpMethod } from '../http/exchange.ts'
import { isForm } from '../http/refusals.ts'
import type { DeliveryOutcome } from '../observe/delivery.ts'
import type { PartLabel } from '../rpc/invoke.ts'
import type { SessionApps } from '../rpc/session-service.ts'
import { refused } from '../shared/errors.ts'
import type { ConnectedApp } from '../shared/session.ts'
import { readPageInput, sendAnswer, sendPageJson } from './answers.ts'
import { BackChannel, type Logout } from './back-channel.ts'
import { BrowserCookies } from './browser-cookies.ts'
import { haveEmail } from './claims.ts'
import { ClientDirectory } from './client-directory.ts'
import { hostOf, openClientsIn, readClientsFile, shownClient, usesDevices } from './clients.ts'
import { discoveryPaths, keyTimes } from './commands.ts'
import { ConnectedApps } from './connected-apps.ts'
import { devicePath } from './device-codes.ts'
import { DevicePage } from './device-page.ts'
import { Grants, scopeOf, sidOf } from './grants.ts'
import { Interactions } from './interaction.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import { publicKeys, type SigningJwk, signingKeys } from './keys.ts'
import {
  type LibraryParts,
  loadLibrary,
  makeProvider,
  resumeCookie,
  sessionCookie,
  validateMetadata,
} from './library.ts'
import {
  askLibrary,
  type Callback,
  type Library,
  type LibraryAnswer,
  type RequestState,
  requestState,
} from './library-request.ts'
import { isQuiet, issuerPage, Navigations, passOnForm } from './pages.ts'
import { ownSpelling } from './parameters.ts'
import { RequestCounts } from './request-counts.ts'
import { SealedRecords } from './sealed-records.ts'
import { disconnect, SessionClients } from './session-ends.ts'

/** Makes the issuer. Rejects with a `TypeError` of one line if the clients file or a client does not fit. */
export async function createIssuer(parts: IssuerParts): Promise<Issuer> {
  if (parts.settings.sessionHost !== undefined) {
    throw new TypeError(
      'oidc.clients (COUNTERSIGN_OIDC_CLIENTS) cannot be set with sessionHost: the issuer needs the sessions of ' +
        'the service itself',
    )
  }
  const issuer = new Issuer(parts, await loadLibrary())
  const apply = await issuer.prepare(parts.people)
  apply()
  issuer.start()
  return issuer
}

/** The issuer, as the service serves it. */
export class Issuer implements PartRoutes, SessionApps {
  readonly labels: readonly PartLabel[]
  readonly places: readonly string[]
  readonly #parts: IssuerParts & LibraryParts
  readonly #routes: ReadonlyMap<string, PartRoute>
  readonly #navigations: Navigations
  readonly #backChannel: BackChannel
  #loaded: Loaded
  /** Made for a public URL, which follows from the port if it is not set. */
  #made: { readonly issuer: string; readonly provider: Provider; readonly callback: Callback } | undefined
  #keyTimer: NodeJS.Timeout | undefined

  constructor(given: IssuerParts, library: Library) {
    const nothing = { clients: new Map(), resources: new Map(), addresses: new Map(), scopes: [], keys: [] }
    this.#loaded = { ...nothing, people: given.people }
    const base = `${given.settings.basePath}/oidc`
    const { store, keyring } = given
    const kept = {
      records: new SealedRecords(store, keyring),
      apps: new ConnectedApps(store),
      sessionClients: new SessionClients(store),
    }
    const grants = new Grants({ ...given, ...kept })
    const page = issuerPage(given.settings, given.pageFiles)
    const shared = { library, base, ...kept, grants, page, sampler: new Sampler() }
    const directory = new ClientDirectory({
      ...given,
      ...shared,
      loaded: () => this.#loaded,
      validate: (metadata) => validateMetadata(this.#current.provider, metadata),
    })
    const parts = { ...given, ...shared, directory, loaded: () => this.#loaded }
    this.#parts = { ...parts, interactions: new Interactions(parts), counts: new RequestCounts(given) }
    this.#navigations = new Navigations(parts)
    this.#backChannel = new BackChannel(parts, (logout) => this.#sendLogout(logout))
    const forBackends = (...methods: readonly string[]): Route => {
      return (exchange) => this.#serveBackend(exchange, methods)
    }
    const posted = forBackends('POST', 'OPTIONS')
    const published = forBackends('GET', 'HEAD', 'OPTIONS')
    const hasDevices = given.settings.oidc.device
    const devicePage = new DevicePage(parts, this.#navigations)
    const servePage: Route = (exchange) => devicePage.serve(exchange)
    const routes: readonly (readonly [path: string, endpoint: string, Route])[] = [
      ...['token', 'introspect', 'revoke', 'par'].map((name) => [`${base}/${name}`, name, posted] as const),
      [`${base}/userinfo`, 'userinfo', forBackends('GET', 'POST', 'OPTIONS')],
      [`${base}/authorize`, 'authorize', (exchange) => this.#serveAuthorize(exchange)],
      [`${base}/logout`, 'logout', (exchange) => this.#serveLogout(exchange)],
      [`${base}/jwks.json`, 'jwks', published],
      ...discoveryPaths.map((path) => [path, 'discovery', published] as const),
      ...(hasDevices
        ? ([
            [`${base}/device/auth`, 'device/auth', posted],
            [devicePath, 'device', servePage],
          ] as const)
        : []),
    ]
    this.places = [...discoveryPaths, ...(hasDevices ? [devicePath] : [])]
    this.#routes = new Map(routes.map(([path, name, serve]) => [path, { label: `oidc ${name}`, serve }]))
    this.labels = [...new Set([...[...this.#routes.values()].map(({ label }) => label), interactionLabel])]
  }

  /** Public keys for the service's key set. */
  get keys(): readonly object[] {
    return publicKeys(this.#loaded.keys)
  }

  /** The route of a path that is the issuer's; `undefined` for any other. */
  find(path: string): PartRoute | undefined {
    const route = this.#routes.get(path)
    if (route !== undefined) return route
    const { base } = this.#parts
    const [, kind, uid] = /^\/(authorize|interaction)\/([\w-]{1,64})$/.exec(path.slice(base.length)) ?? []
    if (!path.startsWith(`${base}/`) || uid === undefined) return undefined
    return kind === 'authorize'
      ? { label: 'oidc authorize', serve: (exchange) => this.#serveAuthorize(exchange, uid) }
      : { label: interactionLabel, serve: (exchange) => this.#serveInteraction(exchange, uid) }
  }

  /** The applications that a user has connected, those used last first. */
  async listApps(userId: string): Promise<ConnectedApp[]> {
    const connections = Map.groupBy(await this.#parts.apps.of(userId), ({ clientId }) => clientId)
    const apps = [...connections].map(([clientId, each]) => {
      const client = this.#parts.directory.seen(clientId)
      return {
        clientId,
        name: client === undefined ? clientId : shownClient(client.metadata).name,
        host: client === undefined ? '' : hostOf(client),
        scopes: [...new Set(each.flatMap(({ scopes }) => scopes.map(scopeOf)))],
        connectedAt: Math.min(...each.map(({ connectedAt }) => connectedAt)),
        lastUsedAt: Math.max(...each.map(({ lastUsedAt }) => lastUsedAt)),
      }
    })
    return apps.sort((a, b) => b.lastUsedAt - a.lastUsedAt)
  }

  async disconnectApp(own: Session, clientId: string, request: RequestContext): Promise<void> {
    if (!(await disconnect(this.#parts, own, clientId))) return
    const { userId, id: sessionId } = own
    this.#parts.audit.record({ type: 'app.disconnected', userId, sessionId, clientId }, request)
  }

  /** Number of clients. */
  get clientCount(): number {
    return this.#loaded.clients.size
  }

  /** Number of clients that anyone who signs in may use. */
  get openClientCount(): number {
    return openClientsIn(this.#loaded.clients)
  }

  /**
   * Reads the clients file and keys again. Resolves with what puts them in force, together with a people file, and
   * returns whether the clients have changed.
   */
  async prepare(people: People): Promise<() => boolean> {
    const { settings, publicUrl } = this.#parts
    const { email, claims } = settings.oidc
    const { audiences = [] } = settings.accessTokens
    const file = await readClientsFile(String(settings.oidc.clients))
    const { clients, resources } = file
    const canHaveEmail = (email ?? claims) !== undefined || haveEmail(people)
    const scopes = ['openid', 'offline_access', 'profile', 'wallet', 'groups', ...(canHaveEmail ? ['email'] : [])]
    const loaded: Loaded = { ...file, scopes, keys: await this.#readKeys(this.#parts.keyring), people }
    const check: Check = checkOf('oidc.clients (COUNTERSIGN_OIDC_CLIENTS), ')
    const audience = 'is one of accessTokens.audiences (COUNTERSIGN_ACCESS_TOKEN_AUDIENCES)'
    const shared = audiences.find((each) => resources.has(each))
    check(shared === undefined, `resource ${shared}: it ${audience}, too; leave one out`)
    // The library checks a client when it is used first: here, so that a mistake stops the start.
    const provider = makeProvider(publicUrl(), loaded, this.#parts)
    for (const [clientId, { metadata }] of clients) {
      const isOff = usesDevices(metadata) && !settings.oidc.device
      check(!isOff, `client ${clientId}: its grant for devices needs oidc.device (COUNTERSIGN_OIDC_DEVICE)`)
      const isAudience = audiences.includes(clientId)
      check(!isAudience, `client ${clientId}: its id ${audience}; a token for the one would be for the other`)
      await provider.Client.find(clientId).catch((cause: Error & { error_description?: string }) => {
        const why = cause.error_description ?? cause.message
        throw new TypeError(`oidc.clients (COUNTERSIGN_OIDC_CLIENTS), client ${clientId}: ${why}`, { cause })
      })
    }
    return () => {
      const before = this.#loaded
      this.#loaded = loaded
      this.#made = undefined
      return !isDeepStrictEqual([before.clients, before.resources], [clients, resources])
    }
  }

  start(): void {
    this.#backChannel.start()
    this.#parts.keyring.follow(async (next) => {
      const keys = await this.#readKeys(next)
      return () => this.#replaceKeys(keys)
    })
    this.#keyTimer = setInterval(() => void this.#renewKeys(), keyTimes.lookMs).unref()
  }

  #readKeys(keyring: Keyring): Promise<readonly SigningJwk[]> {
    const { store } = this.#parts
    // The last instance publishes a new key one look after the first, and applications can have asked it just before.
    const overlapMs = keyTimes.publishMs + keyTimes.lookMs
    return signingKeys({ store, keyring, records: new SealedRecords(store, keyring) }, overlapMs)
  }

  /** Uses another RSA key once one has been made, or its time has come. */
  async #renewKeys(): Promise<void> {
    // If the store is away, which the log says, the next look comes.
    const keys = await this.#readKeys(this.#parts.keyring).catch(() => undefined)
    const names = (some: readonly SigningJwk[]): string => some.map(({ kid }) => kid).join()
    if (keys !== undefined && names(keys) !== names(this.#loaded.keys)) this.#replaceKeys(keys)
  }

  #replaceKeys(keys: readonly SigningJwk[]): void {
    this.#loaded = { ...this.#loaded, keys }
    this.#made = undefined
  }

  /** Stops sending logouts, and waits for those on their way, for at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    clearInterval(this.#keyTimer)
    await this.#backChannel.close(graceMs)
  }

  get #current(): { readonly provider: Provider; readonly callback: Callback } {
    const issuer = this.#parts.publicUrl()
    if (this.#made?.issuer !== issuer) {
      const provider = makeProvider(issuer, this.#loaded, this.#parts)
      this.#made = { issuer, provider, callback: provider.callback() as unknown as Callback }
    }
    return this.#made
  }

  /** Sends a client the logout of a session, by a token that is made now: it is valid for two minutes. */
  async #sendLogout({ clientId, userId, sessionId }: Logout): Promise<DeliveryOutcome> {
    // The library's types leave this method out.
    type LogoutClient = { backchannelLogout(sub: string, sid: string): Promise<void> }
    try {
      const client: unknown = await this.#current.provider.Client.find(clientId)
      await (client as LogoutClient | undefined)?.backchannelLogout(userId, sidOf(sessionId, clientId))
      return 'taken'
    } catch (thrown) {
      const { response, message } = thrown as Error & { readonly response?: Response }
      return response === undefined ? { away: message } : { refused: response.status }
    }
  }

  async #serveBackend(exchange: Exchange, methods: readonly string[]): Promise<void> {
    requireHttpMethod(exchange, methods)
    const answer = await this.#ask(exchange, { session: undefined, browserSecrets: [], request: exchange.context })
    if (answer.status === 401) await this.#parts.limiter?.countWrongToken(exchange.context)
    sendAnswer(exchange, answer, [])
    // The answer is sent: this is for the log and the metrics.
    if (answer.failure !== undefined) throw answer.failure
  }

  async #serveAuthorize(exchange: Exchange, uid?: string): Promise<void> {
    await this.#navigations.serve(exchange, uid === undefined ? ['GET', 'POST'] : ['GET'], async () => {
      if (exchange.method === 'POST') await passOnForm(exchange, this.#addressOf('authorize'))
      else await this.#authorize(exchange, uid)
    })
  }

  /** Begins with a request for authorization, or goes on with that of an interaction. */
  async #authorize(exchange: Exchange, uid?: string): Promise<void> {
    const { host, store, base, counts } = this.#parts
    const session = await host.browserSession(exchange.context)
    const cookies = this.#cookies.in(exchange.headers.cookie)
    const own = cookies[0] ?? this.#cookies.make(store.now())
    const browserSecrets = (cookies.length === 0 ? [own] : cookies).map(({ secret }) => secret)
    // An interaction goes on with the prompt that is stored, whatever the query has.
    const isAnonymous = session === undefined && uid === undefined && isQuiet(exchange)
    const state = { session, browserSecrets, request: exchange.context, isAnonymous }
    // The answer without a question to a user who is not signed in stores nothing.
    const release = isAnonymous ? undefined : await counts.ofNavigation(exchange, uid)
    const answer = await this.#ask(exchange, state, uid)
    if (answer.failure !== undefined) throw answer.failure
    // A refusal that shows a page stores nothing, either.
    if (answer.status === 400) release?.()
    const begins = String(answer.headers.location).startsWith(`${base}/interaction/`)
    sendAnswer(exchange, answer, begins ? [this.#cookies.keep(own)] : [])
  }

  async #serveInteraction(exchange: Exchange, uid: string): Promise<void> {
    const { method, context, path, query } = exchange
    if (method === 'POST') return await this.#decide(exchange, uid)
    await this.#navigations.serve(exchange, ['GET', 'POST'], async () => {
      const session = await this.#parts.host.browserSession(context)
      const cookies = this.#cookies.in(exchange.headers.cookie)
      const isBack = new URLSearchParams(query).get('back') === '1'
      const step = { uid, path, isBack, session, cookies, request: context }
      const { forgotten, ...answer } = await this.#parts.interactions.show(step)
      sendAnswer(exchange, answer, forgotten === undefined ? [] : [this.#cookies.forget(forgotten)])
    })
  }

  async #decide(exchange: Exchange, uid: string): Promise<void> {
    const { context: request, headers: sent } = exchange
    const input = await readPageInput(exchange, this.#parts.publicUrl())
    const session = await this.#parts.host.browserSession(request)
    const cookies = this.#cookies.in(sent.cookie)
    const decision = { session, input, request, cookies }
    const { redirectTo, opensApplication } = await this.#parts.interactions.decide(uid, decision)
    if (!opensApplication) return sendPageJson(exchange, { redirectTo }, [])
    // The page stays, and offers the application's address, which it cannot read from a redirect.
    const resume = { ...exchange, method: 'GET', path: new URL(redirectTo).pathname, query: '', body: noBody }
    const state = { session, browserSecrets: cookies.map(({ secret }) => secret), request }
    // As for a browser that is led on: the next interaction can be stored.
    await this.#parts.counts.ofNavigation(resume, uid)
    const { failure, headers } = await this.#ask(resume, state, uid)
    if (failure !== undefined) throw failure
    sendPageJson(exchange, { redirectTo: String(headers.location ?? redirectTo) }, [])
  }

  /** A form of an application goes on as a navigation (OpenID Connect RP-Initiated Logout 1.0, 2). */
  async #serveLogout(exchange: Exchange): Promise<void> {
    const { method, context, headers } = exchange
    if (method === 'POST' && !isForm(headers)) return await this.#logOut(exchange)
    await this.#navigations.serve(exchange, ['GET', 'POST'], async () => {
      if (method === 'POST') return await passOnForm(exchange, this.#addressOf('logout'))
      const session = await this.#parts.host.browserSession(context)
      const answer = await this.#ask(exchange, { session, browserSecrets: [], request: context })
      if (answer.failure !== undefined) throw answer.failure
      sendAnswer(exchange, answer, [])
    })
  }

  async #logOut(exchange: Exchange): Promise<void> {
    const { host, interactions } = this.#parts
    const input = await readPageInput(exchange, this.#parts.publicUrl())
    const session = await host.browserSession(exchange.context)
    const redirectTo = await interactions.logOut(session, input)
    sendPageJson(exchange, { redirectTo: redirectTo ?? '' }, [host.clearedCookie])
  }

  /**
   * Has the library answer a request. It sees cookies that exist in this process only: the session, and the interaction
   * with whose result a request goes on.
   */
  async #ask(exchange: Exchange, state: RequestState, resumed?: string): Promise<LibraryAnswer> {
    const { session } = state
    const cookies = [
      ...(session === undefined ? [] : [`${sessionCookie}=${session.id}`]),
      ...(resumed === undefined ? [] : [`${resumeCookie}=${resumed}`]),
    ]
    const { base } = this.#parts
    const isPublished = [...discoveryPaths, `${base}/jwks.json`].includes(exchange.path)
    const asked = {
      issuer: this.#parts.publicUrl(),
      cookie: cookies.length === 0 ? undefined : cookies.join('; '),
      headers: { ...libraryHeaders, ...(isPublished ? { 'cache-control': 'public, max-age=300' } : {}) },
    }
    const own = await ownSpelling(exchange, this.#loaded)
    const answer = await requestState.run(state, () => askLibrary(this.#current.callback, own, asked))
    if (answer.status !== 404) return answer
    const { path } = exchange
    throw refused('ROUTE_NOT_FOUND', { metadata: { path } })
  }

  get #cookies(): BrowserCookies {
    return new BrowserCookies(this.#parts.publicUrl().startsWith('https:'))
  }

  #addressOf(endpoint: 'authorize' | 'logout'): string {
    return `${this.#parts.publicUrl()}${this.#parts.base}/${endpoint}`
  }
}

const interactionLabel: PartLabel = 'oidc interaction'

const noBody: Exchange['body'] = {
  decompressed: false,
  read: async () => Buffer.alloc(0),
  drop() {},
}

/** Headers that every answer of the library has. It adds the hash of its one script to the policy. */
const libraryHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
}
