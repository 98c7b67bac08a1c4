import { type PageFiles, readPageFiles } from '../http/page-files.ts'
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

/** Path of the page's assets under the base path, which are those of the sign-in page. */
const assets = '/sign-in'

/** Reads the built page; if it is not built, the answer says so. */
export function issuerPage(looks: PageLooks, files: PageFiles | undefined = readPageFiles()): ShowPage {
  const texts = readPageTexts(looks.textsFile)
  return (status, content) => {
    const page = files?.page('issuer', {
      appName: looks.appName,
      claimUrlTemplate: '',
      basePath: looks.basePath,
      assetsPath: looks.basePath + assets,
      adapterIds: [],
      demoWallet: false,
      logoUrl: looks.logoUrl,
      accentColor: looks.accentColor,
      texts,
      content: JSON.stringify(content),
    })
    if (page === undefined) {
      return {
        status: 503,
        headers: { 'content-type': 'text/plain; charset=utf-8' },
        body: 'The pages are not built.\n',
      }
    }
    return { status, headers: page.headers, body: page.body }
  }
}
