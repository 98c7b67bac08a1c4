import type { Logger } from '../base/log.ts'
import type { RequestContext } from '../base/request.ts'
import { readWalletName } from '../core/wallet/adapters.ts'
import { toFailure } from '../rpc/errors.ts'
import { isBuiltIn } from '../shared/adapters.ts'
import { cookieValue, sessionCookieName } from '../shared/header-text.ts'
import { accountPath, inboxPath, orderIdForm, signInPath } from '../shared/page-names.ts'
import type { PageValues, Refusal } from '../shared/page-values.ts'
import { type Exchange, type Route, requireHttpMethod } from './exchange.ts'
import {
  answerWithFile,
  claimPath,
  claimPathTemplate,
  continuePath,
  type FixedPage,
  isContinuePath,
  notBuilt,
  type PageFiles,
  type PageServing,
  type ServedFile,
} from './page-files.ts'
import { pageHeaders } from './page-headers.ts'
import { readPageTexts } from './page-texts.ts'

/** The pages of a service. */
export interface Pages {
  /** The route of a page, or of a file that a page is made of; `undefined` for any other path. */
  find(path: string): Route | undefined
  /** Answers a browser that opens an unknown path with a page, and nothing else. */
  answerUnknown(exchange: Exchange): void
  /** The page that says why forward auth refuses a request; `undefined` without built pages. */
  readonly refusal: ShowRefusal | undefined
  /** Their paths; `*` at the end stands for any continuation. */
  readonly places: readonly string[]
}

/** Makes the page of a refusal. */
export type ShowRefusal = (status: number, refusal: Refusal) => ServedFile

/** What the pages take of the settings. */
export interface PageSettings {
  readonly appName: string
  readonly claimUrlTemplate: string
  readonly basePath: string
  readonly endpointPrefix: string
  readonly pages: {
    readonly served: boolean
    readonly logoUrl: string | undefined
    readonly logoHasName?: boolean | undefined
    readonly accentColor: string | undefined
    readonly textsFile: string | undefined
    readonly walletHelp: boolean
  }
  /** Ids of the wallet adapters, in their order. */
  readonly adapterIds: readonly string[]
  /** Whether the demo wallet is offered. */
  readonly demoWallet: boolean
  /** Whether the service keeps the users itself. If not, it has no accounts to show and no wallets to link. */
  readonly keepsUsers: boolean
  /**
   * Whether pages of every trusted origin start orders; if not, backends do, and the service's own pages at the
   * service's own origin.
   */
  readonly startsOrders: boolean
  /** Whether the demo is at `/`. If not, that leads to the sign-in page, or to the account page. */
  readonly hasDemo: boolean
}

/** What the pages are served with. */
export interface PageParts {
  /** The built pages; `undefined` if they have not been built. */
  readonly files: PageFiles | undefined
  /** Resolves if a request has a live session, without a change to it, and rejects with the reason if not. */
  readonly peekSession?: ((request: RequestContext) => Promise<unknown>) | undefined
  /** Whether a request is for the service's own origin. A proxy can route the pages at another one, too. */
  readonly isOwn?: (request: RequestContext) => boolean
}

/** Path of the assets. */
const assetsPath = '/pages'

/** Where a page is. */
interface Place {
  /** As people read it, with `*` at the end for what follows. */
  readonly path: string
  readonly matches: (path: string) => boolean
}

/** A page that the service serves by itself. */
interface PageRow {
  readonly places: readonly Place[]
  readonly route: Route
}

/**
 * The service's own pages: the demo at `/`, the approval page at the paths of claim URLs and of hand-overs, and the
 * sign-in page, the account page and the inbox under the base path. Opening a page, however often and by any client (a
 * phone, a link preview, a crawler), reads and changes no order.
 *
 * If the pages have not been built, their paths answer 503 and say so.
 */
