/**
 * The public API of direct sign-in over REST: a small part of the client, without Connect. Everything that is not listed here
 * is private.
 */

export type { ErrorReason } from '../errors.ts'
export { type ClientErrorCode, type ClientErrorOptions, CountersignClientError } from './errors.ts'
export { type Fetcher, type RestOptions, type SignInWithWalletOptions, signInWithWallet } from './rest.ts'
export type { SignInOptions } from './sign-in.ts'
export { clearStoredToken, readStoredToken, type TokenStorage, type TokenStoreOptions } from './token-store.ts'
export type { Session, SignInResult } from './types.ts'
export {
  type NimiqHub,
  type NimiqHubOptions,
  type NimiqProvider,
  nimiqHub,
  nimiqPay,
  type ProofOptions,
  type Wallet,
} from './wallet.ts'
export { readWalletAnswer, type WalletSignature } from './wallet-answer.ts'
