import type { Oas3SecurityRequirement } from '@redocly/openapi-core'
import type { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { ErrorReason } from '../../src/errors.ts'

/** What the document says of a call that its proto does not say in a form for programs. */
export interface CallFacts {
  /** Ways to authorize the call, by names of security schemes: one of them is needed. None: the call needs no header. */
  readonly security: readonly Oas3SecurityRequirement[]
  /** Whether success is sent with the header Set-Auth-Token: always, or for some requests. */
  readonly authToken?: 'always' | 'sometimes'
  /** When success comes with a cookie. Absent: it sets none. */
  readonly cookie?: string
  /** The reasons for which the call itself can fail, beside those of {@link reasonsOfAll}. */
  readonly reasons: readonly ErrorReason[]
}

/** Reasons for which every REST call can fail. */
export const reasonsOfAll: readonly ErrorReason[] = ['RATE_LIMITED', 'STORE_UNAVAILABLE', 'INTERNAL', 'SERVER_BUSY']

/** Reasons for which a call with a body can fail in addition. */
export const reasonsOfBodies: readonly ErrorReason[] = ['INVALID_REQUEST', 'REQUEST_TOO_LARGE']

const session: readonly Oas3SecurityRequirement[] = [{ sessionToken: [] }, { sessionCookie: [] }]
const extended = 'If a cookie authenticated the call and the session was extended, the cookie anew.'

const ofSession: readonly ErrorReason[] = [
  'SESSION_REQUIRED',
  'SESSION_INVALID',
  'ORIGIN_NOT_TRUSTED',
  'HOST_UNAVAILABLE',
]
const ofFreshSession: readonly ErrorReason[] = [...ofSession, 'SESSION_NOT_FRESH', 'NOT_ENABLED']
const ofWalletNamed: readonly ErrorReason[] = ['INVALID_REQUEST', 'ADAPTER_UNKNOWN']
const ofProof: readonly ErrorReason[] = [
  'SIGNATURE_INVALID',
  'ADDRESS_MISMATCH',
  'ADAPTER_UNKNOWN',
  'CONTRACT_WALLET_NEEDS_RPC',
  'EVM_RPC_UNAVAILABLE',
]
const ofNonce: readonly ErrorReason[] = ['NONCE_NOT_FOUND', 'NONCE_EXPIRED', 'ORIGIN_MISMATCH']
const ofLogin: readonly ErrorReason[] = ['LOGIN_REFUSED', 'HOST_UNAVAILABLE']
const ofWatch: readonly ErrorReason[] = ['ORDER_NOT_FOUND', 'ORDER_TOKEN_INVALID', 'ORIGIN_MISMATCH']
const ofOrder: readonly ErrorReason[] = [
  ...ofWatch,
  'ORDER_EXPIRED',
  'ORDER_REJECTED',
  'ORDER_CANCELLED',
  'ORDER_FINALIZED',
]

type Calls<Service extends { readonly method: object }, Left extends string = never> = Readonly<
  Record<Exclude<keyof Service['method'], Left>, CallFacts>
>

/** Every call that REST has, by the name of its operation. */
export const calls: Calls<typeof SignInService> &
  Calls<typeof WalletService> &
  Calls<typeof OrderService> &
  Calls<typeof SessionService, 'revokeSession' | 'revokeOtherSessions' | 'introspectSession'> = {
  issueNonce: {
    // Only a nonce for adding a wallet takes a session.
    security: [{}, ...session],
    cookie: extended,
    reasons: [...ofWalletNamed, 'ORIGIN_NOT_TRUSTED', 'APP_NAME_MISMATCH', ...ofFreshSession],
  },
  verifySignIn: {
    security: [],
    authToken: 'always',
    cookie: 'The session cookie.',
    reasons: [...ofNonce, ...ofProof, ...ofLogin],
  },
  listWallets: { security: session, cookie: extended, reasons: [...ofSession, 'NOT_ENABLED'] },
  linkWallet: {
    security: session,
    cookie: extended,
    reasons: [...ofFreshSession, ...ofNonce, ...ofProof, 'WALLET_TAKEN', 'LOGIN_REFUSED'],
  },
  unlinkWallet: {
    security: session,
    cookie: extended,
    reasons: [...ofFreshSession, 'WALLET_NOT_FOUND', 'LAST_WALLET'],
  },
  startOrder: {
    security: [{}, { startKey: [] }],
    reasons: ['ORIGIN_NOT_TRUSTED', 'ADAPTER_UNKNOWN', 'START_KEY_REQUIRED'],
  },
  claimOrder: { security: [], reasons: [...ofOrder, 'NETWORK_MISMATCH', 'ORDER_ALREADY_CLAIMED'] },
  getOrderChallenge: {
    security: [{ challengeToken: [] }, { challengeTokenInUrl: [] }],
    reasons: [...ofOrder, ...ofWalletNamed, 'ORDER_CHALLENGE_NOT_READ'],
  },
  approveOrder: {
    security: [],
    reasons: [
      ...ofOrder,
      ...ofProof,
      'NETWORK_MISMATCH',
      'ORDER_CHALLENGE_NOT_READ',
      'ORDER_ALREADY_APPROVED',
      'CONFIRMATION_CODE_REQUIRED',
      'CONFIRMATION_CODE_WRONG',
      'WRONG_WALLET',
    ],
  },
  rejectOrder: { security: [], reasons: [...ofOrder, 'ORDER_CHALLENGE_NOT_READ', 'HOST_UNAVAILABLE'] },
  cancelOrder: { security: [], reasons: ofOrder },
  finalizeOrder: {
    security: [],
    authToken: 'sometimes',
    cookie: 'The session cookie, if the order is a login.',
    reasons: [
      ...ofOrder,
      ...ofLogin,
      'ORDER_NOT_APPROVED',
      'RETURN_CODE_REQUIRED',
      'RETURN_CODE_WRONG',
      'COMPUTER_PROOF_INVALID',
    ],
  },
  watchOrder: { security: [{ desktopToken: [] }], reasons: ['INVALID_REQUEST', ...ofWatch] },
  handOverOrder: { security: [], reasons: [...ofOrder, 'ORDER_ALREADY_APPROVED', 'ORDER_CHALLENGE_NOT_READ'] },
  redeemHandOver: {
    security: [],
    reasons: [
      'HANDOVER_INVALID',
      'ORIGIN_MISMATCH',
      'NETWORK_MISMATCH',
      'ORDER_ALREADY_APPROVED',
      'ORDER_EXPIRED',
      'ORDER_REJECTED',
      'ORDER_CANCELLED',
      'ORDER_FINALIZED',
    ],
  },
  getCurrentSession: { security: session, cookie: extended, reasons: ofSession },
  signOut: {
    // Without any, there is nothing to end, which succeeds, too.
    security: [...session, {}],
    cookie: 'If it was the session of the cookie that ended, the cookie’s end.',
    reasons: ['ORIGIN_NOT_TRUSTED', 'HOST_UNAVAILABLE'],
  },
  listSessions: { security: session, cookie: extended, reasons: ofSession },
  listKnownComputers: { security: session, cookie: extended, reasons: [...ofSession, 'NOT_ENABLED'] },
  forgetKnownComputer: {
    security: session,
    cookie: extended,
    reasons: [...ofSession, 'NOT_ENABLED', 'COMPUTER_NOT_FOUND'],
  },
  issueAccessToken: {
    security: session,
    cookie: extended,
    reasons: [...ofSession, 'NOT_ENABLED', 'AUDIENCE_UNKNOWN'],
  },
}
