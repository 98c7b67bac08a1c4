/** The public server API. Everything that is not named here is private. */

export type {
  AuditCaller,
  AuditEvent,
  AuditEventHook,
  AuditEventType,
  AuditFacts,
  AuditMaker,
  AuditOrder,
  AuditOutcome,
  AuditRefusal,
  AuditSession,
  AuditWallet,
} from './base/audit.ts'
export { createLogger, type LogFields, type LogFormat, type Logger, type LogLevel, type LogSink } from './base/log.ts'
export type { RequestContext } from './base/request.ts'
export type { CallTrace, TracedCall, TracedFailure, TracedStep, Tracing } from './base/tracing.ts'
export type { AccessTokenAlgorithm } from './core/access-tokens.ts'
export type { NonceStore } from './core/sign-in/nonce.ts'
export type { ClaimsSubject, ClaimsWallet, OwnClaims, ResolveLogin } from './core/users/application.ts'
export type {
  CredentialForm,
  CurrentSession,
  Host,
  HostUser,
  IssuedSession,
  OrderGrant,
  OrderSession,
  Session,
} from './core/users/host.ts'
export type { WalletUser } from './core/users/user-records.ts'
export { type Ed25519Adapter, type Ed25519Framing, ed25519Adapter } from './core/wallet/ed25519.ts'
export type { SignatureAdapter, SignatureKind } from './core/wallet/kind.ts'
export { signatureAdapter } from './core/wallet/signature.ts'
export type {
  Proof,
  ProvenIdentity,
  RemoteChecks,
  SignatureCurve,
  SignatureVerifier,
  SignInForm,
  StartWarning,
  WalletAccount,
  WalletAdapter,
} from './core/wallet/wallet.ts'
export type { NodeRequest, RequestHandler } from './http/exchange.ts'
export type { FetchClient, FetchHandler } from './http/fetch.ts'
export type { LimitName, Limits, PlaceLimit, RateLimit, RateLimitGroup } from './limits/limits.ts'
export {
  type AccessTokenOptions,
  type CountersignOptions,
  type Environment,
  type LimitOptions,
  type MetricsOptions,
  type OidcOptions,
  optionsFromEnvironment,
  type PageOptions,
  type RedisOptions,
  type TlsOptions,
  type WebhookOptions,
} from './service/config.ts'
export { type Countersign, createCountersign, type ReloadedOption } from './service/countersign.ts'
export type { ReplaceableOptions } from './service/live-secrets.ts'
export {
  type CodeName,
  CountersignError,
  type CountersignErrorOptions,
  type ErrorMetadata,
  type ErrorReason,
} from './shared/errors.ts'
export type { OrderKind } from './shared/orders.ts'
export type { BaseSession } from './shared/session.ts'
export type { StoreOptions } from './store/implementation.ts'
export { StoreOpenError } from './store/implementation.ts'
export { openStore, type RedisTls } from './store/open.ts'
export type { Life, ScannedValue, Store, VersionedValue } from './store/store.ts'
export type { NodeResponse } from './wire/output.ts'
