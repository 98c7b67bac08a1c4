/** The public API of the client, over REST. Everything that is not listed here is private. */

export type { ErrorReason } from '../../shared/errors.ts'
export type {
  ApprovedOrder,
  ClaimedOrder,
  DesktopOrder,
  FinalizedOrder,
  HandOver,
  InboxOrder,
  OrderChallenge,
  OrderEvent,
  OrderKind,
  OrderPreview,
  OrderRequester,
  OrderState,
  OrderStatus,
  PhoneOrder,
  ProofArtifact,
  RejectedOrder,
  StartedOrder,
  StartOrderOptions,
  StartOrderRequester,
} from '../../shared/orders.ts'
export type {
  AccessToken,
  BaseSession,
  ConnectedApp,
  KnownComputer,
  NonceChallenge,
  Session,
  SignInForm,
  SignInResult,
  SigningAccount,
  UserWallet,
} from '../../shared/session.ts'
export type { Claim } from './api.ts'
export type { CallOptions } from './call.ts'
export type { ClientCalls, ClientCallsOptions, OrderCalls, ServiceAddress } from './calls.ts'
export {
  type CountersignClient,
  type CountersignClientOptions,
  createCountersignClient,
  type SignInWithWalletOptions,
  signInWithWallet,
} from './client.ts'
export type { DesktopCalls, FinalizeOrderOptions, StartOrderCallOptions } from './desktop-orders.ts'
export { type ClientErrorCode, type ClientErrorOptions, CountersignClientError } from './errors.ts'
export { isTerminal, type WatchOrderOptions } from './order-watch.ts'
export {
  type ApproveOrderOptions,
  type ClaimOrderOptions,
  type GetOrderChallengeOptions,
  newClaimKey,
  type PhoneCalls,
  parseClaimUrl,
} from './phone-orders.ts'
export type { Fetcher, RestOptions } from './rest-api.ts'
export type { SessionListener } from './session-news.ts'
export type { InboxCalls, LinkWalletOptions, SessionCalls, UserWalletCalls } from './sessions.ts'
export type { IssueNonceOptions, PrepareSignInOptions, SignInCalls, SignInOptions } from './sign-in.ts'
export { clearStoredToken, readStoredToken, type TokenStorage, type TokenStoreOptions } from './token-store.ts'
export {
  type AccountListener,
  type NimiqHub,
  type NimiqHubOptions,
  type NimiqProvider,
  nimiqHub,
  nimiqPay,
  type ProofOptions,
  type Wallet,
} from './wallet.ts'
export { readWalletAnswer, type WalletSignature } from './wallet-answer.ts'
