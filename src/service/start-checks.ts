import { randomBytes } from 'node:crypto'
import type { Logger } from '../base/log.ts'
import { sharedKeysWarning } from '../core/wallet/adapters.ts'
import { KeyFiles } from '../http/port/tls.ts'
import type { WebhookTarget } from '../observe/audit/webhook.ts'
import type { Store } from '../store/store.ts'
import type { Settings } from './config.ts'

/** Throws a `TypeError` if workers are asked for in code. */
export function requireOneProcess({ workers }: Settings): void {
  if (workers === 1) return
  throw new TypeError(
    `workers (COUNTERSIGN_WORKERS) must be 1 in code, not ${workers}: only the command starts workers, because it knows what each has to run; start several processes of your own, with Redis`,
  )
}

/** Where audit events are delivered to, if they are. */
export function webhookTarget({ webhook: { url, secret } }: Settings): WebhookTarget | undefined {
  if (url !== undefined && secret !== undefined) return { url, secrets: secret }
  if (url === undefined && secret === undefined) return undefined
  throw new TypeError(
    'webhook.url (COUNTERSIGN_WEBHOOK_URL) and webhook.secret (COUNTERSIGN_WEBHOOK_SECRET) need each other: set both, or neither',
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

/**
 * The secret that the store keeps, made at the first start. A shared store keeps none: its readers could sign tokens.
 */
export async function keptSecrets(store: Store): Promise<string[]> {
  // Not `if (store.shared)`: a store written in JavaScript may lack the property.
  if (store.shared !== false) {
    throw new TypeError(
      'secret (COUNTERSIGN_SECRET) must be set if the store is shared, as Redis is; every instance needs the same one, such as the output of: openssl rand -base64 32',
    )
  }
  const key = 'secret'
  await store.create(key, randomBytes(32).toString('base64url'), 'forever')
  const kept = await store.get(key)
  if (kept === undefined) throw new Error('the store does not return the secret that was just stored in it')
  return [kept.value]
}

/** What {@link warnOfSettings} looks at beside the settings. */
interface Setup {
  readonly store: Store
  readonly adapterIds: readonly string[]
  readonly log: Logger
}

/** Warns of settings that are allowed and can be a mistake. */
export function warnOfSettings(settings: Settings, { store, adapterIds, log }: Setup): void {
  if (!settings.enforceOrigin) {
    log.warn(
      'enforceOrigin is off: any web page can act for its visitors on this service; use this in local tests only',
    )
  }
  warnOfOwnOrigin(settings, log)
  warnOfNonceStore(settings, store, log)
  const sharedKeys = sharedKeysWarning(adapterIds)
  if (sharedKeys !== undefined) log.warn(sharedKeys)
}

/** Without the service's own origin among them, its own pages can sign in no user, and approve no order's sign-in. */
function warnOfOwnOrigin({ enforceOrigin, publicUrl, trustedOrigins, pages }: Settings, log: Logger): void {
  if (!enforceOrigin || !pages.served || publicUrl === undefined || trustedOrigins === undefined) return
  if (typeof trustedOrigins !== 'function' && !trustedOrigins.includes(publicUrl)) {
    log.warn(
      "trustedOrigins (COUNTERSIGN_TRUSTED_ORIGINS) leaves out the service's own origin, so its pages cannot sign users in; add it, or turn off pages",
      { origin: publicUrl },
    )
  }
}

/** Warns if nonces are single-use in one instance only, which the contract of a nonce store allows. */
function warnOfNonceStore({ nonceStore }: Settings, store: Store, log: Logger): void {
  if (nonceStore === undefined || nonceStore.take !== undefined || store.shared === true) return
  log.warn(
    `nonceStore has no take, and the store (${store.description}) is not shared: with more than one instance, each of them accepts a nonce once; run a single instance, give nonceStore an atomic take, or use a shared store such as Redis (COUNTERSIGN_STORE)`,
  )
}
