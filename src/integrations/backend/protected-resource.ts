import { bearerTokenOf } from '../../shared/header-text.ts'
import {
  AccessTokenError,
  type AccessTokenWallet,
  clientTokenClaims,
  requireRules,
  type VerifyAccessTokenOptions,
} from './access-token.ts'
import { type FetchRequest, type NodeRequest, readRequest } from './request.ts'

/** Options of {@link protectedResource}. */
export interface ProtectedResourceOptions extends Omit<VerifyAccessTokenOptions, 'audience' | 'scopes'> {
  /**
   * Address of the resource as the service's clients file spells it, such as `https://notes.example/mcp`: an http or
   * https address without a user and a fragment. Tokens for any other resource are refused.
   */
  readonly resource: string
  /** Scopes that a token must have been granted, one or more. */
  readonly scopes: readonly string[]
  /** Scopes that the metadata names for clients to ask for. They contain `scopes`. Default: `scopes`. */
  readonly offered?: readonly string[] | undefined
}

/** Metadata of a resource (RFC 9728, 2): what clients read to find its issuer. */
export interface ResourceMetadata {
  readonly resource: string
  readonly authorization_servers: readonly string[]
  readonly scopes_supported: readonly string[]
}

/** What a token says, in the form that `@modelcontextprotocol/sdk` has for it. */
export interface AuthInfo {
  readonly token: string
  /** Id of the client that acts for the user. */
  readonly clientId: string
  /** What the user has allowed the client. */
  readonly scopes: string[]
  /** Expiry, epoch seconds. */
  readonly expiresAt: number
  /** The resource that the token is for. */
  readonly resource: URL
  /** Whose token it is. Groups and the wallet are there with the scopes `groups` and `wallet` only. */
  readonly extra: {
    readonly userId: string
    readonly groups: readonly string[]
    readonly wallet?: AccessTokenWallet | undefined
  }
}

/** A request that a resource gets: of node:http, node:http2, a framework on them, or the Fetch API. */
export type ResourceRequest =
  | FetchRequest
  | (NodeRequest & { readonly url?: string | undefined; readonly originalUrl?: string | undefined })

/** An answer that the resource gives in place of the application. `new Response(body, answer)` makes one of it. */
export interface ResourceAnswer {
  /**
   * HTTP status: 200 and 404 for metadata, 204 for a preflight, 401 for a token that is missing or not valid, 403 for
   * one without the scopes, 503 if the issuer's keys cannot be fetched.
   */
  readonly status: 200 | 204 | 401 | 403 | 404 | 503
  readonly headers: Readonly<Record<string, string>>
  /** JSON, or `null` if there is no body. */
  readonly body: string | null
}

/** What comes of a request: an answer, or what its token says and headers for the application's own answer. */
export type ResourceCheck =
  | { readonly answer: ResourceAnswer; readonly auth?: undefined; readonly headers?: undefined }
  | { readonly auth: AuthInfo; readonly headers: Readonly<Record<string, string>>; readonly answer?: undefined }

/** What {@link ProtectedResource.handle} uses of a response of node:http or node:http2. */
export interface ResourceResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(): unknown
  end(body: string): unknown
}

/** A resource of the issuer, such as an MCP server: it lets requests with a token of its own through. */
export interface ProtectedResource {
  readonly metadata: ResourceMetadata
  /**
   * Decides on a request, whose method and address count too. Rejects only for a mistake in the program.
   */
  check(request: ResourceRequest): Promise<ResourceCheck>
  /**
   * Answers a request, or calls `next` with `request.auth` set to an {@link AuthInfo}. Resolves once the answer is
   * written or `next` is done; rejects as `next` does.
   */
  handle(request: ResourceRequest, response: ResourceResponse, next: () => unknown): Promise<void>
}

/** Path below which metadata of resources are (RFC 9728, 3.1). */
const wellKnown = '/.well-known/oauth-protected-resource'

/** Pages of all origins may call: they can add no token but their own, and answers to cookies are no different. */
const forEveryPage = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'WWW-Authenticate, Mcp-Session-Id',
} as const

/** Headers of the requests of MCP clients; a client that takes up a stream again sends one more. */
const allowedHeaders = 'authorization, content-type, mcp-protocol-version, mcp-session-id'

/**
 * Makes the guard of a resource of the issuer, such as an MCP server. A request without a token is answered with the
 * address of the metadata, at which clients find the issuer (RFC 9728, 5.1); metadata and preflights (the Fetch
 * standard's CORS protocol) need no token. Tokens are checked as by `verifyAccessToken`, without a call for each.
 *
 * Throws a `TypeError` if an option does not fit.
 */
