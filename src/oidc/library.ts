import type { Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Sampler } from '../base/timing/sampler.ts'
import { CountersignError, internalError, reasons } from '../shared/errors.ts'
import { accountsOf, resourceClaims } from './accounts.ts'
import { type AdapterParts, adaptersOver } from './adapter.ts'
import { interactionSeconds } from './browser-cookies.ts'
import { claimsOfScopes, furtherClaims } from './claims.ts'
import { documentHostOf } from './client-documents.ts'
import { deviceGrant, type FileClient, longestShown, shownClient, shownUri } from './clients.ts'
import { offlineMs } from './connected-apps.ts'
import { devicePath, deviceSeconds, pollSeconds, terminalOf, userCodes } from './device-codes.ts'
import { type Interactions, languageQuery } from './interaction.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import { answerWith, type Library, reportFailure, requestState } from './library-request.ts'
import { postAnywhere, postToPublic } from './outgoing.ts'
import type { ShowPage } from './pages.ts'
import { maxParameterBytes } from './parameters.ts'
import { grantLoader, type PolicyParts, policyOf } from './policy.ts'
import type { RequestCounts } from './request-counts.ts'
import { requireScope, resourceIndicators, tokenSeconds } from './resources.ts'

/** What {@link makeProvider} needs in addition to the loaded files. */
export interface LibraryParts extends AdapterParts, PolicyParts, Pick<IssuerParts, 'keyring'> {
  /** Path of the issuer's endpoints. */
  readonly base: string
  readonly page: ShowPage
  /** Thins out lines of the log that callers can cause at will. */
  readonly sampler: Sampler
  readonly interactions: Interactions
  readonly counts: RequestCounts
}

/** Name of the library's session cookie, which exists inside the process only. */
export const sessionCookie = 'countersign_oidc_session'
/** Name of the library's cookie with the interaction that a request goes on from, which exists there only, too. */
export const resumeCookie = 'countersign_oidc_resume'

const codeSeconds = 60
/** Longest time in seconds for which a client's assertion may count, from now. */
const longestAssertionSeconds = 86_400
const refreshSeconds = 14 * 86_400

/**
 * Loads the library from the files that its main file exports. The main file itself writes a line to standard error on
 * each release of Node.js without long-term support, and has no switch for it. peerDependencies name the exact version.
 */
export async function loadLibrary(): Promise<Library> {
  try {
    const [{ Provider }, errors, interactionPolicy] = await Promise.all([
      import('oidc-provider/lib/provider.js'),
      import('oidc-provider/lib/helpers/errors.js'),
      import('oidc-provider/lib/helpers/interaction_policy/index.js'),
    ])
    return { Provider, errors, interactionPolicy }
  } catch (cause) {
    throw new TypeError(
      'oidc.clients (COUNTERSIGN_OIDC_CLIENTS) is set, which needs the package oidc-provider: npm install ' +
        'oidc-provider@9.13.3',
      { cause },
    )
  }
}

/**
 * The library for an issuer's public URL. It keeps no state, so that another can take its place. Every function of its
 * that prints or fetches by default is set.
 */
