/** Countersign's plugins for Better Auth's client. Everything that is not named here is private. */

import type { BetterAuthClientPlugin } from 'better-auth/client'
import { type OrderCalls, orderCalls } from '../client/orders.ts'
import { type SignInOptions, signIn } from '../client/sign-in.ts'
import { TokenStore, type TokenStoreOptions } from '../client/token-store.ts'
import type { NonceChallenge, SignInResult } from '../client/types.ts'
import { type ProofOptions, proveWithWallet } from '../client/wallet.ts'
import { bearerPlugin, callerOf } from './client-fetch.ts'
import { orderService } from './client-orders.ts'
import type { crossDevice } from './cross-device.ts'
import type { LinkedWallet, walletSignIn } from './wallet-sign-in.ts'

export { type ClientErrorCode, CountersignClientError } from '../client/errors.ts'
export type { OrderCalls } from '../client/orders.ts'
export type { SignInOptions } from '../client/sign-in.ts'
export type { TokenStorage } from '../client/token-store.ts'
export type * from '../client/types.ts'
export { nimiqHub, nimiqPay, type Wallet } from '../client/wallet.ts'

/** Options of {@link walletSignInClient}. What a single call can also be told is the default for those that are not. */
export interface WalletSignInClientOptions
  extends TokenStoreOptions,
    Pick<SignInOptions, 'appName' | 'wallet' | 'requestAddressBeforeVerify' | 'autoPersistToken'> {
  /** The path that the server's plugin has. Default /wallet. */
  readonly endpointPrefix?: string | undefined
}

/** What {@link walletSignInClient} adds to Better Auth's client. All reject with a `CountersignClientError`. */
export interface WalletSignInActions {
  /**
   * Signs in with a wallet that this device can reach: nonce, wallet signature, verify. Call it from a user's gesture: the
   * wallet may open a window. Not retried: after NETWORK, sign in again.
   */
  signInWallet(options?: SignInOptions): Promise<SignInResult>
  /** Adds a wallet to the signed-in user, who can then sign in with it. LOGIN_REFUSED when it is another user's. */
  linkWallet(options?: ProofOptions): Promise<LinkedWallet>
  /** The session token that was kept at sign-in; `undefined` when there is none. */
  readStoredToken(): string | undefined
  /** Drops the stored token. It ends no session: `signOut` does. */
  clearStoredToken(): void
}

/**
 * Better Auth's client plugin for direct sign-in. A token that was kept goes along as `Authorization: Bearer`, for which the
 * server needs Better Auth's bearer plugin; with `autoPersistToken: false` the cookie alone counts.
 */
export function walletSignInClient(options: WalletSignInClientOptions = {}) {
  const { endpointPrefix = '/wallet', appName, wallet, requestAddressBeforeVerify, autoPersistToken } = options
  const defaults = { appName, wallet, requestAddressBeforeVerify, autoPersistToken }
  const tokens = new TokenStore(options)
  return {
    id: 'wallet-sign-in',
    $InferServerPlugin: {} as ReturnType<typeof walletSignIn>,
    pathMethods: {
      [`${endpointPrefix}/nonce`]: 'POST',
      [`${endpointPrefix}/verify`]: 'POST',
      [`${endpointPrefix}/link`]: 'POST',
    },
    fetchPlugins: [bearerPlugin(tokens)],
    getActions: ($fetch, $store): WalletSignInActions => {
      const call = callerOf($fetch)
      const issueNonce = (name: string | undefined, signal: AbortSignal | undefined): Promise<NonceChallenge> =>
        call(`${endpointPrefix}/nonce`, { body: name === undefined ? {} : { appName: name }, signal })
      return {
        async signInWallet(given = {}) {
          const verifySignIn = (body: object, signal: AbortSignal | undefined): Promise<SignInResult> =>
            call(`${endpointPrefix}/verify`, { body, signal })
          const result = await signIn({ issueNonce, verifySignIn }, tokens, { ...defaults, ...defined(given) })
          $store.notify('$sessionSignal')
          return result
        },
        async linkWallet(given = {}) {
          const { signal } = given
          const { nonceId, message } = await issueNonce(appName, signal)
          const proof = await proveWithWallet(message, { ...defaults, ...defined(given) })
          return await call(`${endpointPrefix}/link`, { body: { ...proof, nonceId }, signal })
        },
        readStoredToken: () => tokens.read(),
        clearStoredToken: () => tokens.clear(),
      }
    },
  } satisfies BetterAuthClientPlugin
}

/** Options of {@link crossDeviceClient}. */
export interface CrossDeviceClientOptions
  extends TokenStoreOptions,
    Pick<SignInOptions, 'wallet' | 'requestAddressBeforeVerify' | 'autoPersistToken'> {
  /** How long a call may take, milliseconds. Default 15,000. */
  readonly timeoutMs?: number | undefined
  /** How long an order's stream may be silent before it is taken for dead, milliseconds. Default 40,000. */
  readonly heartbeatTimeoutMs?: number | undefined
}

/** Better Auth's client plugin for cross-device orders: the calls of a desktop and of a phone, and the order's events. */
export function crossDeviceClient(options: CrossDeviceClientOptions = {}) {
  const { wallet, requestAddressBeforeVerify, autoPersistToken = true } = options
  const { timeoutMs = 15_000, heartbeatTimeoutMs = 40_000 } = options
  const tokens = new TokenStore(options)
  return {
    id: 'cross-device',
    $InferServerPlugin: {} as ReturnType<typeof crossDevice>,
    getActions: ($fetch, $store, clientOptions): OrderCalls => {
      const calls = orderCalls({
        service: orderService($fetch, clientOptions),
        tokens,
        autoPersistToken,
        proofDefaults: { wallet, requestAddressBeforeVerify },
        timeoutMs,
        silenceMs: heartbeatTimeoutMs,
      })
      return {
        ...calls,
        async finalizeOrder(order, given) {
          const finalized = await calls.finalizeOrder(order, given)
          if (finalized.kind === 'login') $store.notify('$sessionSignal')
          return finalized
        },
      }
    },
  } satisfies BetterAuthClientPlugin
}

/** Only what was given: an option that is `undefined` does not hide its default. */
function defined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
