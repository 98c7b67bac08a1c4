import { given } from '../../shared/defined-fields.ts'
import type { ClaimedOrder, InboxOrder } from '../../shared/orders.ts'
import type {
  AccessToken,
  ConnectedApp,
  KnownComputer,
  NonceChallenge,
  Session,
  SigningAccount,
  UserWallet,
} from '../../shared/session.ts'
import type { ApiCall, ApiMethod, InboxApi, SessionApi, WalletApi } from './api.ts'
import { type CallOptions, run } from './call.ts'
import { CountersignClientError } from './errors.ts'
import { type ClaimOrderOptions, newClaimKey } from './phone-orders.ts'
import { bearer } from './rest-api.ts'
import type { TokenStore } from './token-store.ts'
import { type ProofOptions, proveWithWallet, type WalletProof } from './wallet.ts'

/** Calls for the signed-in user's sessions and known computers. */
export interface SessionCalls {
  /**
   * The caller's session, or `undefined` if the user is signed out. Rejects if neither is certain, because the service
   * is unavailable or did not answer: then keep showing the user as signed in.
   */
  getCurrentSession(options?: CallOptions): Promise<Session | undefined>
  /**
   * Ends this session and removes the stored token. Rejects, and keeps the token, unless the service confirms that the
   * session has ended.
   */
  signOut(options?: CallOptions): Promise<void>
  /** The user's live sessions, newest first. */
  listSessions(options?: CallOptions): Promise<readonly Session[]>
  /** Ends one of the user's sessions. Rejects with SESSION_NOT_FOUND if the user has none with this identifier. */
  revokeSession(sessionId: string, options?: CallOptions): Promise<void>
  /** Ends all of the user's sessions but this one. Resolves with the number of sessions that it ended. */
  revokeOtherSessions(options?: CallOptions): Promise<number>
  /** The user's known computers, whose orders need no return code, newest first. */
  listKnownComputers(options?: CallOptions): Promise<readonly KnownComputer[]>
  /**
   * Forgets one of the user's known computers: its next order needs a return code again. Its sessions go on. Rejects
   * with COMPUTER_NOT_FOUND if the user has none with this identifier.
   */
  forgetKnownComputer(id: string, options?: CallOptions): Promise<void>
  /** The applications that the user has connected by OpenID Connect, those used last first. */
  listConnectedApps(options?: CallOptions): Promise<readonly ConnectedApp[]>
  /**
   * Disconnects an application: all that it holds of the user is dead. For pages of the service's own origin; others
   * are refused with ORIGIN_NOT_TRUSTED.
   */
  disconnectApp(clientId: string, options?: CallOptions): Promise<void>
  /**
   * Issues a token for a backend that verifies it without asking the service. Ask for a new one before it expires.
   * Rejects with AUDIENCE_UNKNOWN if the service issues none for the audience.
   */
  issueAccessToken(audience: string, options?: CallOptions): Promise<AccessToken>
}

/** Makes a call that a session authorises: sends the stored token, and forgets one that the service does not know. */
export type Authorised = <Request, Answer>(
  method: ApiMethod<Request, Answer>,
  request: NoInfer<Request>,
  options: CallOptions | undefined,
) => Promise<Answer>

/** Options of {@link authorisedCalls}. */
export interface AuthorisedOptions {
  readonly tokens: TokenStore
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
  /** Called when a stored token was forgotten because its session has ended. */
  readonly onEnded: () => void
}

export function authorisedCalls({ tokens, timeoutMs, onEnded }: AuthorisedOptions): Authorised {
  return async (method, request, { signal } = {}) => {
    const sent = tokens.read()
    const headers = sent === undefined ? undefined : { authorization: bearer(sent) }
    try {
      return await run((call) => method(request, { ...call, headers }), signal, timeoutMs)
    } catch (thrown) {
      // Only on the service's own word: an outage is no reason to lose a valid token.
      if (isCode(thrown, 'SESSION_INVALID') && tokens.forget(sent)) onEnded()
      throw thrown
    }
  }
}

/** Calls for sessions and known computers, over any protocol. */
export function sessionCalls(api: SessionApi, authorised: Authorised, tokens: TokenStore): SessionCalls {
  const unlessEnded = async <T>(call: Promise<T>): Promise<T | undefined> => {
    try {
      return await call
    } catch (thrown) {
      if (isCode(thrown, 'SESSION_REQUIRED') || isCode(thrown, 'SESSION_INVALID')) return undefined
      throw thrown
    }
  }
  return {
    async getCurrentSession(options) {
      const read = async (request: { readonly allowSignedOut: true }, call: ApiCall): Promise<Session | undefined> => {
        const { session } = await api.getCurrentSession(request, call)
        if (session === undefined && tokens.read() !== undefined) throw sessionOver()
        return session
      }
      return await unlessEnded(authorised(read, { allowSignedOut: true }, options))
    },
    async signOut(options) {
      const sent = tokens.read()
      await unlessEnded(authorised(api.signOut, {}, options))
      tokens.forget(sent)
    },
    listSessions: async (options) => (await authorised(api.listSessions, {}, options)).sessions,
    revokeSession: async (sessionId, options) => void (await authorised(api.revokeSession, { sessionId }, options)),
    revokeOtherSessions: async (options) => (await authorised(api.revokeOtherSessions, {}, options)).revokedCount,
    listKnownComputers: async (options) => (await authorised(api.listKnownComputers, {}, options)).computers,
    forgetKnownComputer: async (id, options) => void (await authorised(api.forgetKnownComputer, { id }, options)),
    listConnectedApps: async (options) => (await authorised(api.listConnectedApps, {}, options)).apps,
    disconnectApp: async (clientId, options) => void (await authorised(api.disconnectApp, { clientId }, options)),
    issueAccessToken: (audience, options) => authorised(api.issueAccessToken, { audience }, options),
  }
}

