import { type ClientErrorCode, CountersignClientError } from '../client/errors.ts'
import type { RefusalStatus } from './fetch.ts'

/** The public API of the plugins for Better Auth's client. Everything that is not listed here is private. */

import type { BetterAuthClientPlugin } from 'better-auth/client'
import type { crossDevice } from '../../better-auth/cross-device.ts'
import type { LinkedWallet, walletSignIn } from '../../better-auth/wallet-sign-in.ts'
import { given } from '../../shared/defined-fields.ts'
import { computerPaths, desktopOrderPaths, linkPath, signInPaths } from '../../shared/rest-paths.ts'
import type { KnownComputer, SignInResult } from '../../shared/session.ts'
import { defaultTimeoutMs } from '../client/call.ts'
import { type ClientCalls, type ClientCallsOptions, type OrderCalls, orderCalls } from '../client/calls.ts'
import { ComputerKey } from '../client/computer-key.ts'
import { defaultHeartbeatTimeoutMs } from '../client/order-watch.ts'
import { type RestCall, restOrders, restSignIn } from '../client/rest-api.ts'
import { restWatch } from '../client/rest-watch.ts'
import { proveForLink, type SessionCalls } from '../client/sessions.ts'
import { type SignInOptions, signIn } from '../client/sign-in.ts'
import { TokenStore, type TokenStoreOptions } from '../client/token-store.ts'
import type { ProofOptions } from '../client/wallet.ts'
import { bearerPlugin, callerOf, openStream } from './fetch.ts'

export type { LinkedWallet } from '../../better-auth/wallet-sign-in.ts'
export type * from '../../shared/orders.ts'
export type * from '../../shared/session.ts'
export type { OrderCalls } from '../client/calls.ts'
export { type ClientErrorCode, CountersignClientError } from '../client/errors.ts'
export type { SignInOptions } from '../client/sign-in.ts'
export type { TokenStorage } from '../client/token-store.ts'
export { nimiqHub, nimiqPay, type Wallet } from '../client/wallet.ts'

/** Options of {@link walletSignInClient}. Those that a call has too are its defaults. */
export interface WalletSignInClientOptions
  extends TokenStoreOptions,
    Pick<SignInOptions, 'appName' | 'wallet' | 'requestAddressBeforeVerify' | 'autoPersistToken'> {
  /** Path of the endpoints, as in the server's plugin. Default /wallet. */
  readonly endpointPrefix?: string | undefined
}

/**
 * Calls that {@link walletSignInClient} adds to Better Auth's client. They reject with a `CountersignClientError`, but
 * for `signIn.wallet`.
 */
export interface WalletSignInActions
  extends Pick<ClientCalls, 'signInWallet' | 'readStoredToken' | 'clearStoredToken'> {
  readonly signIn: {
    /**
     * Does the same as `signInWallet`, and answers as Better Auth's own calls do: it resolves with `{ data, error }`,
     * of which one is `null`, also if the wallet or the server failed.
     */
    wallet(options?: SignInOptions): Promise<WalletSignInAnswer>
  }
  /**
   * Adds a wallet to the signed-in user, who can then sign in with it. Rejects with SESSION_NOT_FRESH unless the user
   * has signed in recently and on this device (not with a phone), and with WALLET_TAKEN if another user has the wallet.
   */
  linkWallet(options?: ProofOptions): Promise<LinkedWallet>
}

/**
 * The plugin for Better Auth's client that signs in directly. A stored token is sent as `Authorization: Bearer`, for
 * which the server needs Better Auth's bearer plugin. With `autoPersistToken: false` only the cookie is used.
 */
export function walletSignInClient(options: WalletSignInClientOptions = {}) {
  const { endpointPrefix = '/wallet', appName, wallet, requestAddressBeforeVerify, autoPersistToken } = options
  const defaults = { appName, wallet, requestAddressBeforeVerify, autoPersistToken }
  const tokens = new TokenStore(options)
  const nonce = endpointPrefix + signInPaths.nonce
  const verify = endpointPrefix + signInPaths.verify
  const link = endpointPrefix + linkPath
  return {
    id: 'wallet-sign-in',
    $InferServerPlugin: {} as ReturnType<typeof walletSignIn>,
    pathMethods: { [nonce]: 'POST', [verify]: 'POST', [link]: 'POST' },
    fetchPlugins: [bearerPlugin(tokens)],
    // For the endpoint as Better Auth's client calls it by its path.
    atomListeners: [{ matcher: (path) => path === verify, signal: '$sessionSignal' }],
    getActions: ($fetch, $store, clientOptions): WalletSignInActions => {
      const call = callerOf($fetch)
      const signInOver = async (own: RestCall, callOptions: SignInOptions): Promise<SignInResult> => {
        const baseUrl = clientOptions?.baseURL ?? ''
        const parts = { service: restSignIn(own, endpointPrefix), baseUrl, tokens, timeoutMs: defaultTimeoutMs }
        const result = await signIn(parts, { ...defaults, ...given(callOptions) })
        $store.notify('$sessionSignal')
        return result
      }
      return {
        signIn: {
          wallet: (callOptions = {}) => answerOf((onRefusal) => signInOver(callerOf($fetch, onRefusal), callOptions)),
        },
        signInWallet: (callOptions = {}) => signInOver(call, callOptions),
        async linkWallet(callOptions = {}) {
          const { signal } = callOptions
          const { nonceId, proof } = await proveForLink(
            (account) => call(nonce, { body: { purpose: 'link', ...given({ appName }), ...account }, signal }),
            { ...defaults, ...given(callOptions) },
          )
          return await call(link, { body: { ...proof, nonceId }, signal })
        },
        readStoredToken: () => tokens.read(),
        clearStoredToken: () => tokens.clear(),
      }
    },
  } satisfies BetterAuthClientPlugin
}

