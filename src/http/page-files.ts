import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { withoutOws } from '../shared/header-text.ts'
import { defaultClaimUrlTemplate, orderIdForm, type PageName } from '../shared/page-names.ts'
import type { CommonValues, PageValues } from '../shared/page-values.ts'
import { takesGzip } from '../wire/body.ts'
import { headersOfPage, pageHeaders } from './page-headers.ts'

/** Text of a page if the pages have not been built. */
export const notBuilt = 'The pages of this service are not built. Run: npm run build, then start it again.\n'

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** A file as it is served. It is kept in memory. */
export interface ServedFile {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The same, compressed, for clients that accept gzip. */
  readonly gzipped?: ServedFile
  /** Addresses of the scripts with its texts by language (BCP 47); `undefined` where they are in the document. */
  readonly translations?: Readonly<Record<string, string | undefined>>
}

/** How a page is served. */
export interface PageServing {
  /** Path of the assets, without a slash at the end. */
  readonly assetsPath: string
  /** Default: 200. */
  readonly status?: number
}

/** A page that is the same in every answer. */
export type FixedPage = Exclude<PageName, 'issuer'>

/** What each answer has of its own on a page. */
interface AnswerValues {
  readonly issuer: Pick<PageValues['issuer'], 'content' | 'locales'>
  readonly 'not-found': Pick<PageValues['not-found'], 'refusal'>
}

/** The built pages. */
export interface PageFiles {
  /** A page by its name, with its values. It is not cached, because it names the assets of one build. */
  page<Name extends FixedPage>(name: Name, values: PageValues[Name], serving: PageServing): ServedFile
  /**
   * A page with values of each answer. Everything else is filled in once, because any client can request an error page.
   * It has no compressed form: it contains secrets beside what the request says, and its length would tell of them.
   */
  answerPage<Name extends keyof AnswerValues>(
    name: Name,
    values: CommonValues & Omit<PageValues[Name], keyof AnswerValues[Name]>,
    assetsPath: string,
  ): (status: number, answer: AnswerValues[Name]) => ServedFile
  /** Scripts, styles and icons by name. A name changes with the content. */
  readonly assets: ReadonlyMap<string, ServedFile>
}

/**
 * What scripts/build-pages.ts writes: the HTML of pages by their names, the names of the assets with their texts in
 * other languages, and texts of assets by file name.
 */
export interface BuiltPages {
  readonly pages: Readonly<Record<PageName, string>>
  readonly translations: Readonly<Record<PageName, Readonly<Record<string, string>>>>
  readonly assets: Readonly<Record<string, string>>
}

let loaded: PageFiles | undefined

/**
 * The built pages; `undefined` if they have not been built. They are imported, so that bundlers take them along: no
 * path leads to a file of this package once it is in the bundle of an application.
 */