export function makeProvider(issuer: string, loaded: Loaded, parts: LibraryParts): Provider {
  const { clients, scopes, keys, people } = loaded
  const { library, store, keyring, grants, interactions, page, base, directory, settings, counts } = parts
  const { Provider, errors, interactionPolicy } = library
  const privateAddresses = new Set(
    [...clients.values()]
      .filter((client) => client.isInPrivateNetwork)
      .map(({ metadata }) => URL.parse(String(metadata.backchannel_logout_uri))?.href),
  )
  const rotates = (client: { readonly clientId: string } | undefined): boolean =>
    clients.get(client?.clientId ?? '')?.rotatesRefreshTokens !== false
  const policy = policyOf(interactionPolicy, parts, loaded)
  const off = { enabled: false } as const
  const isIssuedTo = (_ctx: unknown, client: { clientId: string }, token: { clientId?: string }): boolean =>
    token.clientId === client.clientId
  const configuration: Configuration = {
    adapter: adaptersOver(parts, loaded),
    clients: [...clients.values()].map((client) => libraryMetadata(client, loaded) as never),
    jwks: { keys: keys as never },
    routes: {
      authorization: `${base}/authorize`,
      token: `${base}/token`,
      userinfo: `${base}/userinfo`,
      introspection: `${base}/introspect`,
      revocation: `${base}/revoke`,
      pushed_authorization_request: `${base}/par`,
      device_authorization: `${base}/device/auth`,
      // The page, which is ours: the library has only its address.
      code_verification: devicePath,
      end_session: `${base}/logout`,
      jwks: `${base}/jwks.json`,
    },
    responseTypes: ['code'],
    scopes: [...scopes],
    claims: {
      // The library offers every scope that has claims.
      ...Object.fromEntries(Object.entries(claimsOfScopes).filter(([scope]) => scopes.includes(scope))),
      profile: [...claimsOfScopes.profile, ...furtherClaims(people)],
      acr: null,
      sid: null,
      iss: null,
    } as never,
    conformIdTokenClaims: false,
    clockTolerance: 5,
    allowOmittingSingleRegisteredRedirectUri: false,
    // The mark that it counts once is kept until then.
    assertJwtClientAuthClaimsAndHeader: async (_ctx, { exp }) => {
      if (typeof exp === 'number' && exp <= Date.now() / 1000 + longestAssertionSeconds) return
      throw new errors.InvalidRequest('exp of the client assertion must be a time in seconds, at most a day ahead')
    },
    clientBasedCORS: (_ctx, origin, client) =>
      // That of a page without an origin, and of a URI of an application's own scheme.
      origin !== 'null' && (client.redirectUris ?? []).some((uri) => URL.parse(uri)?.origin === origin),
    cookies: {
      names: { session: sessionCookie, resume: resumeCookie },
      long: { signed: false },
      short: { signed: false },
    },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256'] },
    // Called for each request, pushed and of a device too, whether it has this parameter or not, once the library has
    // checked the client and all else.
    extraParams: {
      ui_locales: async (ctx) => {
        requireShort(ctx.oidc.params, errors)
        requireScope(ctx, loaded, parts)
        const request = requestState.getStore()?.request
        if (request !== undefined) await counts.ofBackend(ctx.oidc, request)
      },
    },
    // All that is issued ends with the session that it was issued in, but for offline access.
    expiresWithSession: async (_ctx, { scopes }) => !scopes.has('offline_access'),
    extraTokenClaims: async (ctx, token) =>
      token.kind === 'AccessToken' && token.resourceServer
        ? await resourceClaims(parts, people, token, issuerScopesOf(ctx))
        : undefined,
    features: {
      backchannelLogout: { enabled: true },
      devInteractions: off,
      // Nonces are for clients whose clock is wrong.
      dPoP: { enabled: true, nonceSecret: Buffer.from(keyring.derive('oidc DPoP nonce', [])[0]) },
      deviceFlow: {
        enabled: parts.settings.oidc.device,
        charset: userCodes.charset,
        mask: userCodes.mask,
        // What is kept of the request for a code.
        deviceInfo: () => terminalOf(requestState.getStore()?.request) as never,
        userCodeInputSource: leaveEmpty,
        userCodeConfirmSource: leaveEmpty,
        successSource: leaveEmpty,
      },
      // This is for the metadata. The directory has the documents, so that nothing is left to fetch, or to allow.
      clientIdMetadataDocument: {
        enabled: settings.oidc.clientDocuments !== undefined,
        ack: 'draft-02',
        allowFetch: async () => false,
        allowClient: async () => false,
      },
      introspection: { enabled: true, allowedPolicy: isIssuedTo as never },
      revocation: { enabled: true, allowedPolicy: isIssuedTo as never },
      resourceIndicators: resourceIndicators(loaded, parts),
      rpInitiatedLogout: {
        enabled: true,
        // Rendered by the middleware below, for which this is never seen.
        logoutSource: leaveEmpty,
        postLogoutSuccessSource: leaveEmpty,
      },
    },
    // Logouts are all that the library sends.
    fetch: async (address, { headers, body } = {}) => {
      const url = new URL(String(address))
      const sent = { url, headers: Object.fromEntries(new Headers(headers)), body: String(body) }
      const status = await (privateAddresses.has(url.href) ? postAnywhere(sent) : postToPublic(sent))
      // Nothing else of the answer counts.
      return new Response(null, { status })
    },
    findAccount: accountsOf(parts, loaded),
    interactions: {
      policy,
      url: ({ oidc }, { uid }) => `${base}/interaction/${uid}${languageQuery(oidc.params?.ui_locales)}`,
    },
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    loadExistingGrant: grantLoader(policy, parts, loaded),
    pairwiseIdentifier: async () => {
      throw new TypeError('subjects are public')
    },
    pkce: { required: (_ctx, client) => clients.get(client.clientId)?.requiresPkce !== false },
    // The library's description is for the log: the page has its own words, in the user's language.
    renderError: async (ctx, { error }, thrown) => {
      const metadata = directory.seen(String(ctx.oidc.client?.clientId))?.metadata
      const asker = { client: metadata && shownClient(metadata), locales: await localesOf(ctx, parts) }
      const isOver = thrown instanceof errors.SessionNotFound || thrown instanceof errors.InvalidRequestUri
      const sent = error === 'invalid_redirect_uri' ? shownUri(ctx.oidc.params?.redirect_uri) : undefined
      const isAway = thrown instanceof errors.TemporarilyUnavailable
      const unreachable = isAway ? documentHostOf(ctx.oidc.params?.client_id) : undefined
      const content = { kind: 'error', error, sent, unreachable, ...asker } as const
      answerWith(ctx, page(ctx.status, isOver ? { kind: 'over', ...asker } : content))
    },
    revokeGrantPolicy: () => true,
    rotateRefreshToken: async ({ oidc }) => {
      if (rotates(oidc.client)) return true
      await grants.use(await grants.read(oidc.entities.RefreshToken?.grantId))
      return false
    },
    ttl: {
      AccessToken: tokenSeconds,
      AuthorizationCode: codeSeconds,
      DeviceCode: deviceSeconds,
      Grant: offlineMs / 1000,
      IdToken: tokenSeconds,
      Interaction: interactionSeconds,
      // With offline access 90 days from the first, else as long as the session at most.
      RefreshToken: (_ctx, { expiresWithSession, iiat }, client) => {
        const isReplaced = rotates(client)
        if (expiresWithSession) return isReplaced ? refreshSeconds : settings.sessionAbsoluteTtlSeconds
        const longest = isReplaced ? refreshSeconds : offlineMs / 1000
        const now = Math.floor(store.now() / 1000)
        return Math.max(1, Math.min(longest, (iiat ?? now) + offlineMs / 1000 - now))
      },
      Session: refreshSeconds,
    },
  }
  const provider = new Provider(issuer, configuration)
  provider.use(async (ctx, next) => {
    await next()
    const { oidc, status } = ctx as unknown as KoaContextWithOIDC
    if (ctx.path === `${base}/token` && status === 200) await extendSession(oidc, parts)
    // Clients differ in what they take for a success without a body; all take an empty object.
    if (ctx.path === `${base}/revoke` && status === 200) ctx.body = {}
    // The library has checked the client and where it leads; the page and what it does are ours.
    if (ctx.path !== `${base}/logout` || status !== 200) return
    const { post_logout_redirect_uri: uri, state: given } = oidc.params ?? {}
    const target = typeof uri === 'string' ? new URL(uri) : undefined
    if (typeof given === 'string') target?.searchParams.set('state', given)
    const logout = { clientId: oidc.client?.clientId, redirectTo: target?.href }
    answerWith(ctx, interactions.askLogout(requestState.getStore()?.session, logout))
  })
  // The library's types take no list, so one name is given for all.
  for (const event of refusalEvents) provider.on(event as 'grant.error', (ctx, error) => logRefusal(ctx, error, parts))
  // Koa prints errors that no one listens to.
  provider.silent = true
  // An address with the code in it would spare the person the typing, and so an attacker, too.
  provider.on('device_authorization.success', (_ctx, answer) => {
    answer.interval = pollSeconds
    delete answer.verification_uri_complete
  })
  provider.on('server_error', (ctx, error) => {
    const failure = error instanceof CountersignError ? error : internalError(error)
    reportFailure(ctx.res, failure)
    const { httpStatus, retryAfterMs = 1000, message } = failure
    ctx.status = httpStatus
    if (httpStatus === 500) return
    if (reasons[failure.reason].retry !== 'after a time') {
      if (!ctx.response.is('json')) return
      ctx.status = 400
      ctx.body = { error: 'invalid_request', error_description: message }
      return
    }
    ctx.set('retry-after', String(Math.ceil(retryAfterMs / 1000)))
    if ((ctx as KoaContextWithOIDC).oidc.params?.grant_type === deviceGrant) {
      // The code cannot be looked up now. A device takes any other answer for the end (RFC 8628, 3.5).
      ctx.status = 400
      ctx.body = { error: new errors.SlowDown().error, error_description: message }
      return
    }
    if (ctx.response.is('json')) ctx.body = { error: 'temporarily_unavailable', error_description: message }
  })
  return provider
}

