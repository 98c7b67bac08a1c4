import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { extname } from 'node:path'
import type { Settings } from '../config.ts'
import type { Logger } from '../log.ts'
import type { NodeRequest, NodeResponse } from './node-request.ts'
import { claimPath, pageHeaders } from './page-headers.ts'
import { type Route, requireHttpMethod } from './route.ts'

/** The route of a page, or of a file that a page is made of; `undefined` for any other path. */
export type PageRoutes = (path: string) => Route | undefined

/** Text of a page if the pages have not been built. */
const notBuilt = 'The pages of this service are not built. Run: npm run build, then start it again.\n'

/** Path of the assets. Their names change with their content. */
const assetsPath = '/pages/'

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  // Not served under this name: it is the compressed form of the file that its name begins with.
  '.gz': 'application/gzip',
}

/** Folders into which scripts/build-pages.ts writes, relative to the sources and to tsc's output (dist/src/http). */
const buildFolders = ['../../dist/pages/', '../../pages/'].map((folder) => new URL(folder, import.meta.url))

/** A file as it is served. It is kept in memory. */
interface ServedFile {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The same, compressed, for clients that accept gzip. */
  readonly gzipped?: ServedFile
}

/**
 * The service's own pages: the demo at `/`, and the approval page at the path of claim URLs. They are files that are
 * read once, at the start. Opening a page, however often and by whatever (a phone, a link preview, a crawler), reads
 * and changes no order.
 *
 * If the pages have not been built, both paths answer 503 and say so.
 */
export function createPages(
  settings: Pick<Settings, 'pages' | 'appName' | 'claimUrlTemplate'>,
  log: Logger,
  folders: readonly URL[] = buildFolders,
): PageRoutes {
  if (!settings.pages) return () => undefined
  const files = readFolder(folders)
  if (files === undefined) log.warn(notBuilt.trim())
  const page = (name: string): ServedFile => {
    const html = files?.get(name)?.toString('utf8')
    return html === undefined ? unavailable : servedPage(fillIn(html, settings))
  }
  const demo = page('demo.html')
  const approval = page('approve.html')
  const isClaimPath = claimPath(settings.claimUrlTemplate)
  const assets = new Map<string, ServedFile>()
  for (const [name, body] of files ?? []) {
    if (/\.(html|gz)$/.test(name)) continue
    const gzipped = files?.get(`${name}.gz`)
    const plain = servedAsset(name, body, {})
    if (gzipped === undefined) assets.set(assetsPath + name, plain)
    else
      assets.set(assetsPath + name, { ...plain, gzipped: servedAsset(name, gzipped, { 'content-encoding': 'gzip' }) })
  }

  const routes = new Map<string, Route>([['/', fileRoute(demo)]])
  for (const [path, file] of assets) routes.set(path, fileRoute(file))
  const approvalRoute = fileRoute(approval)
  return (path) => routes.get(path) ?? (isClaimPath(path) ? approvalRoute : undefined)
}

function fileRoute(file: ServedFile): Route {
  return ({ request, response, path }) => {
    requireHttpMethod(request, response, path, ['GET', 'HEAD'])
    serveFile(request, response, takesGzip(request) ? (file.gzipped ?? file) : file)
  }
}

function readFolder(folders: readonly URL[]): ReadonlyMap<string, Buffer> | undefined {
  for (const folder of folders) {
    try {
      const names = readdirSync(folder).filter((name) => extname(name) in contentTypes)
      return new Map(names.map((name) => [name, readFileSync(new URL(name, folder))]))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return undefined
}

/** Fills the settings that a page uses into its placeholders. */
function fillIn(html: string, { appName, claimUrlTemplate }: Pick<Settings, 'appName' | 'claimUrlTemplate'>): string {
  const values: Readonly<Record<string, string>> = { appName, claimUrlTemplate }
  return html.replace(/\{\{(\w+)\}\}/g, (placeholder, name: string) => escapeHtml(values[name] ?? placeholder))
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const unavailable: ServedFile = {
  status: 503,
  headers: { ...pageHeaders, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body: Buffer.from(notBuilt),
}

/** A page is not cached, because it names the assets of one build. */
function servedPage(html: string): ServedFile {
  const headers = { ...pageHeaders, 'content-type': contentTypes['.html'] as string, 'cache-control': 'no-store' }
  return { status: 200, headers, body: Buffer.from(html) }
}

function servedAsset(name: string, body: Buffer, encoding: Readonly<Record<string, string>>): ServedFile {
  const headers = {
    ...pageHeaders,
    ...encoding,
    vary: 'Origin, Accept-Encoding',
    'content-type': contentTypes[extname(name)] as string,
    'cache-control': 'public, max-age=31536000, immutable',
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
  }
  return { status: 200, headers, body }
}

function serveFile(request: NodeRequest, response: NodeResponse, { status, headers, body }: ServedFile): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  // The two classes' end() differ in what they return, which TypeScript cannot call through a union.
  const answer = response as ServerResponse
  if (headers.etag !== undefined && hasTag(request.headers['if-none-match'], headers.etag)) {
    answer.statusCode = 304
    answer.end()
    return
  }
  answer.statusCode = status
  answer.setHeader('content-length', body.length)
  answer.end(request.method === 'HEAD' ? undefined : body)
}

/** Whether Accept-Encoding has gzip with a weight other than zero. */
function takesGzip(request: NodeRequest): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(request.headers['accept-encoding'] ?? ''))
}

/** Whether If-None-Match has the tag, by the weak comparison of RFC 9110, 13.1.2. */
function hasTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags !== undefined && (tags.includes(etag) || tags.includes('*'))
}
