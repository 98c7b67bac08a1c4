import type { GenericEndpointContext } from '@better-auth/core'
import {
  answerWithFile,
  continuePath,
  type PageFiles,
  type PageValues,
  readPageFiles,
  type ServedFile,
} from '../http/page-files.ts'
import { isLoopbackHttp } from '../service/config.ts'
import { CountersignError } from '../shared/errors.ts'
import { apiError } from './failures.ts'
import { basePathOf, ownOrigin } from './request.ts'

/** Path of the approval page under Better Auth's base path. */
export const approvalPath = '/cross-device/claim/:orderId'

/** Path of the same page for an order that is continued in another browser. */
export const continuePagePath = `${continuePath}/:ticket` as const

/** Path of what the page is made of. */
export const assetPath = '/cross-device/pages/:file'

/** The claim URL template for the page at {@link approvalPath}. */
export function ownClaimUrlTemplate(ctx: GenericEndpointContext): string {
  return `{origin}${basePathOf(ctx.context)}/cross-device/claim/{orderId}#token={claimToken}`
}

/** The address of the page at {@link continuePagePath} for a ticket. */
export function ownHandOverUrl({ context }: GenericEndpointContext, ticket: string): string {
  return `${ownOrigin(context)}${basePathOf(context)}${continuePath}/${ticket}`
}

/** What of the page's values the plugin's options decide: the accepted adapters, and how the page looks and speaks. */
export type PageLook = Pick<PageValues, 'adapterIds' | 'logoUrl' | 'accentColor' | 'texts'>

/**
 * Serves the approval page under Better Auth's base path, with the headers that it has in the service. Opening it reads
 * and changes no order. It offers the demo wallet if Better Auth's own address is http at a loopback address, and
 * nowhere else.
 */
export class ApprovalPage {
  readonly #look: PageLook
  readonly #folders: readonly URL[] | undefined
  #files: PageFiles | undefined

  /** `folders` are where the built pages may be. */
  constructor(look: PageLook, folders?: readonly URL[]) {
    this.#look = look
    this.#folders = folders
  }

  /** Answers a request for the page. NOT_ENABLED if the pages are not built. */
  page(ctx: GenericEndpointContext, appName: string): Response {
    const basePath = basePathOf(ctx.context)
    const page = this.#read()?.page('approve', {
      appName,
      claimUrlTemplate: ownClaimUrlTemplate(ctx),
      basePath,
      assetsPath: `${basePath}/cross-device/pages`,
      demoWallet: isLoopbackHttp(ownOrigin(ctx.context)),
      ...this.#look,
    })
    if (page !== undefined) return answer(ctx, page)
    // A build may be running, so the next request looks again.
    this.#files = undefined
    throw apiError(
      new CountersignError(
        'NOT_ENABLED',
        'The approval page of this server is not built. Run: npm run build in the folder of the package countersign; or serve a page of your own, and set the options pages and claimUrlTemplate of crossDevice',
      ),
    )
  }

  /** Answers a request for a script, a style or an icon. */
  asset(ctx: GenericEndpointContext, name: string): Response {
    const file = this.#read()?.assets.get(name)
    if (file === undefined) throw apiError(new CountersignError('ROUTE_NOT_FOUND', 'The page has no such file'))
    return answer(ctx, file)
  }

  /** Read at the first request, because most processes that load an application's Better Auth never serve the page. */
  #read(): PageFiles | undefined {
    this.#files ??= readPageFiles(this.#folders)
    return this.#files
  }
}

function answer({ request, headers: given }: GenericEndpointContext, file: ServedFile): Response {
  const sent = request?.headers ?? given
  const { status, headers, body } = answerWithFile(file, {
    method: request?.method,
    // Plain: Better Auth's answers go through a framework, which compresses them all or none.
    acceptEncoding: undefined,
    ifNoneMatch: sent?.get('if-none-match') ?? undefined,
  })
  return new Response(body === undefined ? null : new Uint8Array(body), { status, headers })
}
