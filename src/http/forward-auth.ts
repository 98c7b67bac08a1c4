import { headerOf, type RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'
import { retryAfterSeconds, toFailure } from '../rpc/errors.ts'
import { CountersignError, internalError, invalidField, refused } from '../shared/errors.ts'
import { areGroups, isInAny } from '../shared/groups.ts'
import { signInPath } from '../shared/page-names.ts'
import { isReturnPath } from '../shared/return-path.ts'
import { type Exchange, type Route, requireHttpMethod } from './exchange.ts'
import type { ShowRefusal } from './pages.ts'

/** Path under the base path, for the question of a proxy whether a request may pass. */
export const forwardAuthPath = '/forward-auth'

/** The session as the application behind the proxy gets it. */
interface ProxiedSession extends Pick<Session, 'id' | 'userId' | 'adapterId' | 'address'> {
  readonly groups: readonly string[]
}

/**
 * The session of a proxied request. `reads`: whether that is a GET or HEAD. Rejects with SESSION_REQUIRED,
 * SESSION_INVALID or ORIGIN_NOT_TRUSTED if the request may not pass.
 */
export type PeekSession = (request: RequestContext, reads: boolean) => Promise<PeekedSession>

/** A session, and what notes that it was used: it is extended, if due. */
interface PeekedSession extends ProxiedSession {
  extend(): Promise<void>
}

/**
 * Answers a proxy that asks whether a request may pass: 200 with the session in five headers, or 401 or 403. A 401 to a
 * GET or HEAD has the address of the sign-in page as its Location, for nginx, which takes no 302 here; with
 * `?redirect=1` it is a 302 there. The address is a path on the protected host, so that no host is read from a header.
 * A request that may pass is a use of its session. With `?groups=staff,admins`, users of any of these groups pass, and
 * others get 403, GROUP_REQUIRED. A browser that opens a page gets a refusal as a page, any other client as JSON.
 *
 * NOT_ENABLED without `peekSession`, and if no proxy is trusted.
 */
export function forwardAuth(
  { basePath, trustProxy }: { readonly basePath: string; readonly trustProxy: number },
  peekSession: PeekSession | undefined,
  page: ShowRefusal | undefined,
): Route {
  return async (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    if (peekSession === undefined) {
      const text = 'The application keeps the sessions itself (sessionHost); let it decide'
      throw new CountersignError('NOT_ENABLED', text)
    }
    if (trustProxy === 0) throw new CountersignError('NOT_ENABLED', proxyNeeded)
    const { context, output } = exchange
    const { redirects, groups } = askedOf(exchange)
    const reads = isReading(context)
    let session: PeekedSession | undefined
    try {
      session = await peekSession(context, reads)
      if (groups !== undefined && !isInAny(session.groups, groups)) {
        throw refused('GROUP_REQUIRED', { metadata: { groups: groups.join(',') } })
      }
      await session.extend()
      output.send({ status: 200, headers: { ...uncached, ...sessionHeaders(session) }, body: '' })
    } catch (thrown) {
      const { httpStatus, reason, retryAfterMs } = toFailure(thrown)
      const signIn = `${basePath}${signInPath}?returnTo=${encodeURIComponent(reads ? returnTo(context) : '/')}`
      const vary = 'Accept, Sec-Fetch-Mode'
      output.setHeaders({ ...uncached, vary })
      if (reads && httpStatus === 401) {
        output.setHeaders({ location: signIn })
        if (redirects) return output.send({ status: 302, body: '' })
      }
      if (page !== undefined && isNavigation(exchange)) {
        const wallet = session && { adapterId: session.adapterId, address: session.address }
        const refusal = { reason, groups, wallet, signIn: session === undefined ? signIn : `${signIn}&again=1` }
        const { status, headers, body } = page(httpStatus, refusal)
        const retry = retryAfterMs === undefined ? {} : { 'retry-after': retryAfterSeconds(retryAfterMs) }
        output.send({ status, headers: { ...headers, ...retry, vary }, body })
      }
      // If the page has answered, this is for the log and the metrics.
      throw thrown
    }
  }
}

/**
 * What the proxy's configuration asks. A parameter that is misspelt, repeated or empty is refused: without it, everyone
 * would pass.
 */
function askedOf({ query }: { readonly query: string }) {
  const given = [...new URLSearchParams(query)]
  for (const [name, value] of given) {
    const isRepeated = given.filter(([other]) => other === name).length > 1
    const fits = name === 'redirect' ? value !== '' : name === 'groups' && areGroups(value.split(','))
    if (!fits || isRepeated) {
      const shown = /^\w{1,32}$/.test(name) ? name : 'one'
      throw invalidField(
        shown,
        `Forward auth takes redirect=1 and groups=staff,admins, each once; ${shown} does not fit`,
      )
    }
  }
  const { redirect, groups } = Object.fromEntries(given)
  return { redirects: redirect === '1', groups: groups?.split(',') }
}

/** Whether a browser opens a page. Without TLS, browsers say only what they accept. */
function isNavigation({ headers }: Exchange): boolean {
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? headers.accept?.includes('text/html') === true : mode === 'navigate'
}

const uncached = { 'cache-control': 'no-store' }

/**
 * Whether the proxied request is a GET or HEAD, by every header that names its method. A proxy writes one of them; the
 * other may be the client's own.
 */
function isReading(context: RequestContext): boolean {
  const forwarded = ['x-forwarded-method', 'x-original-method']
    .map((name) => headerOf(context, name))
    .filter((method) => method !== undefined)
  return forwarded.length > 0 && forwarded.every((method) => method === 'GET' || method === 'HEAD')
}

/** Path and query of the proxied request, for the return after signing in; "/" if they are missing or unfit. */
function returnTo(context: RequestContext): string {
  const forwarded = headerOf(context, 'x-forwarded-uri') ?? headerOf(context, 'x-original-uri') ?? '/'
  // A request's target is ASCII (RFC 9112, 3.2). Other characters are bytes in an unknown encoding.
  return /^[!-~]+$/.test(forwarded) && isReturnPath(forwarded) ? forwarded : '/'
}

/** Always all five: some proxies keep the client's header if the answer has none of that name. */
function sessionHeaders({ id, userId, adapterId, address, groups }: ProxiedSession): Record<string, string> {
  return {
    // An application's own user ids can have any characters.
    'x-countersign-user': encodeURIComponent(userId),
    'x-countersign-address': headerText(address, adapterId),
    'x-countersign-adapter': adapterId,
    'x-countersign-session': id,
    'x-countersign-groups': groups.join(','),
  }
}

/** An address in a form that headers can carry. Adapters of the application can have any text. */
function headerText(address: string, adapterId: string): string {
  if (/^[!-~]([ -~]*[!-~])?$/.test(address)) return address
  throw internalError(
    new TypeError(
      `an address of the adapter ${adapterId} must be printable ASCII for forward auth, and must not be empty`,
    ),
  )
}

const proxyNeeded =
  'Forward auth uses headers that a proxy writes: set trustProxy (COUNTERSIGN_TRUST_PROXY), and make the ' +
  'service reachable through the proxy only'
