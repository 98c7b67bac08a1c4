import type { SignInResult } from '../../shared/session.ts'
import { type ClientErrorCode, CountersignClientError } from '../client/errors.ts'
import type { RefusalStatus } from './fetch.ts'

/** The failure of a sign-in, with the fields that errors of Better Auth's client have. */
export interface WalletSignInError {
  /** Stable code, for programs to act on. */
  readonly code: ClientErrorCode
  /** Message for developers. */
  readonly message: string
  /** HTTP status of the answer; 0 if there was none, as when the user declined in the wallet. */
  readonly status: number
  /** Its words; empty if there was no answer, and over HTTP/2. */
  readonly statusText: string
  /** Time after which a retry can succeed, in milliseconds, if the service stated one. */
  readonly retryAfterMs?: number
}

/** The outcome of a sign-in as Better Auth's client answers its calls. */
export type WalletSignInAnswer =
  | { readonly data: SignInResult; readonly error: null }
  | { readonly data: null; readonly error: WalletSignInError }

/**
 * Answers a sign-in, whose calls tell `onRefusal` the status of what refused them. Rejects only with what is no failure
 * of the sign-in, such as the `TypeError` of a call with wrong options.
 */
export async function answerOf(
  signIn: (onRefusal: (status: RefusalStatus) => void) => Promise<SignInResult>,
): Promise<WalletSignInAnswer> {
  let refusal: RefusalStatus = { status: 0, statusText: '' }
  try {
    const data = await signIn(({ status, statusText }) => {
      refusal = { status, statusText }
    })
    return { data, error: null }
  } catch (thrown) {
    if (!(thrown instanceof CountersignClientError)) throw thrown
    const { code, message, retryAfterMs } = thrown
    return { data: null, error: { ...refusal, code, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } }
  }
}