/** Extends the session of a refresh token that ends with it: the application has just used it for its user. */
async function extendSession({ params, entities }: KoaContextWithOIDC['oidc'], { host }: LibraryParts): Promise<void> {
  const { expiresWithSession, sessionUid } = entities.RefreshToken ?? {}
  if (params?.grant_type !== 'refresh_token' || expiresWithSession !== true || sessionUid === undefined) return
  try {
    const session = await host.findSession(sessionUid)
    if (session !== undefined) await host.extendSession(session)
  } catch {
    // The tokens are made, and the client needs them. If the store is away, which the log says, the next refresh
    // extends.
  }
}

/** Events of the library for a request that it refuses. */
const refusalEvents = [
  'authorization.error',
  'grant.error',
  'userinfo.error',
  'introspection.error',
  'revocation.error',
  'pushed_authorization_request.error',
  'end_session.error',
  'device_authorization.error',
] as const

/** Answers to a client that asked whether it goes without the user, or already, and a user's no. */
const expectedRefusals = new RegExp(
  '^((login|consent|interaction|account_selection)_required|access_denied|use_dpop_nonce|' +
    'authorization_pending|slow_down|expired_token)$',
)

/** Logs a refusal, with the parts of the request that help to correct it: no code, token or secret is one of them. */
function logRefusal(
  { path, oidc }: KoaContextWithOIDC,
  error: { readonly error?: unknown; readonly error_description?: unknown; readonly error_detail?: unknown },
  { log, sampler }: LibraryParts,
): void {
  const { error: code = 'invalid_request', error_description: description, error_detail: detail = description } = error
  const clientId = oidc.client?.clientId ?? oidc.params?.client_id
  const fields = {
    path,
    error: String(code),
    cause: detail === undefined ? undefined : String(detail).slice(0, longestShown),
    clientId: clientId === undefined ? undefined : String(clientId).slice(0, longestShown),
    redirectUri: shownUri(oidc.params?.redirect_uri),
  }
  const level = expectedRefusals.test(fields.error) ? 'debug' : 'info'
  const { ip = '' } = requestState.getStore()?.request ?? {}
  sampler.add(ip, `${path} ${fields.error}`, (repeated) =>
    log[level]('the OpenID Connect issuer refused a request', { ...fields, ip, repeated }),
  )
}

