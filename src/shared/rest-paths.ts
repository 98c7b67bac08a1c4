/** Paths of the REST endpoints that the server and its clients have in common. */

/**
 * The computer's part of cross-device orders, under the base path. Apart from the phone's, which the element does not
 * need.
 */
export const desktopOrderPaths = {
  start: '/cross-device/start',
  cancel: '/cross-device/cancel',
  finalize: '/cross-device/finalize',
  events: '/cross-device/events',
} as const

/** The phone's part of cross-device orders, under the base path. */
export const phoneOrderPaths = {
  preview: '/cross-device/preview',
  claim: '/cross-device/claim',
  challenge: '/cross-device/challenge',
  approve: '/cross-device/approve',
  reject: '/cross-device/reject',
  handOver: '/cross-device/hand-over',
  redeem: '/cross-device/redeem',
} as const

/** The caller's sessions, under the base path. */
export const sessionPaths = {
  current: '/session',
  list: '/sessions',
  revoke: '/sessions/revoke',
  revokeOthers: '/sessions/revoke-others',
  signOut: '/sign-out',
  accessToken: '/access-token',
} as const

/** Known computers, under the base path. */
export const computerPaths = {
  list: '/computers',
  forget: '/computers/forget',
} as const

/** Applications that the user has connected by OpenID Connect, under the base path. */
export const appPaths = {
  list: '/apps',
  disconnect: '/apps/disconnect',
} as const

/** The orders that wait for the signed-in user's approval, under the base path. Not Better Auth's. */
export const inboxPaths = {
  orders: '/inbox/orders',
  claim: '/inbox/claim',
} as const

/** Direct sign-in, under the base path and the endpoint prefix. */
export const signInPaths = {
  nonce: '/nonce',
  verify: '/verify',
} as const

/** Adding a wallet to the signed-in user; its nonce is that of {@link signInPaths}. Not Better Auth's. */
export const linkPath = '/link'

/** The wallets of the signed-in user. */
export const walletPaths = {
  list: '/list',
  link: linkPath,
  unlink: '/unlink',
} as const

/** Path of the service's options under the base path. */
export const serviceOptionsPath = '/options'

/**
 * A part of the service that its settings turn on: its pages, the account page, several wallets for a user, orders of
 * any kind that pages start without a key, access tokens, OpenID Connect.
 */
export type ServicePart = 'pages' | 'account' | 'wallets' | 'open-orders' | 'access-tokens' | 'oidc'

/** What a page has to know of a service before it offers a sign-in. */
export interface ServiceOptions {
  /** Name in the first line of what wallets sign. */
  readonly appName: string
  /** Ids of the configured wallet adapters. */
  readonly adapters: readonly string[]
  /** Whether the service offers the demo wallet, whose key is public. */
  readonly demoWallet: boolean
  /** Languages that its pages speak (BCP 47). */
  readonly languages: readonly string[]
  readonly parts: readonly ServicePart[]
}
