import type { AuthContext } from '@better-auth/core'
import { type CountersignOptions, resolveSettings, type Settings } from '../config.ts'
import type { Prover } from '../sign-in.ts'
import { Keyring } from '../token.ts'
import { proveIdentity, walletAdapters } from '../wallet/adapters.ts'
import { chooseVerifier } from '../wallet/native.ts'
import type { SignatureVerifier, WalletAdapter } from '../wallet/wallet.ts'

/** What both plugins can be told: options of Countersign, with the same meanings, defaults and bounds. */
export interface WalletOptions
  extends Pick<
    CountersignOptions,
    'enforceOrigin' | 'adapters' | 'verifier' | 'resolveLogin' | 'syncAddressToUser' | 'syncPublicKeyToUser'
  > {
  /**
   * The name at the top of every message that a wallet signs, 1 to 80 characters. Default: Better Auth's `appName`, or
   * Countersign.
   */
  appName?: string
}

/** The options of either plugin, checked and completed. */
export interface WalletSettings extends Omit<Settings, 'adapters' | 'appName' | 'verifier'> {
  readonly appName: string | undefined
  readonly adapters: readonly WalletAdapter[]
  readonly verifier: SignatureVerifier
}

/** Checks a plugin's options, all of them at its making; a `TypeError` of one line when one does not fit. */
export function walletSettings(options: CountersignOptions): WalletSettings {
  const settings = resolveSettings(options)
  return {
    ...settings,
    appName: options.appName,
    adapters: walletAdapters(settings.adapters),
    verifier: chooseVerifier(settings.verifier),
  }
}

/** The name at the top of every message that a wallet signs. */
export function appNameOf(settings: WalletSettings, context: AuthContext): string {
  return settings.appName ?? context.options.appName ?? 'Countersign'
}

/** Checks proofs with the plugin's adapters and verifier. */
export function proverOf({ adapters, verifier }: WalletSettings): Prover {
  return (message, proof) => {
    const { adapterId, publicKeyHex, address } = proveIdentity({ adapters, verifier, message, ...proof })
    return { adapterId, publicKeyHex, address }
  }
}

/** Better Auth's secrets: the one it signs with first, then those it was configured with to verify. */
export function keyringOf({ secret, secretConfig }: AuthContext): Keyring {
  if (typeof secretConfig === 'string') return new Keyring([secret])
  const { keys, legacySecret } = secretConfig
  const all = [secret, ...keys.values(), ...(legacySecret === undefined ? [] : [legacySecret])]
  return new Keyring([...new Set(all)])
}
