import type { Provider } from 'oidc-provider'
import { keyTimes } from '../base/rotation-key.ts'
import { randomText } from '../base/token.ts'
import type { ListedApp } from '../core/users/connected-apps.ts'
import type { IssuerRoute } from '../http/app.ts'
import { type Exchange, requireHttpMethod } from '../http/exchange.ts'
import { isForm, isJson, notJson } from '../http/refusals.ts'
import { CountersignError } from '../shared/errors.ts'
import { cookieNames, cookieValue } from '../shared/header-text.ts'
import { BackChannel, type Logout } from './back-channel.ts'
import { askLibrary, type Callback, type LibraryAnswer } from './bridge.ts'
import { isWeb, readClientsFile } from './clients.ts'
import { Grants, sidOf } from './grants.ts'
import { Interactions } from './interaction.ts'
import { type Check, checkOf } from './json-file.ts'
import { publicKeys, type SigningJwk, signingKeys } from './keys.ts'
import {
  interactionCookie,
  interactionSeconds,
  type LibraryParts,
  loadLibrary,
  makeProvider,
  resumeCookie,
  sessionCookie,
} from './library.ts'
import { issuerPage } from './pages.ts'
import type { IssuerParts, Library, Loaded, SharedParts } from './parts.ts'
import { haveEmail, readPeopleFile } from './people.ts'
import { requestState } from './request-state.ts'
import { scopeOf } from './resources.ts'
import { SealedRecords } from './sealed-records.ts'

/** Name of the cookie with the browser's own secret, before what is the cookie's own. */
const browserCookie = 'countersign_oidc_browser_'

/** Makes the issuer. Rejects with a `TypeError` of one line if the clients file or a client does not fit. */
export async function createIssuer(parts: IssuerParts): Promise<Issuer> {
  const issuer = new Issuer(parts, await loadLibrary())
  const apply = await issuer.prepare()
  apply()
  issuer.start()
  return issuer
}

/** The issuer, as the service serves it. */
export class Issuer {
  readonly #parts: LibraryParts
  readonly #routes: ReadonlyMap<string, IssuerRoute>
  readonly #backChannel: BackChannel
  #loaded: Loaded = { clients: new Map(), resources: new Map(), scopes: [], keys: [], people: new Map() }
  /** Made for a public URL, which follows from the port if it is not set. */
  #made: { readonly issuer: string; readonly provider: Provider; readonly callback: Callback } | undefined
  #keyTimer: NodeJS.Timeout | undefined