export function createPages(settings: PageSettings, log: Logger, parts: PageParts): Pages {
  const { files, peekSession, isOwn = () => false } = parts
  if (!settings.pages.served) return { find: () => undefined, answerUnknown() {}, refusal: undefined, places: [] }
  if (files === undefined) log.warn(notBuilt.trim())
  const { appName, basePath, endpointPrefix, adapterIds, demoWallet, startsOrders, keepsUsers } = settings
  const { logoUrl, logoHasName, accentColor, textsFile, walletHelp } = settings.pages
  const common = { appName, basePath, logoUrl, logoHasName, accentColor, texts: readPageTexts(textsFile) }
  const ofWallets = { ...common, adapterIds, demoWallet }
  const paths = {
    accountPath: keepsUsers ? basePath + accountPath : '',
    inboxPath: keepsUsers ? basePath + inboxPath : '',
  }
  const signInAssets = basePath + signInPath
  const page = <Name extends FixedPage>(
    name: Name,
    values: PageValues[Name],
    serving: PageServing = { assetsPath: signInAssets },
  ): ServedFile => files?.page(name, values, serving) ?? unavailable
  const approval = { ...ofWallets, ...paths, claimUrlTemplate: settings.claimUrlTemplate }
  const pagesOf = (name: 'sign-in' | 'account', starts: boolean) => {
    const values = { ...ofWallets, ...paths, walletHelp, endpointPrefix, startsOrders: starts }
    return {
      signedOut: page(name, { ...values, maybeSignedIn: false }),
      maybeSignedIn: page(name, { ...values, maybeSignedIn: true }),
    }
  }
  const withCode = pagesOf('sign-in', true)
  const walletsOnly = pagesOf('sign-in', false)
  const accounts = pagesOf('account', startsOrders)
  const chosen = async ({ signedOut, maybeSignedIn }: typeof accounts, exchange: Exchange): Promise<ServedFile> =>
    (await mayBeSignedIn(exchange, peekSession)) ? maybeSignedIn : signedOut
  const unknown = files && page('not-found', common, { assetsPath: signInAssets, status: 404 })
  const refusing = files?.answerPage('not-found', common, signInAssets)

  const rows = {
    demo: {
      places: [at('/')],
      route: fileRoute(
        settings.hasDemo
          ? page('demo', { ...ofWallets, ...paths, walletHelp, startsOrders }, { assetsPath })
          : async (exchange) => {
              const hasAccount = keepsUsers && (await mayBeSignedIn(exchange, peekSession))
              return redirectTo(basePath + (hasAccount ? accountPath : signInPath))
            },
      ),
    },
    approve: {
      places: [...claimPlaces(settings.claimUrlTemplate), { path: `${continuePath}/*`, matches: isContinuePath }],
      route: fileRoute(page('approve', approval, { assetsPath })),
    },
    'sign-in': {
      places: [at(basePath + signInPath)],
      route: fileRoute(async (exchange) => {
        const address = addressWithoutText(exchange, adapterIds)
        if (address !== undefined) return redirectTo(address)
        return await chosen(startsOrders || isOwn(exchange.context) ? withCode : walletsOnly, exchange)
      }),
    },
    // Without users of the service's own, there is nothing to show.
    account: {
      places: keepsUsers ? [at(basePath + accountPath)] : [],
      route: fileRoute((exchange) => chosen(accounts, exchange)),
    },
    inbox: {
      places: keepsUsers ? [at(basePath + inboxPath)] : [],
      route: fileRoute(page('inbox', { ...common, ...paths, endpointPrefix })),
    },
    // The approval page again, for an order of the inbox.
    inboxOrder: {
      places: keepsUsers ? [ordersUnder(`${basePath + inboxPath}/`)] : [],
      route: fileRoute(page('approve', approval)),
    },
  } satisfies Record<Exclude<FixedPage, 'not-found'> | 'inboxOrder', PageRow>

  const pages: readonly PageRow[] = Object.values(rows)
  const assetRoutes = new Map<string, Route>()
  for (const [name, file] of files?.assets ?? []) {
    for (const folder of [assetsPath, signInAssets]) assetRoutes.set(`${folder}/${name}`, fileRoute(file))
  }
  return {
    find: (path) =>
      assetRoutes.get(path) ?? pages.find(({ places }) => places.some(({ matches }) => matches(path)))?.route,
    answerUnknown(exchange) {
      if (unknown !== undefined && opensPage(exchange)) serveFile(exchange, unknown)
    },
    refusal: refusing && ((status, refusal) => refusing(status, { refusal })),
    places: [...pages.flatMap(({ places }) => places.map(({ path }) => path)), `${assetsPath}/*`, `${signInAssets}/*`],
  }
}

