import type { AuthContext } from '@better-auth/core'
import { Keyring } from '../base/token.ts'
import { checkAdapters, walletAdapters } from '../core/wallet/adapters.ts'
import { chooseVerifier } from '../core/wallet/native.ts'
import { Prover } from '../core/wallet/prover.ts'
import type { WalletAdapter } from '../core/wallet/wallet.ts'
import { chooseRecovery } from '../core/wallet/webassembly.ts'
import { defaultLimits, type RateLimitGroup } from '../limits/limits.ts'
import { type CountersignOptions, resolveSettings, type Settings } from '../service/config.ts'

/** Options of both plugins. They are options of Countersign, with the same meanings, defaults and bounds. */
export interface WalletOptions
  extends Pick<
    CountersignOptions,
    'enforceOrigin' | 'adapters' | 'evmRpc' | 'verifier' | 'resolveLogin' | 'syncAddressToUser' | 'syncPublicKeyToUser'
  > {
  /**
   * Name at the top of every message that a wallet signs, 1 to 80 characters. Default: Better Auth's `appName`, or
   * Countersign.
   */
  appName?: string
}

/** The options of a plugin, checked and with their defaults. */
export interface WalletSettings extends Omit<Settings, 'appName'> {
  readonly appName: string | undefined
  /** What the option `adapters` names. */
  readonly walletAdapters: readonly WalletAdapter[]
  readonly prover: Prover
  /** Ids of the configured wallet adapters. Accounts of these providers are wallets. */
  readonly adapterIds: ReadonlySet<string>
}

/** Checks a plugin's options when it is created. Throws a `TypeError` of one line if one does not fit. */
export function walletSettings(options: CountersignOptions): WalletSettings {
  const settings = resolveSettings(options)
  if (settings.people !== undefined || settings.admit === 'people') {
    throw new TypeError('people and admit do nothing in Better Auth, which keeps users and sessions: use resolveLogin')
  }
  const recovery = chooseRecovery(settings.adapters)
  const adapters = walletAdapters(settings.adapters, { ...settings, recovery })
  return {
    ...settings,
    appName: options.appName,
    walletAdapters: adapters,
    prover: new Prover(adapters, chooseVerifier(settings.verifier)),
    adapterIds: new Set(adapters.map(({ id }) => id)),
  }
}

/** Lets a plugin's adapters check what they need, when Better Auth starts: see {@link checkAdapters}. */
export async function checkAtStart(settings: WalletSettings, { logger }: AuthContext): Promise<void> {
  await checkAdapters(settings.walletAdapters, settings, (text, fields) =>
    logger.warn(text, ...(fields === undefined ? [] : [fields])),
  )
}

/** The name at the top of every message that a wallet signs. */
export function appNameOf(settings: WalletSettings, context: AuthContext): string {
  return settings.appName ?? context.options.appName ?? 'Countersign'
}

/** Better Auth's secrets: the one it signs with first, then those it was configured with to verify. */
export function keyringOf({ secret, secretConfig }: AuthContext): Keyring {
  if (typeof secretConfig === 'string') return new Keyring([secret])
  const { keys, legacySecret } = secretConfig
  const all = [secret, ...keys.values(), ...(legacySecret === undefined ? [] : [legacySecret])]
  return new Keyring([...new Set(all)])
}

/** A rule of a plugin for Better Auth's rate limiter, which counts each path and client address for itself. */
export interface RateLimitRule {
  /** Seconds. */
  window: number
  max: number
  pathMatcher: (path: string) => boolean
}

/** The allowance that a group of calls has in the service, as a rule for Better Auth's rate limiter. */
export function rateLimit(group: RateLimitGroup, pathMatcher: (path: string) => boolean): RateLimitRule {
  return { window: 60, max: defaultLimits[group], pathMatcher }
}

/** A rule for calls that Better Auth's rate limiter lets through however many they are. */
export function unlimited(pathMatcher: (path: string) => boolean): RateLimitRule {
  return { window: 60, max: Number.MAX_SAFE_INTEGER, pathMatcher }
}
