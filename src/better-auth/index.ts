/** Countersign inside Better Auth. Everything that is not named here is private. */

export { betterAuthHost } from '../host/better-auth.ts'
export type { ProvenIdentity } from '../host/host.ts'
export type { NonceStore } from '../nonce.ts'
export { openStore } from '../store/open.ts'
export type { Store } from '../store/store.ts'
export type { WalletAdapter } from '../wallet/wallet.ts'
export { type CrossDeviceOptions, crossDevice } from './cross-device.ts'
export { type LinkedWallet, type WalletSignInOptions, walletSignIn } from './wallet-sign-in.ts'
