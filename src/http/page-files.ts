import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { constants, crc32, deflateRawSync, gzipSync, type ZlibOptions } from 'node:zlib'
import { withoutOws } from '../shared/header-text.ts'
import { defaultClaimUrlTemplate, orderIdForm, type PageName } from '../shared/page-names.ts'
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
}

/** What the server fills into a page's placeholders. */
export interface PageValues {
  /** Name of the application. */
  readonly appName: string
  /** Template of the claim URLs that lead to the page, which reads the claim by it. */
  readonly claimUrlTemplate: string
  /** Path of the REST endpoints that the page calls, such as /api/auth; empty if they are at the root. */
  readonly basePath: string
  /** Path of the direct sign-in endpoints under `basePath`, such as /wallet. Of the sign-in page only. */
  readonly endpointPrefix?: string
  /** Path of the assets, without a slash at the end. */
  readonly assetsPath: string
  /** Ids of the wallet adapters that the service accepts. */
  readonly adapterIds: readonly string[]
  /** Whether the page offers the demo wallet. */
  readonly demoWallet: boolean
  /** Address of the operator's logo. Default: none. */
  readonly logoUrl?: string | undefined
  /** The operator's accent colour, such as #1f6feb. Default: the page's own. */
  readonly accentColor?: string | undefined
  /** The operator's texts as `readPageTexts` returns them. Default: none. */
  readonly texts?: string | undefined
  /** Path of the account page; empty if there is none. Of the demo and the approval page only. */
  readonly accountPath?: string
  /** Path of the inbox; empty if there is none. Of the approval page, the account page and the inbox itself. */
  readonly inboxPath?: string
  /** Whether the browser may be signed in already, so that the page asks. Of the sign-in page only. */
  readonly maybeSignedIn?: boolean
  /** Whether pages can start orders; if not, backends do. Of the sign-in page, the account page and the demo. */
  readonly startsOrders?: boolean
}

/** A page with a content of its own. */
export interface FilledPage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The same, compressed, for clients that accept gzip. */
  readonly gzipped: () => Buffer
}

/** The built pages. */
export interface PageFiles {
  /** A page by its name, with status 200 by default. It is not cached, because it names the assets of one build. */
  page(name: PageName, values: PageValues, status?: number): ServedFile
  /** The issuer's page, made once, for what it shows in each answer: JSON that its script reads. */
  issuerPage(values: PageValues): (content: string) => FilledPage
  /** Scripts, styles and icons by name. A name changes with the content. */
  readonly assets: ReadonlyMap<string, ServedFile>
}

