import { parse } from 'node:querystring'
import { type Exchange, requireHttpMethod } from '../http/exchange.ts'
import type { PageFiles } from '../http/page-files.ts'
import { readPageTexts } from '../http/page-texts.ts'
import { isForm } from '../http/refusals.ts'
import { maxFormBytes } from '../limits/limits.ts'
import { CountersignError, internalError } from '../shared/errors.ts'
import { accountPath, signInPath } from '../shared/page-names.ts'
import type { IssuerContent } from '../shared/page-values.ts'
import type { OperatorTexts } from '../shared/texts/page-texts.ts'
import { issuerTexts } from '../shared/texts/pages.ts'
import type { IssuerParts, IssuerSettings } from './issuer-parts.ts'
import type { LibraryAnswer } from './library-request.ts'

/** Makes the issuer's page with a content. */
export type ShowPage = (status: number, content: IssuerContent) => LibraryAnswer

/** Makes the issuer's page of the built pages; without them, the answer says so. */
export function issuerPage(settings: IssuerSettings, files: PageFiles | undefined): ShowPage {
  const { appName, basePath, pages, resolveLogin } = settings
  const { logoUrl, logoHasName, accentColor, textsFile } = pages
  const signIn = basePath + signInPath
  // Users of the application's own have no account page.
  const account = resolveLogin === undefined ? basePath + accountPath : signIn
  const texts = issuerTextsIn(readPageTexts(textsFile))
  const looks = { appName, basePath, accountPath: account, logoUrl, logoHasName, accentColor, texts }
  // The assets are those of the sign-in page.
  const page = files?.answerPage('issuer', looks, signIn)
  return (status, content) => {
    const locales = 'locales' in content ? content.locales : undefined
    if (page !== undefined) return page(status, { content, locales })
    const headers = { 'content-type': 'text/plain; charset=utf-8' }
    return { status: 503, headers, body: 'The pages are not built.\n' }
  }
}

/** The operator's texts of this page: each answer carries them. */
function issuerTextsIn(languages: OperatorTexts = {}): OperatorTexts {
  const own = new Set(issuerTexts.flatMap(Object.keys))
  const ofPage = (texts: object) => Object.fromEntries(Object.entries(texts).filter(([key]) => own.has(key)))
  return Object.fromEntries(Object.entries(languages).map(([tag, texts]) => [tag, ofPage(texts)]))
}

interface NavigationParts extends Pick<IssuerParts, 'publicUrl' | 'limiter' | 'log'> {
  readonly page: ShowPage
}

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
   * Serves a navigation. Scripts, images and frames are refused: behind forward auth, a script of a protected host
   * could read another application's code. A request to another host goes on at the issuer's own. A browser gets a page
   * if the request fails.
   */
  async serve(exchange: Exchange, methods: readonly string[], serve: () => Promise<void>): Promise<void> {
    try {
      requireHttpMethod(exchange, methods)
      requirePage(exchange)
      // Counted whatever the answer is: an error page takes several times the CPU of a sign-in page.
      await this.#parts.limiter?.spendNavigation('session', exchange.context)
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
        'a browser came to the OpenID Connect issuer by another host than that of publicUrl ' +
          '(COUNTERSIGN_PUBLIC_URL), and was sent there; if it goes around in circles, let the proxy pass on the ' +
          'Host header, or set trustProxy (COUNTERSIGN_TRUST_PROXY) and let it send X-Forwarded-Host',
      )
    }
    return `${own}${path}${query === '' ? '' : `?${query}`}`
  }

  #show(exchange: Exchange, { reason, httpStatus, retryAfterMs }: CountersignError): void {
    const content =
      reason === 'INVALID_REQUEST'
        ? ({ kind: 'error', error: 'invalid_request' } as const)
        : ({ kind: 'failure', reason } as const)
    const { status, headers, body } = this.#parts.page(httpStatus, content)
    const retry = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
    exchange.output.send({ status, headers: { ...headers, ...retry }, body })
  }
}

/**
 * Refuses what is no navigation of a whole page, as far as the browser says so (Fetch Metadata, 2). With `prompt=none`,
 * an application may use a frame: that shows no page and stores nothing for a user who is not signed in.
 */
function requirePage({ headers, path, query, context }: Exchange): void {
  const { 'sec-fetch-mode': mode = 'navigate', 'sec-fetch-dest': dest = 'document' } = headers
  const isOfFrame = dest === 'iframe' && path.endsWith('/authorize') && isQuiet({ query })
  if (mode === 'navigate' && (dest === 'document' || isOfFrame)) return
  const { origin = '', originSource } = context
  throw new CountersignError(
    'ORIGIN_NOT_TRUSTED',
    'This address is for browsers that open it as a page, not for scripts, images or frames',
    { metadata: { origin, origin_source: originSource } },
  )
}

/**
 * Whether a request asks for an answer without a question to the user, read as the library reads it. Beside a pushed
 * request, the library ignores the prompt of the query.
 */
export function isQuiet({ query }: Pick<Exchange, 'query'>): boolean {
  const { prompt, request_uri: pushed } = parse(query)
  return prompt === 'none' && pushed === undefined
}

/** The sign-in page with parameters of its own. It leads back to a path. */
export function signInAddress(basePath: string, returnTo: string, wanted: Readonly<Record<string, string>>): string {
  return `${basePath}${signInPath}?${new URLSearchParams({ returnTo, ...wanted })}`
}

/** An answer that leads a browser on. */
export function leadTo(location: string): LibraryAnswer {
  return { status: 303, headers: { location, 'cache-control': 'no-store' }, body: '' }
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
  output.send(leadTo(location))
}
