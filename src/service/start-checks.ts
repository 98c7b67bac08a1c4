import type { Logger } from '../base/log.ts'
import { randomText } from '../base/token.ts'
import type { Tracing } from '../base/tracing.ts'
import { People, readPeopleFile } from '../core/users/people.ts'
import { sharedKeysWarnings } from '../core/wallet/adapters.ts'
import type { WalletAdapter } from '../core/wallet/wallet.ts'
import { KeyFiles } from '../http/port/tls.ts'
import type { WebhookTarget } from '../observe/audit/webhook.ts'
import type { Store } from '../store/store.ts'
import { confirmationCodeLine, type ServiceAddress } from './address.ts'
import type { Settings } from './config.ts'

/** Throws a `TypeError` if only people of a file are to sign in and cannot, or someone else keeps the sessions. */
export function requirePeople({ people, admit, sessionHost }: Settings): void {
  if (admit === 'people' && people === undefined) {
    throw new TypeError('admit (COUNTERSIGN_ADMIT) is people, which needs the file of people (COUNTERSIGN_PEOPLE)')
  }
  if (people !== undefined && sessionHost !== undefined) {
    throw new TypeError('people (COUNTERSIGN_PEOPLE) and admit do nothing with sessionHost; leave them out')
  }
}

/** Throws a `TypeError` if clients may come with documents, and there is no issuer that they could come to. */
export function requireIssuer({ oidc: { clients, clientDocuments } }: Settings): void {
  if (clientDocuments === undefined || clients !== undefined) return
  throw new TypeError(
    'oidc.clientDocuments (COUNTERSIGN_OIDC_CLIENT_DOCUMENTS) needs the clients file (COUNTERSIGN_OIDC_CLIENTS), ' +
      'which may be {"clients": []}',
  )
}

/** What anyone with a wallet gets into, as a line for people; `undefined` if that is nothing. */
export function openToAnyone(settings: Settings, openClients = 0): string | undefined {
  const { admit, resolveLogin, sessionHost, trustProxy, oidc } = settings
  // Otherwise a list, or the application, decides who signs in.
  if (admit === 'people' || resolveLogin !== undefined || sessionHost !== undefined) return undefined
  const places = [
    ...(trustProxy === 0 ? [] : ['what forward auth protects without groups']),
    ...(openClients === 0 ? [] : [`${openClients} of the OpenID Connect clients, which have no groups`]),
    ...(oidc.clientDocuments === undefined ? [] : ['clients that come with a document, which have no groups']),
  ]
  return places.length === 0 ? undefined : `anyone with a wallet gets into ${places.join(', and into ')}`
}

/** Where audit events are delivered to, if they are. */
export function webhookTarget({ webhook: { url, secret } }: Settings): WebhookTarget | undefined {
  if (url !== undefined && secret !== undefined) return { url, secrets: secret }
  if (url === undefined && secret === undefined) return undefined
  throw new TypeError(
    'webhook.url (COUNTERSIGN_WEBHOOK_URL) and webhook.secret (COUNTERSIGN_WEBHOOK_SECRET) need each other: set ' +
      'both, or neither',
  )
}

/** The files of the port's certificate and key, read; `undefined` if it takes no TLS. */
export async function openKeyFiles({ tls: { cert, key } }: Settings, log: Logger): Promise<KeyFiles | undefined> {
  const certName = 'tls.cert (COUNTERSIGN_TLS_CERT)'
  const keyName = 'tls.key (COUNTERSIGN_TLS_KEY)'
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) throw new TypeError(`${certName} and ${keyName} must be set together`)
  return await KeyFiles.open({ cert: { setting: certName, file: cert }, key: { setting: keyName, file: key }, log })
}

/** What the people file says now; without one, there is no one in it. */
export async function peopleOf(
  { people, admit }: Pick<Settings, 'people' | 'admit'>,
  adapters: readonly WalletAdapter[],
): Promise<People> {
  return people === undefined
    ? new People()
    : await readPeopleFile(people, { adapters, isRequired: admit === 'people' })
}

/**
 * The secret that the store keeps, made at the first start. A shared store keeps none: its readers could sign tokens.
 */