/** What scripts/build-pages.ts writes: the HTML of pages by their names, and texts of assets by file name. */
export interface BuiltPages {
  readonly pages: Readonly<Record<PageName, string>>
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
export function pageFilesOf({ pages, assets }: BuiltPages): PageFiles {
  return {
    page: (name, values, status = 200) => servedPage(fillIn(pages[name], values), values.logoUrl, status),
    issuerPage: (values) => pageAround(pages.issuer.split('{{content}}'), values),
    assets: new Map(Object.entries(assets).map(([name, text]) => [name, servedAsset(name, text)])),
  }
}

function fillIn(html: string, values: PageValues): string {
  const byName: Readonly<Record<string, string | undefined>> = {
    ...values,
    adapterIds: values.adapterIds.join(','),
    demoWallet: values.demoWallet ? 'on' : 'off',
    logoUrl: values.logoUrl ?? '',
    accentColor: values.accentColor ?? '',
    texts: values.texts ?? '',
    accountPath: values.accountPath ?? '',
    inboxPath: values.inboxPath ?? '',
    initials: initialsOf(values.appName),
    maybeSignedIn: values.maybeSignedIn ? 'yes' : 'no',
    startsOrders: values.startsOrders ? 'yes' : 'no',
  }
  return html.replace(/\{\{(\w+)\}\}/g, (placeholder, name: string) => escapeHtml(byName[name] ?? placeholder))
}

/** First letters of the first two words of a name, for the place of a logo. */
function initialsOf(name: string): string {
  const letters = name.match(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu) ?? []
  return letters.slice(0, 2).join('').toLocaleUpperCase('en')
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

function servedPage(html: string, logoUrl: string | undefined, status: number): ServedFile {
  const headers = htmlHeaders(html, logoUrl)
  // Texts in many languages are long. Nothing in a page is secret, so its length may tell what it contains.
  return compressible(html, (body, encoding) => ({ status, headers: { ...headers, ...encoding }, body }))
}

/** A page whose parts around its content are filled in and compressed once: any client can have an error page made. */
function pageAround(parts: readonly string[], values: PageValues): (content: string) => FilledPage {
  const filled = parts.map((part) => fillIn(part, values))
  const headers = htmlHeaders(filled.join(''), values.logoUrl)
  const [before, after] = filled.map((part) => pieceOf(part)) as [GzipPiece, GzipPiece]
  return (content) => {
    const text = escapeHtml(content)
    return {
      headers,
      body: Buffer.concat([before.plain, Buffer.from(text), after.plain]),
      // The least memory: allocating more takes longer than compressing so little.
      gzipped: () => gzipOf([before, pieceOf(text, { windowBits: 9, memLevel: 1 }), after]),
    }
  }
}

function htmlHeaders(html: string, logoUrl: string | undefined): Readonly<Record<string, string>> {
  return {
    ...headersOfPage(html, logoUrl),
    vary: 'Origin, Accept-Encoding',
    'content-type': contentTypes['.html'] as string,
    'cache-control': 'no-store',
  }
}

/** A part of a gzip file, compressed by itself: its blocks end at a whole byte, and none is the last. */
interface GzipPiece {
  readonly plain: Buffer
  readonly deflated: Buffer
}

function pieceOf(text: string, options: ZlibOptions = {}): GzipPiece {
  const plain = Buffer.from(text)
  return { plain, deflated: deflateRawSync(plain, { ...options, finishFlush: constants.Z_FULL_FLUSH }) }
}

/** Method 8 (deflate), no flags, no time, unknown system (RFC 1952, 2.3). */
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
/** The last block, which is empty. */
const gzipEnd = deflateRawSync('')

/** The gzip file of several pieces. */
function gzipOf(pieces: readonly GzipPiece[]): Buffer {
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(pieces.reduce((sum, { plain }) => crc32(plain, sum), 0))
  trailer.writeUInt32LE(
    pieces.reduce((length, { plain }) => length + plain.length, 0),
    4,
  )
  return Buffer.concat([gzipHeader, ...pieces.map(({ deflated }) => deflated), gzipEnd, trailer])
}

function servedAsset(name: string, text: string): ServedFile {
  const headers = {
    ...pageHeaders,
    vary: 'Origin, Accept-Encoding',
    'content-type': contentTypes[extname(name)] as string,
    'cache-control': 'public, max-age=31536000, immutable',
  }
  return compressible(text, (body, encoding) => ({
    status: 200,
    headers: { ...headers, ...encoding, etag: entityTag(body) },
    body,
  }))
}

/** A file in both encodings. It is compressed once it is asked for: few services serve all of them. */
function compressible(
  text: string,
  made: (body: Buffer, encoding: Readonly<Record<string, string>>) => ServedFile,
): ServedFile {
  const body = Buffer.from(text)
  let gzipped: ServedFile | undefined
  return {
    ...made(body, {}),
    get gzipped() {
      gzipped ??= made(gzipSync(body), { 'content-encoding': 'gzip' })
      return gzipped
    },
  }
}

/** An entity tag (RFC 9110, 8.8.3) that changes with the content. */
export function entityTag(body: Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}

/** What of a request decides on the answer. */
export interface FileRequest {
  readonly method: string | undefined
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** The answer to a GET or HEAD for a file. Without a body for HEAD, and if the client has the file already. */
export interface FileAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

/** Answers a GET or HEAD for a file. */
export function answerWithFile(plain: ServedFile, { method, acceptEncoding, ifNoneMatch }: FileRequest): FileAnswer {
  const { status, headers, body } = takesGzip(acceptEncoding) ? (plain.gzipped ?? plain) : plain
  if (headers.etag !== undefined && hasTag(ifNoneMatch, headers.etag)) return { status: 304, headers, body: undefined }
  return {
    status,
    headers: { ...headers, 'content-length': String(body.length) },
    body: method === 'HEAD' ? undefined : body,
  }
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
