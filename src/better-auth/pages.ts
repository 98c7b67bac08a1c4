import type { GenericEndpointContext } from '@better-auth/core'
import { answerWithFile, continuePath, loadPageFiles, type PageFiles, type ServedFile } from '../http/page-files.ts'
import { isLoopbackHttp } from '../service/config.ts'
import { CountersignError } from '../shared/errors.ts'
import type { WalletValues } from '../shared/page-values.ts'
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
export type PageLook = Pick<WalletValues, 'adapterIds' | 'logoUrl' | 'logoHasName' | 'accentColor' | 'texts'>

/**
 * Serves the approval page under Better Auth's base path, with the headers that it has in the service. Opening it reads
 * and changes no order. It offers the demo wallet if Better Auth's own address is http at a loopback address, and
 * nowhere else.
 */
export class ApprovalPage {
  readonly #look: PageLook
  readonly #load: () => Promise<PageFiles | undefined>
  /** Those that were made, by what they were made of: with the demo wallet and without. */
  readonly #made = new Map<string, ServedFile>()

  /** `load` loads the built pages, at each request: most processes that load Better Auth never serve the page. */
  constructor(look: PageLook, load: () => Promise<PageFiles | undefined> = loadPageFiles) {
    this.#look = look
    this.#load = load
  }

  /** Answers a request for the page. NOT_ENABLED if the pages are not built. */
  async page(ctx: GenericEndpointContext, appName: string): Promise<Response> {
    const basePath = basePathOf(ctx.context)
    const values = {
      appName,
      claimUrlTemplate: ownClaimUrlTemplate(ctx),
      basePath,
      accountPath: '',
      inboxPath: '',
      demoWallet: isLoopbackHttp(ownOrigin(ctx.context)),
    }
    const key = JSON.stringify(values)
    const serving = { assetsPath: `${basePath}/cross-device/pages` }
    const page = this.#made.get(key) ?? (await this.#load())?.page('approve', { ...values, ...this.#look }, serving)
    if (page !== undefined) {
      this.#made.set(key, page)
      return answer(ctx, page)
    }
    throw apiError(
      new CountersignError(
        'NOT_ENABLED',
        'The approval page of this server is not built. Run: npm run build in the folder of the package ' +
          'countersign; or serve a page of your own, and set the options pages and claimUrlTemplate of crossDevice',
      ),
    )
  }

  /** Answers a request for a script, a style or an icon. */
  async asset(ctx: GenericEndpointContext, name: string): Promise<Response> {
    const file = (await this.#load())?.assets.get(name)
    if (file === undefined) throw apiError(new CountersignError('ROUTE_NOT_FOUND', 'The page has no such file'))
    return answer(ctx, file)
  }
}

function answer({ request, headers: given }: GenericEndpointContext, file: ServedFile): Response {
  const sent = request?.headers ?? given
  const { status, headers, body } = answerWithFile(file, {
    method: request?.method,
    // Plain: Better Auth's answers go through a framework, which compresses them all or none.
    acceptEncoding: undefined,
    acceptLanguage: sent?.get('accept-language') ?? undefined,
    ifNoneMatch: sent?.get('if-none-match') ?? undefined,
  })
  return new Response(body === undefined ? null : new Uint8Array(body), { status, headers })
}
