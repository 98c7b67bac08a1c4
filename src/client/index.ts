/** The public API of the client. Everything that is not listed here is private. */

export type { ErrorReason } from '../errors.ts'
export type { CallOptions } from './call.ts'
export { type Claim, parseClaimUrl } from './claim-url.ts'
export {
  type CountersignClient,
  type CountersignClientOptions,
  createCountersignClient,
  type PrepareSignInOptions,
} from './client.ts'
export { type ClientErrorCode, type ClientErrorOptions, CountersignClientError } from './errors.ts'
export { isTerminal, type WatchOrderOptions } from './order-watch.ts'
export {
  type ApproveOrderOptions,
  type ClaimOrderOptions,
  type FinalizeOrderOptions,
  newClaimKey,
  type OrderCalls,
  type StartOrderCallOptions,
} from './orders.ts'
export { type Fetcher, type RestOptions, type SignInWithWalletOptions, signInWithWallet } from './rest.ts'
export type { SessionCalls } from './sessions.ts'
export type { SignInOptions } from './sign-in.ts'
export { clearStoredToken, readStoredToken, type TokenStorage, type TokenStoreOptions } from './token-store.ts'
export type {
  ApprovedOrder,
  ClaimedOrder,
  DesktopOrder,
  FinalizedOrder,
  HandOver,
  KnownComputer,
  NonceChallenge,
  OrderChallenge,
  OrderEvent,
  OrderKind,
  OrderRequester,
  OrderState,
  OrderStatus,
  PhoneOrder,
  ProofArtifact,
  RejectedOrder,
  Session,
  SignInResult,
  StartedOrder,
  StartOrderOptions,
  StartOrderRequester,
} from './types.ts'
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
