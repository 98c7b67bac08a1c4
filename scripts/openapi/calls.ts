import type { Oas3SecurityRequirement } from '@redocly/openapi-core'
import type { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import type { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'

/** What the document says of a call that its proto does not say in a form for programs. */
export interface CallFacts {
  /**
   * Ways to authorize the call, by names of security schemes: one of them is needed. None: the call needs no header.
   */
  readonly security: readonly Oas3SecurityRequirement[]
  /** Whether success is sent with the header Set-Auth-Token: always, or for some requests. */
  readonly authToken?: 'always' | 'sometimes'
  /** When success comes with a cookie. Absent: it sets none. */
  readonly cookie?: string
}

const session: readonly Oas3SecurityRequirement[] = [{ sessionToken: [] }, { sessionCookie: [] }]
const extended = 'If a cookie authenticated the call and the session was extended, the cookie anew.'

type Calls<Service extends { readonly method: object }, Left extends string = never> = Readonly<
  Record<Exclude<keyof Service['method'], Left>, CallFacts>
>

/** Every call that REST has, by the name of its operation. */
export const calls: Calls<typeof SignInService> &
  Calls<typeof WalletService> &
  Calls<typeof OrderService> &
  Calls<typeof InboxService> &
  Calls<typeof SessionService, 'introspectSession'> = {
  issueNonce: {
    // Only a nonce for adding a wallet takes a session.
    security: [{}, ...session],
    cookie: extended,
  },
  verifySignIn: {
    security: [],
    authToken: 'always',
    cookie: 'The session cookie.',
  },
  listWallets: { security: session, cookie: extended },
  linkWallet: { security: session, cookie: extended },
  unlinkWallet: { security: session, cookie: extended },
  // Only a link order takes a session.
  startOrder: { security: [{}, { startKey: [] }, ...session], cookie: extended },
  previewOrder: { security: [{ claimToken: [] }] },
  claimOrder: { security: [] },
  getOrderChallenge: { security: [{ challengeToken: [] }, { challengeTokenInUrl: [] }] },
  approveOrder: { security: [] },
  rejectOrder: { security: [] },
  cancelOrder: { security: [] },
  finalizeOrder: {
    // Only a link order takes a session.
    security: [{}, ...session],
    authToken: 'sometimes',
    cookie: 'The session cookie, if the order is a login.',
  },
  watchOrder: { security: [{ desktopToken: [] }] },
  handOverOrder: { security: [] },
  redeemHandOver: { security: [] },
  listInbox: { security: session },
  claimFromInbox: { security: session, cookie: extended },
  getCurrentSession: { security: session, cookie: extended },
  signOut: {
    // Without any, there is nothing to end, which succeeds, too.
    security: [...session, {}],
    cookie: 'The cookie, cleared, if its session ended.',
  },
  listSessions: { security: session, cookie: extended },
  revokeSession: { security: session, cookie: extended },
  revokeOtherSessions: { security: session, cookie: extended },
  listKnownComputers: { security: session, cookie: extended },
  forgetKnownComputer: { security: session, cookie: extended },
  listConnectedApps: { security: session, cookie: extended },
  disconnectApp: { security: session, cookie: extended },
  issueAccessToken: { security: session, cookie: extended },
}
