import { CountersignError } from '../errors.ts'

/** The refusal of a call that needs a session and brings neither a token nor a cookie. */
export function sessionRequired(): CountersignError {
  return new CountersignError(
    'SESSION_REQUIRED',
    'Sign in first: send the session token as Authorization: Bearer, or the session cookie',
  )
}

/** The refusal of a token or cookie that is not, or no longer, one of a session. */
export function sessionInvalid(): CountersignError {
  return new CountersignError('SESSION_INVALID', 'The session is unknown, expired or revoked; sign in again')
}

/** The refusal of a retried finalize whose session was made before and has ended since. */
export function orderSessionEnded(): CountersignError {
  return new CountersignError('ORDER_FINALIZED', 'The order was finalized, and the session it made has ended')
}

/** The refusal of a session that is too old for adding a wallet. */
export function sessionNotFresh(): CountersignError {
  return new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in too long ago to add a wallet; sign in again, then add it',
  )
}

/** The refusal to add a wallet of another user. */
export function walletTaken(): CountersignError {
  return new CountersignError(
    'WALLET_TAKEN',
    'The wallet belongs to another user; sign in with it and unlink it there first',
  )
}

/** The refusal of a wallet that the application does not let sign in. */
export function loginRefused(): CountersignError {
  return new CountersignError('LOGIN_REFUSED', 'This wallet is not allowed to sign in')
}
