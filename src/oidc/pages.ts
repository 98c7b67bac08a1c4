import type { PageFiles } from '../http/page-files.ts'
import { readPageTexts } from '../http/page-texts.ts'
import type { LibraryAnswer } from './bridge.ts'

/** What the page shows, which its script reads. */
export type PageContent =
  | {
      readonly kind: 'consent'
      readonly client: string
      /** Host of the redirect URI; absent if it leads to an application on the device. */
      readonly host: string | undefined
      /** What the client asks for: scopes, those of a resource with its address behind a space. */
      readonly scopes: readonly string[]
      readonly wallet: string
      readonly sessionId: string
    }
  | { readonly kind: 'logout'; readonly ticket: string }
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'error'; readonly error: string; readonly description: string }
  /** A failure that is not the application's: a reason of ours, such as RATE_LIMITED. */
  | { readonly kind: 'failure'; readonly reason: string }

/** Settings that the pages show. */
export interface PageLooks {
  readonly appName: string
  readonly basePath: string
  readonly logoUrl?: string | undefined
  readonly accentColor?: string | undefined
  readonly textsFile?: string | undefined
}

/** Makes the issuer's page with a content. */
export type ShowPage = (status: number, content: PageContent) => LibraryAnswer

/** Makes the issuer's page of the built pages; without them, the answer says so. */
export function issuerPage(
  { appName, basePath, logoUrl, accentColor, textsFile }: PageLooks,
  files: PageFiles | undefined,
): ShowPage {
  const texts = readPageTexts(textsFile)
  // The assets are those of the sign-in page.
  const looks = { appName, basePath, assetsPath: `${basePath}/sign-in`, logoUrl, accentColor, texts }
  const empty = { claimUrlTemplate: '', adapterIds: [], demoWallet: false }
  const page = files?.issuerPage({ ...looks, ...empty })
  return (status, content) => {
    if (page !== undefined) return { status, ...page(JSON.stringify(content)) }
    const headers = { 'content-type': 'text/plain; charset=utf-8' }
    return { status: 503, headers, body: 'The pages are not built.\n' }
  }
}
