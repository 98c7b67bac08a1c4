/** Countersign inside Better Auth. Everything that is not named here is private. */

export type { NonceStore } from '../core/sign-in/nonce.ts'
export type { ProvenIdentity, WalletAdapter } from '../core/wallet/wallet.ts'
export type * from '../shared/orders.ts'
export type * from '../shared/session.ts'
export { openStore, type RedisTls, type StoreOptions } from '../store/open.ts'
export type { Store } from '../store/store.ts'
export { type CrossDeviceOptions, crossDevice } from './cross-device.ts'
export type { ErrorCode } from './failures.ts'
export { betterAuthHost, type WalletAuth } from './host.ts'
export type { WalletSchema } from './schema.ts'
export type { RateLimitRule, WalletOptions } from './settings.ts'
export { type LinkedWallet, type WalletSignInOptions, walletSignIn } from './wallet-sign-in.ts'
