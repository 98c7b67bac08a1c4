import type { CrossDeviceOptions, WalletSignInOptions } from '../../src/better-auth/index.ts'

/** The calls of the contract. */
export type CallName =
  | 'issueNonce'
  | 'verifySignIn'
  | 'startOrder'
  | 'previewOrder'
  | 'claimOrder'
  | 'getOrderChallenge'
  | 'approveOrder'
  | 'rejectOrder'
  | 'cancelOrder'
  | 'finalizeOrder'

/** A call's outcome, whatever protocol brought it: its JSON, or the reason of its failure. */
export interface Outcome {
  /** Absent where the call was answered. */
  readonly reason?: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  readonly json: any
  readonly headers: Headers
}

/** What proves a session. */
export type Credential = { readonly bearer: string } | { readonly cookie: string }

/** A service to hold against the contract. */
export interface ContractDriver {
  /** The service's own origin. */
  readonly ownOrigin: string
  /** Address of the approval page, without the order's id at its end. */
  readonly approvalPage: string
  call(name: CallName, input: object, origin?: string): Promise<Outcome>
  /** The events of an order, until its end or the abort; a refusal is thrown as an {@link EventsRefused}. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  watch(input: object, signal: AbortSignal, origin?: string): AsyncIterable<any>
  /** Whose session it is, by the host's own reckoning; `undefined` when it is not good. */
  session(credential: Credential): Promise<{ readonly userId: string } | undefined>
  /** The ids of the user's sessions. */
  sessions(credential: Credential): Promise<string[]>
  signOut(credential: Credential): Promise<void>
}

/** The failure of a watch. */
export class EventsRefused extends Error {
  readonly reason: string
  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}

/** What the contract lets a service be told. Every service under test trusts {@link appOrigin} besides its own. */
export type ContractOptions = Pick<
  WalletSignInOptions & CrossDeviceOptions,
  | 'enforceOrigin'
  | 'adapters'
  | 'resolveLogin'
  | 'nonceTtlSeconds'
  | 'nonceStore'
  | 'orderTtlSeconds'
  | 'confirmationCode'
>

/** Starts a service for one test, which ends it. */
export type StartDriver = (options?: ContractOptions) => Promise<ContractDriver>

/** Where the application is. */
export const appOrigin = 'https://app.example'
/** Another origin that is trusted. */
export const otherOrigin = 'https://other.example'
