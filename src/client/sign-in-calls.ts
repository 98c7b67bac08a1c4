import type { SignInApi } from './api.ts'
import { runTrusted } from './call.ts'
import { given } from './given.ts'
import { PreparedNonce } from './prepared-nonce.ts'
import { type SignInOptions, signIn } from './sign-in.ts'
import type { TokenStore } from './token-store.ts'
import type { NonceChallenge, NonceRequest, Session, SignInResult, SigningAccount } from './types.ts'
import type { Wallet } from './wallet.ts'

/** Options of {@link SignInCalls.prepareSignIn}. */
export interface PrepareSignInOptions extends Pick<SignInOptions, 'appName' | 'signal'> {
  /**
   * Account that is going to sign, for wallets with `getAccount`. `signInWallet` uses the nonce only if the wallet then names the
   * same one, and fetches another if not. Default: a nonce for wallets without `getAccount`.
   */
  readonly account?: SigningAccount | undefined
}

/** Calls for a direct sign-in. */
export interface SignInCalls {
  /**
   * Signs in with a wallet on this device: nonce, wallet signature, verification. Call it in a user gesture, because the
   * wallet may open a window. It does not retry: after NETWORK, call it again.
   */
  signInWallet(options?: SignInOptions): Promise<SignInResult>
  /**
   * Fetches a nonce in advance, so that `signInWallet` makes no network call between the tap and the wallet. The nonce is
   * replaced before it expires for as long as the page is visible, until the user has signed in or `signal` aborts.
   */
  prepareSignIn(options?: PrepareSignInOptions): Promise<void>
  /** Fetches a nonce for `signInWallet`, which takes it as `challenge`. Most pages need no such call: `signInWallet` makes it. */
  issueNonce(options?: PrepareSignInOptions): Promise<NonceChallenge>
}

/** Options of {@link signInCalls}. */
export interface SignInCallsOptions {
  readonly service: SignInApi
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  readonly tokens: TokenStore
  /** Options of the calls, where they do not say otherwise. */
  readonly defaults: Omit<SignInOptions, 'signal' | 'challenge'>
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
  /** Called after a sign-in, with the wallet that the caller named. */
  readonly onSession: (session: Session, wallet: Wallet | undefined) => void
}

/** The calls for a direct sign-in, over any protocol. */
export function signInCalls(options: SignInCallsOptions): SignInCalls {
  const { service, baseUrl, tokens, defaults, timeoutMs, onSession } = options
  const issueNonce = (request: NonceRequest, signal: AbortSignal | undefined): Promise<NonceChallenge> =>
    runTrusted((call) => service.issueNonce(request, call), signal, timeoutMs, baseUrl)
  const prepared = new PreparedNonce((request) => issueNonce(request, undefined))
  return {
    async signInWallet(callOptions = {}) {
      const own = { ...defaults, ...given(callOptions) }
      const result = await signIn({ api: service, baseUrl, tokens, timeoutMs, prepared }, own)
      onSession(result.session, own.wallet)
      return result
    },
    prepareSignIn: ({ appName = defaults.appName, account, signal } = {}) =>
      prepared.start({ ...given({ appName }), ...account }, signal),
    issueNonce: ({ appName = defaults.appName, account, signal } = {}) =>
      issueNonce({ ...given({ appName }), ...account }, signal),
  }
}
