import type { ServerResponse } from 'node:http'
import { offersDemoWallet, type Settings } from '../config.ts'
import type { Logger } from '../log.ts'
import type { NodeRequest, NodeResponse } from './node-request.ts'
import { answerWithFile, notBuilt, readPageFiles, type ServedFile } from './page-files.ts'
import { claimPath, isContinuePath, pageHeaders } from './page-headers.ts'
import { readPageTexts } from './page-texts.ts'
import { type Route, requireHttpMethod } from './route.ts'

/** The route of a page, or of a file that a page is made of; `undefined` for any other path. */
export type PageRoutes = (path: string) => Route | undefined

/** The settings that make the pages. */
export type PageSettings = Pick<
  Settings,
  | 'pages'
  | 'appName'
  | 'claimUrlTemplate'
  | 'basePath'
  | 'logoUrl'
  | 'accentColor'
  | 'textsFile'
  | 'adapters'
  | 'demoWallet'
  | 'publicUrl'
>

/** Path of the assets. */
const assetsPath = '/pages'

/**
 * The service's own pages: the demo at `/`, and the approval page at the paths of claim URLs and of hand-overs. They are files
 * that are read once, at the start. Opening a page, however often and by whatever (a phone, a link preview, a crawler), reads
 * and changes no order.
 *
 * If the pages have not been built, both paths answer 503 and say so.
 */
export function createPages(settings: PageSettings, log: Logger, folders?: readonly URL[]): PageRoutes {
  if (!settings.pages) return () => undefined
  const files = readPageFiles(folders)
  if (files === undefined) log.warn(notBuilt.trim())
  const { appName, claimUrlTemplate, basePath, logoUrl, accentColor } = settings
  const texts = readPageTexts(settings.textsFile)
  const adapterIds = settings.adapters.map((adapter) => (typeof adapter === 'string' ? adapter : adapter.id))
  const demoWallet = offersDemoWallet(settings)
  const looks = { logoUrl, accentColor, texts }
  const values = { appName, claimUrlTemplate, basePath, assetsPath, adapterIds, demoWallet, ...looks }
  const page = (name: string): ServedFile => files?.page(name, values) ?? unavailable
  const demo = page('demo.html')
  const approval = page('approve.html')
  const isClaimPath = claimPath(claimUrlTemplate)

  const routes = new Map<string, Route>([['/', fileRoute(demo)]])
  for (const [name, file] of files?.assets ?? []) routes.set(`${assetsPath}/${name}`, fileRoute(file))
  const approvalRoute = fileRoute(approval)
  return (path) => routes.get(path) ?? (isClaimPath(path) || isContinuePath(path) ? approvalRoute : undefined)
}

const unavailable: ServedFile = {
  status: 503,
  headers: { ...pageHeaders, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body: Buffer.from(notBuilt),
}

function fileRoute(file: ServedFile): Route {
  return ({ request, response, path }) => {
    requireHttpMethod(request, response, path, ['GET', 'HEAD'])
    serveFile(request, response, file)
  }
}

function serveFile({ method, headers: sent }: NodeRequest, response: NodeResponse, file: ServedFile): void {
  const { status, headers, body } = answerWithFile(file, {
    method,
    acceptEncoding: headerText(sent['accept-encoding']),
    ifNoneMatch: sent['if-none-match'],
  })
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  // The two classes' end() differ in what they return, which TypeScript cannot call through a union.
  const answer = response as ServerResponse
  answer.statusCode = status
  answer.end(body)
}

function headerText(value: string | string[] | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}
