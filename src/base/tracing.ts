import type { RequestContext } from './request.ts'

/** A call as reported when it begins. */
export interface TracedCall {
  /** Full name of the RPC, such as `countersign.v1.SignInService/IssueNonce`. */
  readonly method: string
  readonly protocol: 'connect' | 'grpc' | 'grpc-web' | 'rest' | 'better-auth'
  /** Who called. Its headers may name the trace of the caller. */
  readonly request: RequestContext
}

/** How a call ended that did not end well. */
export interface TracedFailure {
  /** A code of Connect, such as `invalid_argument`; `canceled` if the caller left. */
  readonly code: string
  /** One of the service's reasons. Absent if the call ended early. */
  readonly reason?: string
  /** HTTP status of the reason. */
  readonly httpStatus?: number
}

/** The trace of one call. None of its methods throws by itself. */
export interface CallTrace {
  /** Does a part of the call's work. Steps within it, awaited or not, belong to the call. */
  within<Result>(work: () => Result): Result
  /** Called when a message of a stream was handed to the transport. */
  sent(): void
  /** Ends the trace. Called once. */
  end(outcome: 'ok' | TracedFailure): void
}

/** A step of a call that takes time of its own. It names nothing that a caller chose. */
export type TracedStep =
  | {
      readonly kind: 'store'
      /** Kind of the store, or `other`. */
      readonly system: string
      /** Name of the store's method. */
      readonly operation: string
    }
  | {
      readonly kind: 'verification'
      /** Id of the wallet adapter that judges the proof. */
      readonly adapterId: string
    }
  | {
      readonly kind: 'evm rpc'
      /** Name of the JSON-RPC method. */
      readonly method: string
      /** EIP-155 chain id. */
      readonly chainId: string
    }
  | {
      readonly kind: 'application'
      /** The function of the application, such as `resolveLogin`. */
      readonly name: string
    }
  | { readonly kind: 'webhook' }

/**
 * Receives calls and their steps, to make traces of them. `openTelemetry()` of
 * `countersign/opentelemetry` makes one. None of its methods throws by itself.
 */
export interface Tracing {
  /** A call begins. */
  begin(call: TracedCall): CallTrace
  /** Does a step of the call that is in progress. Outside a call, it just does it. */
  step<Result>(step: TracedStep, work: () => Result | Promise<Result>): Promise<Result>
  /** Does something that no call waits for, and that belongs to none. */
  background<Result>(step: TracedStep, work: () => Result | Promise<Result>): Promise<Result>
  /**
   * Headers for a request that is made in a step, so that its receiver can continue the trace. Nothing of them is the
   * caller's.
   */
  headers(): Readonly<Record<string, string>>
}