/** Error for a stored token whose session is over. */
function sessionOver(): CountersignClientError {
  return new CountersignClientError('SESSION_INVALID', 'The session is unknown, expired or revoked; sign in again')
}

function isCode(thrown: unknown, code: CountersignClientError['code']): boolean {
  return thrown instanceof CountersignClientError && thrown.code === code
}

/** Options of {@link UserWalletCalls.linkWallet}. */
export interface LinkWalletOptions extends ProofOptions {
  /** Application name that the signed message must begin with; see `signInWallet`. */
  readonly appName?: string | undefined
}

/**
 * Calls for the wallets of the signed-in user. They reject with NOT_ENABLED if the application keeps its users or
 * sessions itself.
 */
export interface UserWalletCalls {
  /** The user's wallets, oldest first. */
  listWallets(options?: CallOptions): Promise<readonly UserWallet[]>
  /**
   * Adds a wallet to the signed-in user, who can then sign in with it. Call it in a user gesture, because the wallet
   * may open a window. Rejects with SESSION_NOT_FRESH unless the user has signed in on this device in the last ten
   * minutes (not with a phone), and with WALLET_TAKEN if the wallet is another user's. Not retried.
   */
  linkWallet(options?: LinkWalletOptions): Promise<UserWallet>
  /**
   * Takes a wallet from the signed-in user. Its sessions end; if it signs in again, it is a new user. Rejects with
   * LAST_WALLET, WALLET_NOT_FOUND and, as `linkWallet` does, with SESSION_NOT_FRESH.
   */
  unlinkWallet(wallet: Pick<UserWallet, 'adapterId' | 'address'>, options?: CallOptions): Promise<void>
}

/** Options of {@link userWalletCalls}. */
export interface UserWalletCallsOptions {
  readonly authorised: Authorised
  readonly defaults: LinkWalletOptions
}

/** Calls for the wallets of the signed-in user, over any protocol. */
export function userWalletCalls(api: WalletApi, { authorised, defaults }: UserWalletCallsOptions): UserWalletCalls {
  return {
    listWallets: async (options) => (await authorised(api.listWallets, {}, options)).wallets,
    async linkWallet(options = {}) {
      const { appName, signal, ...proving } = { ...defaults, ...given(options) }
      const request = await proveForLink(
        (account) => authorised(api.issueLinkNonce, { ...given({ appName }), ...account }, { signal }),
        { ...proving, signal },
      )
      return (await authorised(api.linkWallet, request, { signal })).wallet
    },
    unlinkWallet: async ({ adapterId, address }, options) =>
      void (await authorised(api.unlinkWallet, { adapterId, address }, options)),
  }
}

/**
 * Calls for the orders that wait for the signed-in user's approval. They reject with SESSION_NOT_FRESH for a session
 * that an order made, with ORIGIN_NOT_TRUSTED on pages of other origins than the service's own, and with NOT_ENABLED if
 * the application keeps its users or sessions itself.
 */
export interface InboxCalls {
  /** The orders that wait for the user's approval, newest first. It does not extend the session. */
  listInbox(options?: CallOptions): Promise<readonly InboxOrder[]>
  /**
   * Claims an order for this browser: `getOrderChallenge`, `approveOrder` and `rejectOrder` follow. Call it in a user
   * gesture. Until the order is approved, each new claim takes the place of the last, whose token can then only reject.
   * A retry with the same claim key gets the same answer.
   */
  claimFromInbox(orderId: string, options?: ClaimOrderOptions): Promise<ClaimedOrder>
}

/** Calls for the user's inbox, over any protocol. */
export function inboxCalls(api: InboxApi, authorised: Authorised): InboxCalls {
  return {
    listInbox: async (options) => (await authorised(api.listInbox, {}, options)).orders,
    claimFromInbox: (orderId, { signal, claimKey = newClaimKey() } = {}) =>
      authorised(api.claimFromInbox, { orderId, claimKey }, { signal }),
  }
}

/** Has a wallet sign the text of the nonce that `issue` fetches for the account that is going to sign. */
export async function proveForLink(
  issue: (account: SigningAccount | undefined) => Promise<NonceChallenge>,
  options: ProofOptions,
): Promise<{ readonly nonceId: string; readonly proof: WalletProof }> {
  let nonceId = ''
  const proof = await proveWithWallet(async (account) => {
    const issued = await issue(account)
    nonceId = issued.nonceId
    return issued.message
  }, options)
  return { nonceId, proof }
}
