import type { Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { AuditTrail } from '../base/audit.ts'
import type { Logger } from '../base/log.ts'
import type { RequestContext } from '../base/request.ts'
import { equalInConstantTime, type Keyring, randomText } from '../base/token.ts'
import type { ConnectedApps, ListedApp } from '../core/users/connected-apps.ts'
import type { StandaloneHost } from '../core/users/standalone.ts'
import type { IssuerRoute } from '../http/app.ts'
import { type Exchange, requireHttpMethod } from '../http/exchange.ts'
import { isJson, notJson } from '../http/refusals.ts'
import { CountersignError } from '../shared/errors.ts'
import { cookieNames, cookieValue } from '../shared/header-text.ts'
import type { Store } from '../store/store.ts'
import { type AccountParts, accountsOf, resourceClaims } from './accounts.ts'
import { adaptersOver } from './adapter.ts'
import { BackChannel, type Logout } from './back-channel.ts'
import { askLibrary, type Callback, type LibraryAnswer } from './bridge.ts'
import { claimsOfScopes, type OwnClaims } from './claims.ts'
import { type FileClients, isWeb, readClientsFile } from './clients.ts'
import { Grants, sidOf } from './grants.ts'
import { Interactions } from './interaction.ts'
import { publicKeys, type SigningJwk, signingKeys } from './keys.ts'
import { postAnywhere, postToPublic } from './outgoing.ts'
import { issuerPage, type PageLooks, type ShowPage } from './pages.ts'
import { claimsOf, furtherClaims, haveEmail, type People, readPeopleFile } from './people.ts'
import { policyOf } from './policy.ts'
import { requestState } from './request-state.ts'
import { type FileResources, type Offered, permissionsIn, scopeOf } from './resources.ts'
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
  /** Stops telling clients of logouts, and waits for what is on its way, for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

type Library = typeof import('oidc-provider')

/** The library for the clients and keys of now. It keeps no state, so that another can take its place. */
interface Loaded extends Offered {
  readonly clients: FileClients
  readonly keys: readonly SigningJwk[]
  readonly people: People
}

/** Name of the library's session cookie, which exists inside the process only. */
const sessionCookie = 'countersign_oidc_session'
const interactionCookie = 'countersign_oidc_interaction'
const resumeCookie = 'countersign_oidc_resume'
/** Name of the cookie with the browser's own secret, before what is the cookie's own. */
const browserCookie = 'countersign_oidc_browser_'

/** Time in ms between two looks for other keys. */
const keyLookMs = 60_000
/** See {@link signingKeys}: some applications keep the key set for half an hour. */
const keyOverlapMs = 1_800_000

const codeSeconds = 60
const tokenSeconds = 15 * 60
const interactionSeconds = 10 * 60
const refreshSeconds = 14 * 86_400

/** Makes the issuer. Rejects with a `TypeError` of one line if the clients file or a client does not fit. */
export async function createIssuer(parts: IssuerParts): Promise<Issuer> {
  const library = await loadLibrary()
  const issuer = new LibraryIssuer(parts, library)
  const apply = await issuer.prepare()
  apply()
  issuer.start()
  return issuer
}

/** Loads the library, which says on the console that it does not expect this release of Node.js. */
async function loadLibrary(): Promise<Library> {
  const { warn, info } = console
  const without =
    (write: typeof warn) =>
    (text?: unknown, ...rest: unknown[]) => {
      if (!String(text).includes('oidc-provider')) write.call(console, text, ...rest)
    }
  console.warn = without(warn)
  console.info = without(info)
  try {
    return await import('oidc-provider')
  } catch (cause) {
    throw new TypeError(
      'oidc.clients (COUNTERSIGN_OIDC_CLIENTS) is set, which needs the package oidc-provider: npm install oidc-provider@9.13.3',
      { cause },
    )
  } finally {
    Object.assign(console, { warn, info })
  }
}

class LibraryIssuer implements Issuer {
  readonly #parts: IssuerParts
  readonly #library: Library
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
    this.#library = library
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
      isTold: (clientId) => this.#loaded.clients.get(clientId)?.metadata.backchannel_logout_uri !== undefined,
      tell: (logout) => this.#tell(logout),
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
    for (const audience of settings.audiences.filter((each) => resources.has(each))) {
      throw new TypeError(
        `oidc.clients (COUNTERSIGN_OIDC_CLIENTS), resource ${audience}: it is one of accessTokens.audiences (COUNTERSIGN_ACCESS_TOKEN_AUDIENCES), too; leave one out`,
      )
    }
    // The library checks a client when it is used first: here, so that a mistake stops the start.
    const provider = this.#provider(publicUrl(), loaded)
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
    this.#keyTimer = setInterval(() => void this.#renewKeys(), keyLookMs).unref()
  }

  #readKeys(): Promise<readonly SigningJwk[]> {
    const { keyring, store } = this.#parts
    return signingKeys({ records: this.#records, keyring, store, overlapMs: keyOverlapMs })
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
      const provider = this.#provider(issuer, this.#loaded)
      this.#made = { issuer, provider, callback: provider.callback() as unknown as Callback }
    }
    return this.#made
  }

  /** Tells a client that a session has ended, by a token that is made now, because it is good for two minutes only. */
  async #tell({ clientId, userId, sessionId }: Logout): Promise<void> {
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
    if (!/^application\/x-www-form-urlencoded\b/.test(exchange.headers['content-type'] ?? '')) {
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
    return await askLibrary(this.#current.callback, exchange, {
      issuer: this.#parts.publicUrl(),
      cookie: cookies.length === 0 ? undefined : cookies.join('; '),
      headers: libraryHeaders,
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

  /** The library, configured. Every function of its that prints or fetches by default is set. */
  #provider(issuer: string, loaded: Loaded): Provider {
    const { clients, resources, scopes, keys, people } = loaded
    const { store, keyring, host, settings, log } = this.#parts
    const { Provider, errors, interactionPolicy } = this.#library
    const findSession = (id: string) => host.findSession(id)
    const findOffline = (id: string) => host.offline.find(id)
    const { apps } = this.#parts
    const parts = {
      records: this.#records,
      grants: this.#grants,
      apps,
      store,
      findSession,
      findOffline,
      refreshGraceOf: (clientId: string) => clients.get(clientId)?.refreshGraceSeconds ?? 0,
      errors,
    }
    const privateAddresses = new Set(
      [...clients.values()]
        .filter((client) => client.isInPrivateNetwork)
        .map(({ metadata }) => URL.parse(String(metadata.backchannel_logout_uri))?.href),
    )
    const off = { enabled: false } as const
    const isIssuedTo = (_ctx: unknown, client: { clientId: string }, token: { clientId?: string }): boolean =>
      token.clientId === client.clientId
    const accounts: AccountParts = {
      grants: this.#grants,
      findSession,
      findOffline: async (id) => {
        const session = await host.offline.find(id)
        return session !== undefined && (await host.holdsWallet(session.userId, session)) ? session : undefined
      },
      walletsOf: (userId) => host.walletsOf(userId),
      email: settings.email,
      claims: settings.claims ?? (async (subject) => claimsOf(people, subject)),
    }
    const configuration: Configuration = {
      adapter: adaptersOver(parts),
      clients: [...clients.values()].map(({ metadata }) => ({ ...metadata }) as never),
      jwks: { keys: keys as never },
      routes: {
        authorization: `${this.#base}/authorize`,
        token: `${this.#base}/token`,
        userinfo: `${this.#base}/userinfo`,
        introspection: `${this.#base}/introspect`,
        revocation: `${this.#base}/revoke`,
        pushed_authorization_request: `${this.#base}/par`,
        end_session: `${this.#base}/logout`,
        jwks: '/.well-known/jwks.json',
      },
      responseTypes: ['code'],
      scopes: [...scopes],
      claims: {
        ...claimsOfScopes,
        profile: [...claimsOfScopes.profile, ...furtherClaims(people)],
        acr: null,
        sid: null,
        iss: null,
      } as never,
      conformIdTokenClaims: false,
      clockTolerance: 5,
      allowOmittingSingleRegisteredRedirectUri: false,
      clientBasedCORS: (_ctx, origin, client) =>
        // That of a page without an origin, and of a URI of an application's own scheme.
        origin !== 'null' && (client.redirectUris ?? []).some((uri) => URL.parse(uri)?.origin === origin),
      cookies: {
        names: { session: sessionCookie, interaction: interactionCookie, resume: resumeCookie },
        keys: cookieKeys(keyring) as never,
        long: { httpOnly: true, sameSite: 'lax' },
        short: { httpOnly: true, sameSite: 'lax' },
      },
      enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256'] },
      // All that is issued ends with the session that it was issued in, but for offline access.
      expiresWithSession: async (_ctx, { scopes }) => !scopes.has('offline_access'),
      extraTokenClaims: async (_ctx, token) =>
        token.kind === 'AccessToken' && token.resourceServer ? await resourceClaims(accounts, token) : undefined,
      features: {
        backchannelLogout: { enabled: true },
        devInteractions: off,
        // Nonces are for clients whose clock is wrong.
        dPoP: { enabled: true, nonceSecret: Buffer.from(keyring.derive('oidc DPoP nonce', [])[0]) },
        introspection: { enabled: true, allowedPolicy: isIssuedTo as never },
        revocation: { enabled: true, allowedPolicy: isIssuedTo as never },
        resourceIndicators: this.#resourceIndicators(resources),
        rpInitiatedLogout: {
          enabled: true,
          // Rendered by the middleware below, for which this is never seen.
          logoutSource: leaveEmpty,
          postLogoutSuccessSource: leaveEmpty,
        },
      },
      // What goes out tells clients of logouts, and nothing else.
      fetch: async (address, { headers, body } = {}) => {
        const url = new URL(String(address))
        const sent = { url, headers: Object.fromEntries(new Headers(headers)), body: String(body) }
        return await (privateAddresses.has(url.href) ? postAnywhere(sent) : postToPublic(sent))
      },
      findAccount: accountsOf(accounts),
      interactions: {
        policy: policyOf(interactionPolicy),
        url: (_ctx, { uid }) => `${this.#base}/interaction/${uid}`,
      },
      issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
      loadExistingGrant: (ctx) => this.#grantFor(ctx, loaded) as never,
      pairwiseIdentifier: async () => {
        throw new TypeError('subjects are public')
      },
      pkce: { required: (_ctx, client) => clients.get(client.clientId)?.requiresPkce !== false },
      renderError: async (ctx, { error, error_description: description = '' }) => {
        show(ctx, this.#page(ctx.status, { kind: 'error', error, description }))
      },
      revokeGrantPolicy: () => true,
      rotateRefreshToken: true,
      ttl: {
        AccessToken: () => tokenSeconds,
        AuthorizationCode: () => codeSeconds,
        Grant: () => host.offline.lifeMs / 1000,
        IdToken: () => tokenSeconds,
        Interaction: () => interactionSeconds,
        // With offline access 90 days from the first, else as long as the session at most.
        RefreshToken: (_ctx, { expiresWithSession, iiat }) => {
          if (expiresWithSession) return refreshSeconds
          const now = Math.floor(store.now() / 1000)
          return Math.max(1, Math.min(refreshSeconds, (iiat ?? now) + host.offline.lifeMs / 1000 - now))
        },
        Session: () => refreshSeconds,
      },
    }
    const provider = new Provider(issuer, configuration)
    provider.use(async (ctx, next) => {
      await next()
      const { oidc, status } = ctx as unknown as KoaContextWithOIDC
      // The library has checked the client and where it leads; the page and what it does are ours.
      if (ctx.path !== `${this.#base}/logout` || status !== 200) return
      const { post_logout_redirect_uri: uri, state: given } = oidc.params ?? {}
      const target = typeof uri === 'string' ? new URL(uri) : undefined
      if (typeof given === 'string') target?.searchParams.set('state', given)
      show(ctx, this.#interactions.askLogout(requestState.getStore()?.session, target?.href))
    })
    provider.on('grant.error', (_ctx, error) => {
      const { request, replayed } = requestState.getStore() ?? {}
      if (request === undefined || replayed === undefined || error.error !== 'invalid_grant') return
      this.#parts.audit.tell({ type: 'app.token_replayed', ...replayed }, request)
    })
    // Koa prints errors that no one listens to.
    provider.silent = true
    provider.on('server_error', (ctx, error) => {
      log.error('the OpenID Connect issuer failed', { path: ctx.path, cause: String(error) })
      if (!(error instanceof CountersignError) || error.httpStatus !== 503) return
      ctx.status = 503
      ctx.set('retry-after', '1')
    })
    return provider
  }

  /** Access tokens for resources: a JWT for the one that a request names, or whose scopes the user has allowed. */
  #resourceIndicators(resources: FileResources) {
    return {
      enabled: true,
      // None that a client did not name. Of several, it has to choose one for each token.
      defaultResource: async (_ctx: unknown, _client: unknown, oneOf?: readonly string[]) => oneOf as never,
      getResourceServerInfo: async (_ctx: unknown, address: string) => {
        const found = resources.get(address)
        if (found === undefined) throw new this.#library.errors.InvalidTarget()
        return {
          audience: address,
          scope: found.scopes.join(' '),
          accessTokenTTL: tokenSeconds,
          accessTokenFormat: 'jwt' as const,
          jwt: { sign: { alg: found.algorithm } },
        }
      },
      useGrantedResource: async () => true,
    }
  }

  /**
   * The grant of a request: the one that the user has just given, or one that needs no question, because the user has
   * allowed as much before or the client is the operator's own. The session that gives it is the live one, even if an
   * interaction names another.
   */
  async #grantFor(ctx: KoaContextWithOIDC, { clients, ...offered }: Loaded): Promise<object | undefined> {
    const { oidc } = ctx
    const session = requestState.getStore()?.session
    const client = oidc.client && clients.get(oidc.client.clientId)
    if (session === undefined || client === undefined || session.userId !== oidc.account?.accountId) return undefined
    const { client_id: clientId, redirect_uris: redirectUris } = client.metadata
    const grantId = await this.#answeredGrant(ctx, clientId, session.id)
    if (grantId === undefined) {
      // Another application on the device can take such an address, so the user is asked each time.
      if (!isWeb(redirectUris) || oidc.prompts.has('consent')) return undefined
      const asked = permissionsIn(oidc.params ?? {}, offered)
      const allowed = (await this.#parts.apps.find(session.userId, clientId))?.scopes ?? []
      const isAllowed = client.isFirstParty || [...asked].every((each) => allowed.includes(each))
      if (isAllowed && (await this.#grants.give(session, clientId, asked)) === undefined) return undefined
    }
    const found = await this.#grants.of(session, clientId)
    if (found === undefined) return undefined
    oidc.session?.sidFor(clientId, sidOf(session.id, clientId))
    return await oidc.provider.Grant.find(found.id)
  }

  /** The grant that the user gave in this interaction, if it is that of this session and client. */
  async #answeredGrant({ oidc }: KoaContextWithOIDC, clientId: string, sessionId: string): Promise<string | undefined> {
    const given = oidc.result?.consent?.grantId
    const current = await this.#grants.idOf(sessionId, clientId)
    return given !== undefined && current !== undefined && equalInConstantTime(given, current) ? given : undefined
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

/** Puts an answer of our own in place of the library's. */
function show(
  ctx: Pick<KoaContextWithOIDC, 'status' | 'body' | 'set'>,
  { status, headers, body }: LibraryAnswer,
): void {
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) ctx.set(name, String(value))
  ctx.body = body
}

/** Signs the library's cookies with HMAC-SHA-256 under the first secret; all secrets verify. */
function cookieKeys(keyring: Keyring) {
  return {
    sign: (text: string) => keyring.sign('oidc cookie', text),
    verify: (text: string, signature: string) => keyring.verify('oidc cookie', text, signature),
    // 0 keeps a cookie as it is: it lives for minutes.
    index: (text: string, signature: string) => (keyring.verify('oidc cookie', text, signature) ? 0 : -1),
  }
}

async function leaveEmpty(ctx: { body?: unknown }): Promise<void> {
  ctx.body = ''
}

function notFound(path: string): CountersignError {
  return new CountersignError('ROUTE_NOT_FOUND', `There is nothing at ${path}`, { metadata: { path } })
}
