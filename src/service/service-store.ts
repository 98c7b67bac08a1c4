import { type Logger, silentLogger } from '../base/log.ts'
import { withKeyPrefix } from '../store/map-store.ts'
import { openStore, type RedisTls } from '../store/open.ts'
import { withFewConnections } from '../store/postgres/url.ts'
import type { Store } from '../store/store.ts'
import type { Settings } from './config.ts'

/** The store that the settings name, with the prefix of their keys. */
export interface ServiceStore {
  readonly store: Store
  /** Closes the store, unless it was passed in opened. */
  close(): Promise<void>
}

/** Opens the store of a service. Rejects with a `StoreOpenError` that says what to change if that fails. */
export async function openServiceStore(settings: Settings, log: Logger): Promise<ServiceStore> {
  const { store: given, keyPrefix } = settings
  if (typeof given !== 'string') return { store: withKeyPrefix(given, keyPrefix), close: async () => {} }
  const store = await openStore(given, { log, keyPrefix, redisTls: redisTlsOf(settings) })
  return { store, close: () => store.close() }
}

/** Opens the store as commands do that are not the service: without log lines, and over few connections. */
export function openCommandStore(settings: Settings): Promise<ServiceStore> {
  const { store } = settings
  return openServiceStore(
    typeof store === 'string' ? { ...settings, store: withFewConnections(store) } : settings,
    silentLogger,
  )
}

/** What the settings say of TLS to Redis. */
export function redisTlsOf(settings: Settings): RedisTls {
  const { tlsCa, tlsCert, tlsKey, tlsServerName } = settings.redis
  return { ca: tlsCa, cert: tlsCert, key: tlsKey, serverName: tlsServerName }
}
