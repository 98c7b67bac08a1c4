import { type Logger, silentLogger } from '../base/log.ts'
import { withKeyPrefix } from '../store/map-store.ts'
import { openStore, type RedisTls } from '../store/open.ts'
import { withFewConnections } from '../store/postgres/url.ts'
import type { Store } from '../store/store.ts'
import type { Settings } from './config.ts'
import { guardedStore, requireUsable } from './copy-mark.ts'

/** The store that the settings name, with the prefix of their keys. */
export interface ServiceStore {
  readonly store: Store
  /** Closes the store, unless it was passed in opened. */
  close(): Promise<void>
}

/**
 * Opens the store of a service. Rejects with a `StoreOpenError` that says what to change if that fails, or if
 * `admin copy` has marked the store.
 */
export async function openServiceStore(settings: Settings, log: Logger): Promise<ServiceStore> {
  const { store: given, keyPrefix } = settings
  const isNamed = typeof given === 'string'
  const store = isNamed
    ? await openStore(given, { log, keyPrefix, redisTls: redisTlsOf(settings) })
    : withKeyPrefix(given, keyPrefix)
  const close = async (): Promise<void> => void (isNamed && (await store.close()))
  try {
    await requireUsable(store)
    return { store: guardedStore(store, log), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Opens the store as commands do that are not the service: without log lines, and over few connections. */
export function openCommandStore(settings: Settings): Promise<ServiceStore> {
  const { store } = settings
  return openServiceStore(
    typeof store === 'string' ? { ...settings, store: withFewConnections(store) } : settings,
    silentLogger,
  )
}

/** Opens the store that the settings name, also if `admin copy` has marked it. */
export async function openMarkedStore(settings: Settings): Promise<ServiceStore> {
  const { store: named } = settings
  if (typeof named !== 'string') throw new TypeError('the store must be named by its address')
  // What the settings say of TLS is for the one of two stores that has it.
  const redisTls = named.startsWith('rediss') ? redisTlsOf(settings) : {}
  const options = { log: silentLogger, keyPrefix: settings.keyPrefix, redisTls }
  const store = await openStore(withFewConnections(named), options)
  return { store, close: () => store.close() }
}

/** What the settings say of TLS to Redis. */
export function redisTlsOf(settings: Settings): RedisTls {
  const { tlsCa, tlsCert, tlsKey, tlsServerName } = settings.redis
  return { ca: tlsCa, cert: tlsCert, key: tlsKey, serverName: tlsServerName }
}