export async function loadPageFiles(): Promise<PageFiles | undefined> {
  try {
    loaded ??= pageFilesOf((await import('#pages', { with: { type: 'json' } })).default)
  } catch (error) {
    if (!/MODULE_NOT_FOUND$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
  return loaded
}

/** The pages of a build. */
export function pageFilesOf({ pages, translations, assets }: BuiltPages): PageFiles {
  return {
    page: (name, values, { assetsPath, status = 200 }) => {
      const html = fillIn(pages[name], { ...values, assetsPath })
      const headers = htmlHeaders(html, values.logoUrl)
      const built = Object.entries(translations[name]).map(([tag, file]) => [tag, `${assetsPath}/${file}`])
      const inDocument = ['en', ...Object.keys(values.texts ?? {})].map((tag) => [primaryTag(tag), undefined])
      const addresses = Object.fromEntries([...inDocument, ...built])
      // Texts in many languages are long. Nothing in these pages is secret, so the length may tell what they contain.
      return compressible(html, (body, encoding) => {
        return { status, headers: { ...headers, ...encoding }, body, translations: addresses }
      })
    },
    answerPage: (name, values, assetsPath) => {
      const parts = pages[name].split('{{values}}').map((part) => fillIn(part, { ...values, assetsPath }))
      const headers = { ...htmlHeaders(parts.join(''), values.logoUrl), vary: 'Origin' }
      const [head, tail] = parts as [string, string]
      // The object of values stays open, for those of the answer.
      const before = Buffer.from(`${head}${escapeHtml(JSON.stringify(values).slice(0, -1))},`)
      const after = Buffer.from(tail)
      return (status, answer) => {
        const own = Buffer.from(escapeHtml(JSON.stringify(answer).slice(1)))
        return { status, headers, body: Buffer.concat([before, own, after]) }
      }
    },
    assets: new Map(Object.entries(assets).map(([name, text]) => [name, servedAsset(name, text)])),
  }
}

function htmlHeaders(html: string, logoUrl: string | undefined): Readonly<Record<string, string>> {
  const type = contentTypes['.html'] as string
  return { ...headersOfPage(html, logoUrl), 'content-type': type, 'cache-control': 'no-store' }
}

/** Fills in a page's placeholders: single values in the document, and all of them for its script. */
function fillIn(html: string, { assetsPath, ...values }: CommonValues & { readonly assetsPath: string }): string {
  const places: Readonly<Record<string, unknown>> = {
    ...values,
    assetsPath,
    initials: initialsOf(values.appName),
    values: JSON.stringify(values),
  }
  return html.replace(/\{\{(\w+)\}\}/g, (placeholder, name: string) => escapeHtml(String(places[name] ?? placeholder)))
}

/** First letters of the first two words of a name, for the place of a logo. */
function initialsOf(name: string): string {
  const letters = name.match(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu) ?? []
  return letters.slice(0, 2).join('').toLocaleUpperCase('en')
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

function servedAsset(name: string, text: string): ServedFile {
  const headers = {
    ...pageHeaders,
    'content-type': contentTypes[extname(name)] as string,
    'cache-control': 'public, max-age=31536000, immutable',
  }
  return compressible(text, (body, encoding) => ({
    status: 200,
    headers: { ...headers, ...encoding, etag: entityTag(body) },
    body,
  }))
}

/**
 * A file in both encodings, of which `encoding` has the headers. It is compressed once it is asked for: few services
 * serve all of them.
 */
export function compressible(
  text: string,
  made: (body: Buffer, encoding: Readonly<Record<string, string>>) => ServedFile,
): ServedFile {
  const body = Buffer.from(text)
  let gzipped: ServedFile | undefined
  return {
    ...made(body, bothEncodings),
    get gzipped() {
      gzipped ??= made(gzipSync(body), { ...bothEncodings, 'content-encoding': 'gzip' })
      return gzipped
    },
  }
}

const bothEncodings = { vary: 'Origin, Accept-Encoding' }

/** An entity tag (RFC 9110, 8.8.3) that changes with the content. */
export function entityTag(body: Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}

/** What of a request decides on the answer. */
interface FileRequest {
  readonly method: string | undefined
  readonly acceptEncoding: string | undefined
  readonly acceptLanguage: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** The answer to a GET or HEAD for a file. Without a body for HEAD, and if the client has the file already. */
export function answerWithFile(plain: ServedFile, asked: FileRequest) {
  const { method, acceptEncoding, acceptLanguage, ifNoneMatch } = asked
  const { status, headers, body, translations } = takesGzip(acceptEncoding) ? (plain.gzipped ?? plain) : plain
  if (headers.etag !== undefined && hasTag(ifNoneMatch, headers.etag)) return { status: 304, headers, body: undefined }
  return {
    status,
    headers: { ...headers, ...preload(translations, acceptLanguage), 'content-length': String(body.length) },
    body: method === 'HEAD' ? undefined : body,
  }
}

/**
 * Has the browser load a page's texts together with its script, which would name them only once it runs: in the first
 * of the browser's languages that the page has. The page decides; its address can name another language.
 */
function preload(translations: ServedFile['translations'] = {}, acceptLanguage = ''): Readonly<Record<string, string>> {
  const tag = acceptLanguage
    .split(',')
    .map(primaryTag)
    .find((one) => Object.hasOwn(translations, one))
  const address = tag && translations[tag]
  return address ? { link: `<${address}>; rel=modulepreload` } : {}
}

/** The language of a tag or range, such as pt of pt-BR;q=0.8. */
function primaryTag(range: string): string {
  return /^\s*(\w*)/.exec(range)?.[1]?.toLowerCase() ?? ''
}

/** Whether If-None-Match has the tag, by the weak comparison of RFC 9110, 13.1.2. */
function hasTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map((tag) => withoutOws(tag).replace(/^W\//, ''))
  return tags !== undefined && (tags.includes(etag) || tags.includes('*'))
}

/** Path of the page that continues an order in another browser. The ticket follows it. */
export const continuePath = '/cross-device/continue'

/**
 * Makes a function that says whether a path is that of a claim URL on the service's own origin. If the template leads
 * to another origin, which then has the approval page, no path is. The default's short path could be an application's
 * own, so what follows it has to look like an order's id.
 */
export function claimPath(template: string): (path: string) => boolean {
  const own = claimPathTemplate(template)
  if (own === undefined) return () => false
  const escaped = own.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  const id = template === defaultClaimUrlTemplate ? orderIdForm : '[A-Za-z0-9_-]{1,64}'
  const pattern = new RegExp(`^${escaped.replaceAll('{orderId}', id)}$`)
  return (path) => pattern.test(path)
}

/** The path in a claim URL template; `undefined` if the template leads to another origin. */
export function claimPathTemplate(template: string): string | undefined {
  const own = /^\{origin\}(\/[^?#]*)?/.exec(template)
  return own === null ? undefined : (own[1] ?? '/')
}

/**
 * Whether a path is where a hand-over continues an order, by a ticket; or, after the page has removed it, by the
 * order's id.
 */
export function isContinuePath(path: string): boolean {
  return path.startsWith(`${continuePath}/`) && /^[A-Za-z0-9_-]{1,128}$/.test(path.slice(continuePath.length + 1))
}
