import { CountersignError } from '../../shared/errors.ts'

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

/** The refusal of a cookie with which another page could have made a browser change something. */
export function proxiedOriginRequired(): CountersignError {
  return new CountersignError(
    'ORIGIN_NOT_TRUSTED',
    'With the session cookie and without an Origin header, only GET and HEAD pass, and the proxy has to say so in X-Forwarded-Method or X-Original-Method; send the session token as Authorization: Bearer, or correct the headers that the proxy sends',
    { metadata: { origin: '', origin_source: 'Origin header' } },
  )
}

/** The refusal of a retried finalize whose session was made before and has ended since. */
export function orderSessionEnded(): CountersignError {
  return new CountersignError('ORDER_FINALIZED', 'The order was finalized, and the session it made has ended')
}

/** The refusal of a session that is too old for changing the user's wallets. */
export function sessionNotFresh(): CountersignError {
  return new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in too long ago to change your wallets; sign in again, then try again',
  )
}

/** The refusal to end a session that no order made from one that an order made. */
export function sessionOutOfReach(): CountersignError {
  return new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in with another device, which is not enough to end a sign-in that was made directly; sign in on this device, then try again',
  )
}

/** The refusal to disconnect, from a session that an order made, an application that was connected directly. */
export function appOutOfReach(): CountersignError {
  return new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in with another device, which is not enough to disconnect this application; sign in on this device, then try again',
  )
}

/** The refusal to add a wallet of another user. */
export function walletTaken(): CountersignError {
  return new CountersignError(
    'WALLET_TAKEN',
    'The wallet belongs to another user: it was added there, or has signed in by itself; sign in with it and unlink it there first, which needs another wallet there if it is the only one',
  )
}

/** The refusal to take away a wallet that the user does not have. */
export function walletNotFound(): CountersignError {
  return new CountersignError('WALLET_NOT_FOUND', 'You have no wallet with this adapter and address')
}

/** The refusal to take away the only wallet of a user. */
export function lastWallet(): CountersignError {
  return new CountersignError(
    'LAST_WALLET',
    'This is your only wallet, and without it you could not sign in any more; add another one first',
  )
}

/** The refusal of one more wallet than a user can have. */
export function tooManyWallets(most: number): CountersignError {
  return new CountersignError('INVALID_REQUEST', `You have ${most} wallets, which is the most; unlink one first`)
}

/** The refusal of a session for a wallet that was taken from its user while it signed in. */
export function walletUnlinked(): CountersignError {
  return new CountersignError('LOGIN_REFUSED', 'The wallet was unlinked from this user in the meantime; sign in again')
}

/** The refusal of a wallet that the application does not let sign in. */
export function loginRefused(): CountersignError {
  return new CountersignError('LOGIN_REFUSED', 'This wallet is not allowed to sign in')
}
