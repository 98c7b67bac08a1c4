import type { ServiceOptions, ServicePart } from '../shared/rest-paths.ts'
import { languages } from '../shared/texts/languages.ts'
import { type Route, requireHttpMethod } from './exchange.ts'
import { readPageTexts } from './page-texts.ts'
import type { PageSettings } from './pages.ts'

/** The settings in the options. */
export interface OptionsSettings
  extends Pick<PageSettings, 'appName' | 'pages' | 'adapterIds' | 'demoWallet' | 'keepsUsers' | 'startsOrders'> {
  /** Whether access tokens are issued. */
  readonly accessTokensIssued: boolean
  /** Whether there is an OpenID Connect issuer. */
  readonly hasIssuer: boolean
}

/** Time in seconds for which the options may be cached. */
const maxAgeSeconds = 300

/** The route of the service's options: what a page has to know before it offers a sign-in. They are public. */
export function optionsRoute(settings: OptionsSettings): Route {
  const options: ServiceOptions = {
    appName: settings.appName,
    adapters: settings.adapterIds,
    demoWallet: settings.demoWallet,
    languages: spokenLanguages(settings.pages),
    parts: partsOf(settings),
  }
  const body = JSON.stringify(options)
  const headers = { 'content-type': 'application/json', ...optionsHeaders }
  return (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    exchange.output.send({ status: 200, headers, body })
  }
}

/** Headers of the options: the same for pages of all origins, so that a cache keeps one answer. */
export const optionsHeaders = {
  'cache-control': `public, max-age=${maxAgeSeconds}`,
  'access-control-allow-origin': '*',
} as const

/** The languages of the pages, if there are some: those of the service, and those of the texts file. */
export function spokenLanguages({ served, textsFile }: PageSettings['pages']): readonly string[] {
  return [...new Set([...languages, ...Object.keys(readPageTexts(served ? textsFile : undefined) ?? {})])]
}

function partsOf(settings: OptionsSettings): readonly ServicePart[] {
  const { keepsUsers, pages } = settings
  const has: Readonly<Record<ServicePart, boolean>> = {
    pages: pages.served,
    account: pages.served && keepsUsers,
    wallets: keepsUsers,
    'open-orders': settings.startsOrders,
    'access-tokens': settings.accessTokensIssued,
    oidc: settings.hasIssuer,
  }
  return (Object.keys(has) as ServicePart[]).filter((part) => has[part])
}
