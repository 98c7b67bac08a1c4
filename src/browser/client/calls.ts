import type { InboxApi, OrderApi, SessionApi, SignInApi, WalletApi } from './api.ts'
import { defaultTimeoutMs } from './call.ts'
import { ComputerKey } from './computer-key.ts'
import { type DesktopCalls, type DesktopCallsOptions, desktopCalls } from './desktop-orders.ts'
import { Listeners } from './listeners.ts'
import { defaultHeartbeatTimeoutMs } from './order-watch.ts'
import { type PhoneCalls, type PhoneCallsOptions, phoneCalls } from './phone-orders.ts'
import type { RestOptions } from './rest-api.ts'
import { type SessionListener, SessionNews } from './session-news.ts'
import type { InboxCalls, SessionCalls, UserWalletCalls } from './sessions.ts'
import { authorisedCalls, inboxCalls, sessionCalls, userWalletCalls } from './sessions.ts'
import { type SignInCalls, type SignInOptions, signInCalls } from './sign-in.ts'
import type { TokenStore, TokenStoreOptions } from './token-store.ts'
import type { AccountListener, Wallet } from './wallet.ts'

/** Options of the clients that do not depend on the protocol. Those that a call has too are its defaults. */
export interface ClientCallsOptions
  extends Omit<SignInOptions, 'signal' | 'challenge'>,
    TokenStoreOptions,
    Pick<RestOptions, 'baseUrl' | 'timeoutMs'> {
  /**
   * Longest silence of an order's event stream before it is opened again, in milliseconds. Default 40,000; the service
   * sends a heartbeat every 15,000.
   */
  readonly heartbeatTimeoutMs?: number | undefined
  /**
   * Whether orders are started with a key of this computer, which the client makes and keeps in the browser's
   * IndexedDB: the phone's user can then let the computer be remembered, so that its next orders need no return code.
   * Default true.
   */
  readonly knownComputer?: boolean | undefined
}

/** Where a client's service is. */
export interface ServiceAddress {
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  /** Path of the REST endpoints. Default /api/auth. */
  readonly basePath?: string | undefined
}

/** The calls that all clients have. They reject with a `CountersignClientError`. */
export interface ClientCalls extends SignInCalls, OrderCalls, SessionCalls, UserWalletCalls, InboxCalls {
  /**
   * Where the service is. `<countersign-sign-in>` asks it whether it offers the demo wallet, on a developer's computer.
   */
  readonly service: ServiceAddress
  /**
   * Calls `listener` with the session after a sign-in, and with `undefined` when the session has ended: here, in
   * another tab of the page's origin, or by another client in this one, if their `baseUrl` and `tokenStorageKey` are
   * the same. For a change elsewhere, the client asks the service first. Not called for the session that exists
   * already: see `getCurrentSession`. Returns a function that ends it.
   */
  onSession(listener: SessionListener): () => void
  /**
   * Calls `listener` with the account that the user switched to in the wallet, or `undefined` if none is left. It ends
   * no session: the page decides. It follows the wallet that signed in last, or until then the option `wallet`, if that
   * can tell (`onAccountChange`). Returns a function that ends it.
   */
  onAccountChange(listener: AccountListener): () => void
  /** The stored session token, or `undefined` if there is none. */
  readStoredToken(): string | undefined
  /** Removes the stored session token. The session itself goes on; `signOut` ends it. */
  clearStoredToken(): void
}

/** What {@link clientCalls} works with: the service's calls, over any protocol. */
export interface ClientParts {
  readonly signIn: SignInApi
  readonly order: OrderApi
  readonly session: SessionApi
  readonly wallet: WalletApi
  readonly inbox: InboxApi
  readonly tokens: TokenStore
}

/** The calls of a client. */
export function clientCalls(
  { tokens, ...api }: ClientParts,
  options: ClientCallsOptions & Pick<ServiceAddress, 'basePath'>,
): ClientCalls {
  const { baseUrl = '', appName, wallet, requestAddressBeforeVerify, autoPersistToken = true } = options
  const { timeoutMs = defaultTimeoutMs, heartbeatTimeoutMs = defaultHeartbeatTimeoutMs } = options
  const proofDefaults = { wallet, requestAddressBeforeVerify }
  const accounts = new WalletAccounts(wallet)
  const authorised = authorisedCalls({ tokens, timeoutMs, onEnded: () => news.publish(undefined) })
  const sessions = sessionCalls(api.session, authorised, tokens)
  const news = new SessionNews({ tokenStorageKey: options.tokenStorageKey, baseUrl }, () =>
    sessions.getCurrentSession(),
  )
  const orders = orderCalls({
    service: api.order,
    baseUrl,
    computer: options.knownComputer === false ? undefined : new ComputerKey(baseUrl),
    tokens,
    autoPersistToken,
    proofDefaults,
    timeoutMs,
    heartbeatTimeoutMs,
    onSession: (session) => news.publish(session),
  })
  const signIns = signInCalls({
    service: api.signIn,
    baseUrl,
    tokens,
    defaults: { ...proofDefaults, appName, autoPersistToken },
    timeoutMs,
    onSession(session, used) {
      accounts.follow(used)
      news.publish(session)
    },
  })
  return {
    service: { baseUrl, basePath: options.basePath },
    ...signIns,
    ...orders,
    ...sessions,
    ...userWalletCalls(api.wallet, { authorised, defaults: { ...proofDefaults, appName } }),
    ...inboxCalls(api.inbox, authorised),
    async getCurrentSession(call) {
      const session = await sessions.getCurrentSession(call)
      news.follow(session)
      return session
    },
    async signOut(call) {
      await sessions.signOut(call)
      news.publish(undefined)
    },
    onSession: (listener) => news.listen(listener),
    onAccountChange: (listener) => accounts.listen(listener),
    readStoredToken: () => tokens.read(),
    clearStoredToken: () => tokens.clear(),
  }
}

/** Calls for cross-device orders. */
export interface OrderCalls extends DesktopCalls, PhoneCalls {}

/** Calls for cross-device orders, over any protocol. */
export function orderCalls(options: DesktopCallsOptions & PhoneCallsOptions): OrderCalls {
  return { ...desktopCalls(options), ...phoneCalls(options) }
}

/** Reports account switches in the wallet that the page uses: the client's own, until another one has signed in. */
class WalletAccounts {
  #wallet: Wallet | undefined
  readonly #listeners: Listeners<Parameters<AccountListener>[0]> = new Listeners(
    () => this.#wallet?.onAccountChange?.((account) => this.#listeners.notify(account)) ?? (() => {}),
  )

  constructor(wallet: Wallet | undefined) {
    this.#wallet = wallet
  }

  /** Follows another wallet from now on. */
  follow(wallet: Wallet | undefined): void {
    if (wallet === undefined || wallet === this.#wallet) return
    this.#wallet = wallet
    this.#listeners.restart()
  }

  /** Calls `listener` on each switch. Returns a function that ends it. */
  listen(listener: AccountListener): () => void {
    return this.#listeners.add(listener)
  }
}
