/**
 * Why there is no decision. In none of these cases may the action run.
 *
 * | reason | meaning |
 * |---|---|
 * | `ACTION_INVALID` | The action is not JSON that can be signed. `cause` says what is wrong with it. |
 * | `ALREADY_USED` | The approval was given out before, here or in another process. Ask again. |
 * | `APP_NAME_MISMATCH` | The service has another `appName` than the options. No request was made to the user. |
 * | `HANDLE_INVALID` | The handle was sealed with another start key, or is not a handle, or is for other wallets. |
 * | `PROOF_INVALID` | The service's answer does not prove the approval. `cause` is the `ProofError`. |
 * | `SERVICE_REFUSED` | The service refused the call; `code` is its reason, such as `RATE_LIMITED`. |
 * | `SERVICE_UNAVAILABLE` | The service did not answer, or cannot answer at the moment. Call again later. |
 * | `UNEXPECTED_ANSWER` | The answer is not one of a Countersign service with this interface. Check `url`. |
 */
export type ApprovalErrorReason =
  | 'ACTION_INVALID'
  | 'ALREADY_USED'
  | 'APP_NAME_MISMATCH'
  | 'HANDLE_INVALID'
  | 'PROOF_INVALID'
  | 'SERVICE_REFUSED'
  | 'SERVICE_UNAVAILABLE'
  | 'UNEXPECTED_ANSWER'

/** Details of an {@link ApprovalError}. */
export interface ApprovalErrorOptions {
  /** The service's own reason, if it gave one. */
  readonly code?: string | undefined
  readonly cause?: unknown
}

/** There is no decision: a stable reason to act on, and a message of one line for people. */
export class ApprovalError extends Error {
  override readonly name = 'ApprovalError'
  readonly reason: ApprovalErrorReason
  /** The service's own reason, if it gave one. */
  readonly code: string | undefined

  constructor(reason: ApprovalErrorReason, message: string, { code, cause }: ApprovalErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.reason = reason
    this.code = code
  }
}