function at(path: string): Place {
  return { path, matches: (asked) => asked === path }
}

const orderId = new RegExp(`^${orderIdForm}$`)

/** The orders in a folder, by their ids. */
function ordersUnder(folder: string): Place {
  return {
    path: `${folder}*`,
    matches: (asked) => asked.startsWith(folder) && orderId.test(asked.slice(folder.length)),
  }
}

/** Where claim URLs lead on the service's own origin, if they do. */
function claimPlaces(template: string): readonly Place[] {
  const path = claimPathTemplate(template)?.replace(/\{orderId\}.*/, '*')
  return path === undefined ? [] : [{ path, matches: claimPath(template) }]
}

const unavailable: ServedFile = {
  status: 503,
  headers: { ...pageHeaders, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body: Buffer.from(notBuilt),
}

/**
 * The address of the sign-in page without a `wallet` that no built-in adapter reads: the page would show any text. It
 * shows one, so of several none is read: to look at a point of a curve takes 0.2 ms.
 */
function addressWithoutText({ path, query }: Exchange, adapterIds: readonly string[]): string | undefined {
  const parameters = new URLSearchParams(query)
  const [name, ...others] = parameters.getAll('wallet')
  const builtIn = adapterIds.filter((id) => isBuiltIn(id))
  if (name === undefined || (others.length === 0 && readWalletName(name, builtIn) !== undefined)) return undefined
  parameters.delete('wallet')
  return `${path}?${parameters}`
}

function redirectTo(location: string): ServedFile {
  return { status: 303, headers: { location, 'cache-control': 'no-store' }, body: Buffer.alloc(0) }
}

/**
 * Whether a browser may be signed in. A browser without a session's cookie, or with one of a session that has ended, is
 * not, and the page need not ask, which would fail. If that cannot be decided, it may: the page asks, and says what is
 * wrong.
 */
async function mayBeSignedIn(exchange: Exchange, peekSession: PageParts['peekSession']): Promise<boolean> {
  if (!hasSessionCookie(exchange)) return false
  try {
    await peekSession?.(exchange.context)
    return true
  } catch (thrown) {
    return toFailure(thrown).httpStatus !== 401
  }
}

function hasSessionCookie({ headers: { cookie } }: Exchange): boolean {
  return [true, false].some((secure) => cookieValue(cookie, sessionCookieName(secure)) !== undefined)
}

/** Whether a request is a browser's that opens a page. Programs ask for other types, or for any. */
function opensPage({ method, headers }: Exchange): boolean {
  return /^(GET|HEAD)$/.test(method) && headers.accept?.includes('text/html') === true
}

/** Serves a file, or the one that fits the request, to GET and HEAD. */
export function fileRoute(file: ServedFile | ((exchange: Exchange) => Promise<ServedFile>)): Route {
  return async (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    serveFile(exchange, typeof file === 'function' ? await file(exchange) : file)
  }
}

function serveFile({ method, headers: sent, output }: Exchange, file: ServedFile): void {
  const { status, headers, body } = answerWithFile(file, {
    method,
    acceptEncoding: sent['accept-encoding']?.toString(),
    acceptLanguage: sent['accept-language'],
    ifNoneMatch: sent['if-none-match'],
  })
  output.send({ status, headers, body })
}