export async function keptSecrets(store: Store): Promise<string[]> {
  // Not `if (store.shared)`: a store written in JavaScript may lack the property.
  if (store.shared !== false) {
    throw new TypeError(
      'secret (COUNTERSIGN_SECRET) must be set if the store is shared, as Redis and PostgreSQL are; every instance ' +
        'needs the same one, such as the output of: openssl rand -base64 32',
    )
  }
  await store.create('secret', randomText(32), 'forever')
  const kept = await store.get('secret')
  if (kept === undefined) throw new Error('the store does not return the secret that was just stored in it')
  return [kept.value]
}

/** What {@link warnOfSettings} checks in addition to the settings. */
interface StartFacts {
  readonly address: ServiceAddress
  readonly store: Store
  readonly adapters: readonly WalletAdapter[]
  readonly log: Logger
}

/** Warns of settings that are allowed and can be a mistake, and of a default that depends on the address. */
export function warnOfSettings(settings: Settings, { address, store, adapters, log }: StartFacts): void {
  if (!settings.enforceOrigin) {
    log.warn(
      'enforceOrigin is off: any web page can act for its visitors on this service; use this in local tests only',
    )
  }
  const codes = confirmationCodeLine(settings.confirmationCode, address)
  if (codes !== undefined) log.warn(codes)
  warnOfOwnOrigin(settings, log)
  warnOfNonceStore(settings, store, log)
  for (const warning of sharedKeysWarnings(adapters)) log.warn(warning)
}

/** Without the service's own origin among them, its own pages can sign in no user, and approve no order's sign-in. */
function warnOfOwnOrigin({ enforceOrigin, publicUrl, trustedOrigins, pages }: Settings, log: Logger): void {
  if (!enforceOrigin || !pages.served || publicUrl === undefined || trustedOrigins === undefined) return
  if (typeof trustedOrigins !== 'function' && !trustedOrigins.includes(publicUrl)) {
    log.warn(
      "trustedOrigins (COUNTERSIGN_TRUSTED_ORIGINS) leaves out the service's own origin, so its pages cannot " +
        'sign users in; add it, or turn off pages',
      { origin: publicUrl },
    )
  }
}

/** Warns if nonces are single-use in one instance only, which the contract of a nonce store allows. */
function warnOfNonceStore({ nonceStore }: Settings, store: Store, log: Logger): void {
  if (nonceStore === undefined || nonceStore.take !== undefined || store.shared === true) return
  log.warn(
    `nonceStore has no take, and the store (${store.description}) is not shared: with more than one instance, ` +
      'each of them accepts a nonce once; run a single instance, give nonceStore an atomic take, or use a shared ' +
      'store such as Redis (COUNTERSIGN_STORE)',
  )
}

/**
 * The tracing that is asked for, loaded on demand, because most services make no traces. Warns if no tracer is
 * registered. Rejects with a `TypeError` of one line if the package for it is not installed.
 */
export async function loadTracing({ tracing: setting }: Settings, log: Logger): Promise<Tracing | undefined> {
  if (setting === 'off') return undefined
  if (typeof setting !== 'string') return setting
  const { trace, ProxyTracerProvider } = await loadApi()
  const provider = trace.getTracerProvider()
  if (provider instanceof ProxyTracerProvider && provider.getDelegateTracer('countersign') === undefined) {
    log.warn(
      'tracing (COUNTERSIGN_TRACING) is on, but no OpenTelemetry SDK is registered, so that there are no traces; ' +
        'register one before the service is made, such as with: NODE_OPTIONS="--import ./otel.mjs"',
    )
  }
  const { openTelemetry } = await import('../observe/opentelemetry/index.ts')
  return openTelemetry({ callers: setting === 'link' ? 'link' : 'continue' })
}

async function loadApi(): Promise<typeof import('@opentelemetry/api')> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    throw new TypeError(
      'tracing (COUNTERSIGN_TRACING) needs the package @opentelemetry/api, which is not installed: npm install ' +
        '@opentelemetry/api',
      { cause },
    )
  }
}
