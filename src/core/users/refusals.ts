import { CountersignError, refused } from '../../shared/errors.ts'
import type { ProvenIdentity } from '../wallet/wallet.ts'

/** The refusal of a cookie with which another page could have made a browser change something. */
export function proxiedOriginRequired(): CountersignError {
  return new CountersignError(
    'ORIGIN_NOT_TRUSTED',
    'With the session cookie and without an Origin header, only GET and HEAD pass, and the proxy has to say so ' +
      'in X-Forwarded-Method or X-Original-Method; send the session token as Authorization: Bearer, or correct ' +
      'the headers that the proxy sends',
    { metadata: { origin: '', origin_source: 'Origin header' } },
  )
}

/** The refusal of a retried finalize whose session was made before and has ended since. */
export function orderSessionEnded(): CountersignError {
  return new CountersignError('ORDER_FINALIZED', 'The order was finalized, and the session it made has ended')
}

/** The refusal to end a session that no order made from one that an order made. */
export function sessionOutOfReach(): CountersignError {
  return new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in with another device, which is not enough to end a sign-in that was made directly; sign in on ' +
      'this device, then try again',
  )
}

/** The refusal of a wallet that is not in the people file, if only its people may sign in. */
export function notListed({ adapterId, address }: Pick<ProvenIdentity, 'adapterId' | 'address'>): CountersignError {
  return new CountersignError(
    'LOGIN_REFUSED',
    'This wallet is not on the list of people who may sign in; ask the operator to add it',
    { metadata: { adapter_id: adapterId, address } },
  )
}

const isNotListed = new Error('the people file does not list who is signed in')

/** The refusal of a session whose user may not sign in now. */
export function sessionNotListed(): CountersignError {
  return refused('SESSION_INVALID', { cause: isNotListed })
}

/** Whether a token was refused although it is right: it does not count as a wrong one. */
export function isRightToken(refusal: CountersignError): boolean {
  return refusal.cause === isNotListed
}

/** The refusal of one more wallet than a user can have. */
export function tooManyWallets(most: number): CountersignError {
  return new CountersignError('INVALID_REQUEST', `You have ${most} wallets, which is the most; unlink one first`)
}

/** The refusal of a session for a wallet that was taken from its user while it signed in. */
export function walletUnlinked(): CountersignError {
  return new CountersignError('LOGIN_REFUSED', 'The wallet was unlinked from this user in the meantime; sign in again')
}
