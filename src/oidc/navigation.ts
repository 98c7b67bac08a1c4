import { type Exchange, requireHttpMethod } from '../http/exchange.ts'
import { isForm } from '../http/refusals.ts'
import { maxFormBytes } from '../limits/limits.ts'
import { CountersignError, internalError } from '../shared/errors.ts'
import { encodedFor } from './bridge.ts'
import type { SharedParts } from './parts.ts'

type NavigationParts = Pick<SharedParts, 'publicUrl' | 'page' | 'countNavigation' | 'log'>

/** Shortest time in ms between two warnings of another host: any client can send one. */
const noticeEveryMs = 3_600_000

/** Serves the addresses that a browser opens as a page, and nothing else that asks for them. */
export class Navigations {
  readonly #parts: NavigationParts
  #quietUntil = 0

  constructor(parts: NavigationParts) {
    this.#parts = parts
  }

  /**
   * Serves a navigation. Scripts, images and frames are refused: behind forward auth, a script of a protected host could
   * read another application's code. A request to another host goes on at the issuer's own. A browser gets a page if the
   * request fails.
   */
  async serve(exchange: Exchange, methods: readonly string[], serve: () => Promise<void>): Promise<void> {
    try {
      requireHttpMethod(exchange, methods)
      requirePage(exchange)
      await this.#parts.countNavigation(exchange.context, exchange.headers['sec-fetch-dest'] !== 'iframe')
      const elsewhere = this.#ownAddress(exchange)
      if (elsewhere !== undefined) redirect(exchange, elsewhere)
      else await serve()
    } catch (thrown) {
      const failure = thrown instanceof CountersignError ? thrown : internalError(thrown)
      if (exchange.headers.accept?.includes('text/html')) this.#show(exchange, failure)
      throw failure
    }
  }

  /** The address at the issuer's own host, if a request came for another. Ports do not count: cookies have none. */
  #ownAddress({ context, path, query }: Exchange): string | undefined {
    // With a form, the browser says where that comes from.
    if (context.originSource === 'Origin header') return undefined
    const own = this.#parts.publicUrl()
    if (context.origin !== undefined && new URL(context.origin).hostname === new URL(own).hostname) return undefined
    const now = performance.now()
    if (now >= this.#quietUntil) {
      this.#quietUntil = now + noticeEveryMs
      this.#parts.log.warn(
        'a browser came to the OpenID Connect issuer by another host than that of publicUrl (COUNTERSIGN_PUBLIC_URL), and was sent there; if it goes around in circles, let the proxy pass on the Host header, or set trustProxy (COUNTERSIGN_TRUST_PROXY) and let it send X-Forwarded-Host',
      )
    }
    return `${own}${path}${query === '' ? '' : `?${query}`}`
  }

  #show(exchange: Exchange, { reason, message, httpStatus, retryAfterMs }: CountersignError): void {
    const content =
      reason === 'INVALID_REQUEST'
        ? ({ kind: 'error', error: 'invalid_request', description: message } as const)
        : ({ kind: 'failure', reason } as const)
    const { status, headers, body } = encodedFor(exchange, this.#parts.page(httpStatus, content))
    const retry = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
    exchange.output.send({ status, headers: { ...headers, ...retry }, body })
  }
}

/**
 * Refuses what is no navigation of a whole page, as far as the browser says so (Fetch Metadata, 2). With `prompt=none`, an
 * application may use a frame: that shows no page and stores nothing for a user who is not signed in.
 */
function requirePage({ headers, path, query, context }: Exchange): void {
  const { 'sec-fetch-mode': mode = 'navigate', 'sec-fetch-dest': dest = 'document' } = headers
  const isQuiet = path.endsWith('/authorize') && new URLSearchParams(query).get('prompt') === 'none'
  if (mode === 'navigate' && (dest === 'document' || (dest === 'iframe' && isQuiet))) return
  const { origin = '', originSource } = context
  throw new CountersignError(
    'ORIGIN_NOT_TRUSTED',
    'This address is for browsers that open it as a page, not for scripts, images or frames',
    { metadata: { origin, origin_source: originSource } },
  )
}

/** Goes on as a navigation with the parameters of a form: a browser sends no cookie with a form of another site. */
export async function passOnForm(exchange: Exchange, address: string): Promise<void> {
  if (!isForm(exchange.headers)) {
    throw new CountersignError('INVALID_REQUEST', 'Send the parameters as a form (application/x-www-form-urlencoded)')
  }
  const parameters = new URLSearchParams((await exchange.body.read(maxFormBytes)).toString())
  redirect(exchange, `${address}?${parameters}`)
}

function redirect({ output }: Exchange, location: string): void {
  output.send({ status: 303, headers: { location, 'cache-control': 'no-store' }, body: '' })
}