  constructor(given: IssuerParts, library: Library) {
    const base = `${given.settings.basePath}/oidc`
    const records = new SealedRecords(given.store, given.keyring)
    const grants = new Grants({ ...given, records })
    const page = issuerPage(given.settings, given.pageFiles)
    const parts: SharedParts = { ...given, library, base, records, grants, page, loaded: () => this.#loaded }
    this.#parts = { ...parts, interactions: new Interactions(parts) }
    this.#backChannel = new BackChannel(parts, (logout) => this.#sendLogout(logout))
    const forBackends = (endpoint: IssuerRoute['endpoint'], methods: readonly string[]): IssuerRoute => ({
      endpoint,
      serve: (exchange) => this.#serveLibrary(exchange, methods, 'backend'),
    })
    const posted = ['token', 'introspect', 'revoke', 'par'] as const
    const routes: readonly IssuerRoute[] = [
      ...posted.map((endpoint) => forBackends(endpoint, ['POST', 'OPTIONS'])),
      forBackends('userinfo', ['GET', 'POST', 'OPTIONS']),
      { endpoint: 'authorize', serve: (exchange) => this.#serveAuthorize(exchange) },
      { endpoint: 'logout', serve: (exchange) => this.#serveLogout(exchange) },
    ]
    const discovery = forBackends('discovery', ['GET', 'HEAD', 'OPTIONS'])
    this.#routes = new Map([
      ...routes.map((route) => [`${base}/${route.endpoint}`, route] as const),
      ...given.discoveryPaths.map((path) => [path, discovery] as const),
    ])
  }

  /** Public keys for the service's key set. */
  get keys(): readonly object[] {
    return publicKeys(this.#loaded.keys)
  }

  /** The route of a path that is the issuer's; `undefined` for any other. */
  find(path: string): IssuerRoute | undefined {
    const route = this.#routes.get(path)
    if (route !== undefined) return route
    const { base } = this.#parts
    const [, kind, uid] = /^\/(authorize|interaction)\/([\w-]{1,64})$/.exec(path.slice(base.length)) ?? []
    if (!path.startsWith(`${base}/`) || uid === undefined) return undefined
    return kind === 'authorize'
      ? { endpoint: 'authorize', serve: (exchange) => this.#serveLibrary(exchange, ['GET'], 'browser') }
      : { endpoint: 'interaction', serve: (exchange) => this.#serveInteraction(exchange, uid) }
  }

  /** The applications that a user has connected, those used last first. */
  async listApps(userId: string): Promise<ListedApp[]> {
    const connections = Map.groupBy(await this.#parts.apps.of(userId), ({ clientId }) => clientId)
    const apps = [...connections].map(([clientId, each]) => {
      const metadata = this.#loaded.clients.get(clientId)?.metadata
      const [redirectUri] = metadata?.redirect_uris ?? []
      return {
        clientId,
        name: String(metadata?.client_name ?? clientId),
        host: metadata !== undefined && isWeb(metadata.redirect_uris) ? new URL(String(redirectUri)).host : '',
        scopes: [...new Set(each.flatMap(({ scopes }) => scopes.map(scopeOf)))],
        connectedAt: Math.min(...each.map(({ connectedAt }) => connectedAt)),
        lastUsedAt: Math.max(...each.map(({ lastUsedAt }) => lastUsedAt)),
      }
    })
    return apps.sort((a, b) => b.lastUsedAt - a.lastUsedAt)
  }

  /** Reads the clients file and the keys again. Resolves with what puts them in force. */
  async prepare(): Promise<() => void> {
    const { settings, publicUrl } = this.#parts
    const { clients, resources } = await readClientsFile(settings.clientsFile)
    const people = settings.peopleFile === undefined ? new Map() : await readPeopleFile(settings.peopleFile)
    const canHaveEmail = (settings.email ?? settings.claims) !== undefined || haveEmail(people)
    const scopes = ['openid', 'offline_access', 'profile', 'wallet', 'groups', ...(canHaveEmail ? ['email'] : [])]
    const loaded: Loaded = { clients, resources, scopes, keys: await this.#readKeys(), people }
    const check: Check = checkOf('oidc.clients (COUNTERSIGN_OIDC_CLIENTS), ')
    const audience = 'is one of accessTokens.audiences (COUNTERSIGN_ACCESS_TOKEN_AUDIENCES)'
    const shared = settings.audiences.find((each) => resources.has(each))
    check(shared === undefined, `resource ${shared}: it ${audience}, too; leave one out`)
    // The library checks a client when it is used first: here, so that a mistake stops the start.
    const provider = makeProvider(publicUrl(), loaded, this.#parts)
    for (const clientId of clients.keys()) {
      const isAudience = settings.audiences.includes(clientId)
      check(!isAudience, `client ${clientId}: its id ${audience}; a token for the one would be for the other`)
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
    // The last instance publishes a new key one look after the first, and applications can have asked it just before.
    return signingKeys(this.#parts, keyTimes.publishMs + keyTimes.lookMs)
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
  async #sendLogout({ clientId, userId, sessionId }: Logout): Promise<void> {
    const client: unknown = await this.#current.provider.Client.find(clientId)
    // The library's types leave this method out.
    type LogoutClient = { backchannelLogout(sub: string, sid: string): Promise<void> }
    await (client as LogoutClient | undefined)?.backchannelLogout(userId, sidOf(sessionId, clientId))
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
    if (answer.status === 404) {
      const { path } = exchange
      throw new CountersignError('ROUTE_NOT_FOUND', `There is nothing at ${path}`, { metadata: { path } })
    }
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
    const location = `${this.#parts.publicUrl()}${this.#parts.base}/authorize?${parameters}`
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
        this.#parts.interactions.decide(uid, { session, input, request: exchange.context }),
      )
      return this.#sendJson(exchange, { redirectTo }, [])
    }
    const isBack = new URLSearchParams(exchange.query).get('back') === '1'
    const step = { uid, path: exchange.path, isBack, session }
    const answer = await requestState.run(state, () => this.#parts.interactions.show(step))
    this.#send(exchange, answer, current?.cookies ?? [])
  }

  async #serveLogout(exchange: Exchange): Promise<void> {
    requireHttpMethod(exchange, ['GET', 'POST'])
    const session = (await this.#parts.host.browserSession(exchange.context))?.session
    if (exchange.method === 'POST') {
      const input = await this.#inputOf(exchange)
      const redirectTo = await this.#parts.interactions.logOut(session, input)
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
    const session = sessionId === undefined ? [] : [`${sessionCookie}=${sessionId}`]
    const signed = session.map((pair) => `${sessionCookie}.sig=${this.#parts.keyring.sign('oidc cookie', pair)}`)
    const cookies = [...own, ...session, ...signed]
    const isDiscovery = this.#parts.discoveryPaths.includes(exchange.path)
    return await askLibrary(this.#current.callback, exchange, {
      issuer: this.#parts.publicUrl(),
      cookie: cookies.length === 0 ? undefined : cookies.join('; '),
      headers: { ...libraryHeaders, ...(isDiscovery ? { 'cache-control': 'public, max-age=300' } : {}) },
    })
  }

  /** Sends an answer. The library's session cookie stays here. */
  #send({ output }: Exchange, { status, headers, body }: LibraryAnswer, cookies: readonly string[]): void {
    const { 'set-cookie': set, 'content-length': _length, 'transfer-encoding': _encoding, ...others } = headers
    const kept = [set ?? []].flat().filter((cookie) => !String(cookie).startsWith(sessionCookie))
    const all = [...kept.map(String), ...cookies]
    output.send({ status, headers: { ...others, ...(all.length === 0 ? {} : { 'set-cookie': all }) }, body })
  }

  #sendJson(exchange: Exchange, json: object, cookies: readonly string[]): void {
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
    this.#send(exchange, { status: 200, headers, body: JSON.stringify(json) }, cookies)
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

/** Headers that every answer of the library has. It adds the hash of its one script to the policy. */
const libraryHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
}
