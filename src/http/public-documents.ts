import { type ServiceOptions, type ServicePart, serviceOptionsPath } from '../shared/rest-paths.ts'
import { languages } from '../shared/texts/languages.ts'
import { letAnyPageRead } from './cors.ts'
import { type Route, requireHttpMethod } from './exchange.ts'
import { documentPath, type OpenApiSettings, openApiRoute } from './openapi.ts'
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

/** Holder of the key set, which changes with the secrets. */
export interface KeySetHolder {
  readonly keySet: { readonly keys: readonly object[] }
}

/** The usual path of key sets. */
export const keySetPath = '/.well-known/jwks.json'

/**
 * Time for which the key set may be cached, in seconds. A new secret must be in the list of every instance for this
 * long before the first token is signed with it.
 */
const keySetMaxAgeSeconds = 300

/** A public document, and its label in reports. */
interface PublicDocument {
  readonly label: 'key set' | 'openapi' | 'options'
  readonly serve: Route
}

/**
 * The documents that pages of all origins may read, by path: the OpenAPI document and the key set at the root and under
 * the base path, and the options. There is no key set if the service issues no access tokens: an application that
 * mounts it can have a key set of its own.
 */
export function publicDocuments(
  settings: OptionsSettings & OpenApiSettings,
  keys: KeySetHolder | undefined,
): ReadonlyMap<string, PublicDocument> {
  const { basePath } = settings
  const openApi: PublicDocument = { label: 'openapi', serve: openApiRoute(settings) }
  const keySet: PublicDocument | undefined = keys && { label: 'key set', serve: keySetRoute(keys) }
  return new Map([
    ...[documentPath, basePath + documentPath].map((path) => [path, openApi] as const),
    ...(keySet === undefined ? [] : [keySetPath, basePath + keySetPath].map((path) => [path, keySet] as const)),
    [basePath + serviceOptionsPath, { label: 'options', serve: optionsRoute(settings) }],
  ])
}

function keySetRoute(keys: KeySetHolder): Route {
  const headers = { 'content-type': 'application/json', 'cache-control': `public, max-age=${keySetMaxAgeSeconds}` }
  return (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    letAnyPageRead(exchange)
    exchange.output.send({ status: 200, headers, body: JSON.stringify(keys.keySet) })
  }
}

/** The route of the service's options: what a page has to know before it offers a sign-in. They are public. */
function optionsRoute(settings: OptionsSettings): Route {
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
