/** Path of the service's options under the base path. */
export const serviceOptionsPath = '/options'

/**
 * A part of the service that its settings turn on: its pages, the account page, several wallets for a user, orders that
 * pages start without a key, access tokens, OpenID Connect.
 */
export type ServicePart = 'pages' | 'account' | 'wallets' | 'open-orders' | 'access-tokens' | 'oidc'

/** What a page has to know of a service before it offers a sign-in. */
export interface ServiceOptions {
  /** Ids of the configured wallet adapters. */
  readonly adapters: readonly string[]
  /** Whether the service offers the demo wallet, whose key is public. */
  readonly demoWallet: boolean
  /** Languages that its pages speak (BCP 47). */
  readonly languages: readonly string[]
  readonly parts: readonly ServicePart[]
}
