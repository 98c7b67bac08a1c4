import { adapterIdsOf, keepsUsers, offersDemoWallet, type Settings } from '../service/config.ts'
import { languages } from '../shared/languages.ts'
import type { ServiceOptions, ServicePart } from '../shared/service-options.ts'
import { type Route, requireHttpMethod } from './exchange.ts'
import { readPageTexts } from './page-texts.ts'

/** The settings that the options tell. */
export type OptionsSettings = Pick<
  Settings,
  | 'adapters'
  | 'demoWallet'
  | 'publicUrl'
  | 'tlsCert'
  | 'textsFile'
  | 'pages'
  | 'orderStartKeys'
  | 'sessionHost'
  | 'resolveLogin'
  | 'accessTokenAudiences'
  | 'oidcClients'
>

/** Time in seconds for which the options may be cached. */
const maxAgeSeconds = 300

/** The route of the service's options: what a page has to know before it offers a sign-in. They are public. */
export function optionsRoute(settings: OptionsSettings): Route {
  const options: ServiceOptions = {
    adapters: adapterIdsOf(settings),
    demoWallet: offersDemoWallet(settings),
    languages: spokenLanguages(settings),
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
export function spokenLanguages({ pages, textsFile }: Pick<OptionsSettings, 'pages' | 'textsFile'>): readonly string[] {
  const texts = readPageTexts(pages ? textsFile : undefined)
  return [...new Set([...languages, ...(texts === '' ? [] : Object.keys(JSON.parse(texts) as object))])]
}

function partsOf(settings: OptionsSettings): readonly ServicePart[] {
  const { pages } = settings
  const hasUsers = keepsUsers(settings)
  const has: Readonly<Record<ServicePart, boolean>> = {
    pages,
    account: pages && hasUsers,
    wallets: hasUsers,
    'open-orders': settings.orderStartKeys === undefined,
    'access-tokens': settings.accessTokenAudiences !== undefined,
    oidc: settings.oidcClients !== undefined,
  }
  return (Object.keys(has) as ServicePart[]).filter((part) => has[part])
}