/** Options of {@link crossDeviceClient}. */
export interface CrossDeviceClientOptions extends Omit<ClientCallsOptions, 'appName' | 'baseUrl'> {}

/**
 * Calls that {@link crossDeviceClient} adds to Better Auth's client. All reject with a `CountersignClientError`; those
 * for known computers with NOT_ENABLED if the server's plugin has no store.
 */
export interface CrossDeviceActions
  extends OrderCalls,
    Pick<SessionCalls, 'listKnownComputers' | 'forgetKnownComputer'> {}

/**
 * The plugin for Better Auth's client for cross-device orders: the calls of the desktop and of the phone, and those for
 * the user's known computers.
 */
export function crossDeviceClient(options: CrossDeviceClientOptions = {}) {
  const { wallet, requestAddressBeforeVerify, autoPersistToken = true, knownComputer = true } = options
  const { timeoutMs = defaultTimeoutMs, heartbeatTimeoutMs = defaultHeartbeatTimeoutMs } = options
  const tokens = new TokenStore(options)
  return {
    id: 'cross-device',
    $InferServerPlugin: {} as ReturnType<typeof crossDevice>,
    // For the endpoint as Better Auth's client calls it by its path.
    atomListeners: [{ matcher: (path) => path === desktopOrderPaths.finalize, signal: '$sessionSignal' }],
    getActions: ($fetch, $store, clientOptions): CrossDeviceActions => {
      const call = callerOf($fetch)
      const baseUrl = clientOptions?.baseURL ?? ''
      const calls = orderCalls({
        service: {
          ...restOrders(call),
          watchOrder: restWatch({ open: (path, init) => openStream($fetch, clientOptions, path, init), call }),
        },
        baseUrl,
        computer: knownComputer ? new ComputerKey(baseUrl) : undefined,
        tokens,
        autoPersistToken,
        proofDefaults: { wallet, requestAddressBeforeVerify },
        timeoutMs,
        heartbeatTimeoutMs,
      })
      return {
        ...calls,
        async finalizeOrder(order, callOptions) {
          const finalized = await calls.finalizeOrder(order, callOptions)
          if (finalized.kind === 'login') $store.notify('$sessionSignal')
          return finalized
        },
        async listKnownComputers({ signal } = {}) {
          return (await call<{ computers: KnownComputer[] }>(computerPaths.list, { signal })).computers
        },
        async forgetKnownComputer(id, { signal } = {}) {
          await call(computerPaths.forget, { body: { id }, signal })
        },
      }
    },
  } satisfies BetterAuthClientPlugin
}

/** The failure of a sign-in, with the fields that errors of Better Auth's client have. */
export interface WalletSignInError {
  /** Stable code, for programs to act on. */
  readonly code: ClientErrorCode
  /** Message for developers. */
  readonly message: string
  /** HTTP status of the answer; 0 if there was none, as when the user declined in the wallet. */
  readonly status: number
  /** Reason phrase of the status; empty if there was no answer, and over HTTP/2. */
  readonly statusText: string
  /** Time after which a retry can succeed, in milliseconds, if the service stated one. */
  readonly retryAfterMs?: number
}

/** The outcome of a sign-in as Better Auth's client answers its calls. */
export type WalletSignInAnswer =
  | { readonly data: SignInResult; readonly error: null }
  | { readonly data: null; readonly error: WalletSignInError }

/**
 * Answers a sign-in, whose calls pass the status of a refusal to `onRefusal`. Rejects only with what is no failure
 * of the sign-in, such as the `TypeError` of a call with wrong options.
 */
async function answerOf(
  signIn: (onRefusal: (status: RefusalStatus) => void) => Promise<SignInResult>,
): Promise<WalletSignInAnswer> {
  let refusal: RefusalStatus = { status: 0, statusText: '' }
  try {
    const data = await signIn(({ status, statusText }) => {
      refusal = { status, statusText }
    })
    return { data, error: null }
  } catch (thrown) {
    if (!(thrown instanceof CountersignClientError)) throw thrown
    const { code, message, retryAfterMs } = thrown
    return { data: null, error: { ...refusal, code, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } }
  }
}