export function protectedResource(options: ProtectedResourceOptions): ProtectedResource {
  const { resource, scopes, offered = scopes, ...others } = options
  const address = addressOf(resource)
  const rules = { ...others, audience: resource }
  requireRules({ ...rules, scopes })
  requireRules({ ...rules, scopes: offered })
  if (!scopes.every((each) => offered.includes(each))) throw new TypeError('offered must contain all of scopes')
  const path = `${wellKnown}${address.pathname === '/' ? '' : address.pathname}`
  const metadata = { resource, authorization_servers: [options.issuer], scopes_supported: [...offered] }
  const challenge = `resource_metadata="${address.origin}${path}${address.search}", scope="${scopes.join(' ')}"`

  async function check(request: ResourceRequest): Promise<ResourceCheck> {
    const { method, header } = readRequest(request)
    if (method === 'OPTIONS' && header('access-control-request-method') !== undefined) {
      return preflight(header('access-control-request-headers') ?? '')
    }
    const called = pathOf(request)
    if (called === wellKnown || called.startsWith(`${wellKnown}/`)) {
      const isOwn = withoutSlash(called) === withoutSlash(path) && (method === 'GET' || method === 'HEAD')
      return isOwn ? answer(200, metadata) : answer(404, { error: 'not_found' })
    }
    const token = bearerTokenOf(header('authorization'))
    if (token === undefined) {
      const error_description = 'Send an access token as Authorization: Bearer'
      return answer(401, { error: 'invalid_token', error_description }, `Bearer ${challenge}`)
    }
    try {
      const auth = await authOf(token)
      const isAllowed = scopes.every((each) => auth.scopes.includes(each))
      return isAllowed ? { auth, headers: forEveryPage } : refused(403, 'insufficient_scope', 'Ask the user for scope')
    } catch (thrown) {
      if (!(thrown instanceof AccessTokenError)) throw thrown
      if (thrown.reason !== 'KEYS_UNAVAILABLE') return refused(401, 'invalid_token', thrown.message)
      return answer(503, { error: 'temporarily_unavailable', error_description: thrown.message })
    }
  }

  function refused(status: 401 | 403, error: string, error_description: string): ResourceCheck {
    return answer(status, { error, error_description }, `Bearer error="${error}", ${challenge}`)
  }

  async function authOf(token: string): Promise<AuthInfo> {
    const { clientId, scopes: granted, expiresAt, userId, groups, wallet } = await clientTokenClaims(token, rules)
    const extra = { userId, groups, ...(wallet === undefined ? {} : { wallet }) }
    return { token, clientId, scopes: [...granted], expiresAt: expiresAt / 1000, resource: new URL(resource), extra }
  }

  return {
    metadata,
    check,
    async handle(request, response, next) {
      const { answer, auth, headers } = await check(request)
      for (const [name, value] of Object.entries(answer?.headers ?? headers ?? {})) response.setHeader(name, value)
      if (answer === undefined) {
        Object.assign(request, { auth })
        await next()
        return
      }
      response.statusCode = answer.status
      if (answer.body === null) response.end()
      else response.end(answer.body)
    },
  }
}

/** The address of a resource, which a header and the metadata contain. */
function addressOf(resource: unknown): URL {
  const url = typeof resource === 'string' && /^https?:[!-~]+$/.test(resource) ? URL.parse(resource) : null
  if (url === null || url.href.includes('#') || url.username + url.password !== '') {
    throw new TypeError('resource must be an http or https address, without a user and without a #')
  }
  return url
}

/** Path of a request, without its query. A framework that has cut a prefix off keeps the whole in `originalUrl`. */
function pathOf(request: ResourceRequest): string {
  const whole = 'originalUrl' in request ? request.originalUrl : undefined
  return URL.parse(whole ?? request.url ?? '', 'http://localhost')?.pathname ?? ''
}

/** MCP's SDK asks for the metadata of an address without the slash at its end. */
function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}

function preflight(asked: string): ResourceCheck {
  const headers = {
    ...forEveryPage,
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': /\blast-event-id\b/i.test(asked)
      ? `${allowedHeaders}, last-event-id`
      : allowedHeaders,
    'access-control-max-age': '7200',
  }
  return { answer: { status: 204, headers, body: null } }
}

function answer(status: 200 | 401 | 403 | 404 | 503, body: object, challenge?: string): ResourceCheck {
  const headers = {
    ...forEveryPage,
    'content-type': 'application/json',
    ...(status === 200 ? {} : { 'cache-control': 'no-store' }),
    ...(status === 503 ? { 'retry-after': '5' } : {}),
    ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
  }
  return { answer: { status, headers, body: JSON.stringify(body) } }
}