/** The languages that a request asks for. Of a pushed request that is used up, the library has no parameters. */
async function localesOf({ oidc }: KoaContextWithOIDC, { records }: LibraryParts): Promise<string | undefined> {
  const { ui_locales: locales, request_uri: uri } = oidc.params ?? {}
  if (typeof locales === 'string') return locales
  const [, id] = /^urn:ietf:params:oauth:request_uri:([\w-]{1,64})$/.exec(String(uri)) ?? []
  if (id === undefined) return undefined
  type Pushed = { readonly payload: { readonly request?: string } }
  const pushed = await records.find<Pushed>('PushedAuthorizationRequest', id).catch(() => undefined)
  const [, claims] = pushed?.record.payload.request?.split('.') ?? []
  return claims && JSON.parse(Buffer.from(claims, 'base64url').toString()).ui_locales
}

/** Checks a client's metadata as the library does when it uses them. */
export async function validateMetadata({ Client }: Provider, metadata: object): Promise<void> {
  // The library's types leave this method out.
  await (Client as unknown as { validate(metadata: object): Promise<void> }).validate(metadata)
}

/** A client's metadata for the library, which is to see the scopes of the issuer alone. */
function libraryMetadata({ metadata }: FileClient, { scopes }: Loaded): object {
  if (metadata.scope === undefined) return { ...metadata }
  const own = metadata.scope.split(' ').filter((each) => scopes.includes(each))
  // For the library, none is no bound. This one gives nothing by itself.
  return { ...metadata, scope: own.join(' ') || 'offline_access' }
}

/** The scopes of the issuer that a request's code, of a device too, or refresh token was given for. */
function issuerScopesOf({ oidc }: KoaContextWithOIDC): readonly string[] {
  const { AuthorizationCode: code, DeviceCode: deviceCode, RefreshToken: refreshToken, Grant: grant } = oidc.entities
  const scope = String(oidc.params?.scope ?? (code ?? deviceCode ?? refreshToken)?.scope ?? '')
  return grant?.getOIDCScopeFiltered(new Set(scope.split(' '))).split(' ') ?? []
}

/** Refuses a request with long parameters here: its `state` would go back to the client. */
function requireShort(parameters: object | undefined, { InvalidRequest }: Library['errors']): void {
  if (Buffer.byteLength(JSON.stringify(parameters ?? {})) <= maxParameterBytes) return
  const text = `the parameters are longer than ${maxParameterBytes} bytes together`
  throw Object.assign(new InvalidRequest(text), { allow_redirect: false })
}

async function leaveEmpty(ctx: { body?: unknown }): Promise<void> {
  ctx.body = ''
}
