/** The public server API. Everything that is not named here is private. */

export { type CountersignOptions, optionsFromEnvironment } from './config.ts'
export { type Countersign, createCountersign } from './countersign.ts'
export { CountersignError, type ErrorReason } from './errors.ts'
export type { HostUser, ProvenIdentity, Session } from './host/host.ts'
export type { ResolveLogin, WalletUser } from './host/standalone.ts'
export { createLogger, type Logger, type LogLevel } from './log.ts'
export type { NonceStore } from './nonce.ts'
export type { WalletAdapter } from './wallet/wallet.ts'
