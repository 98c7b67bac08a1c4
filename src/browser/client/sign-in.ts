import { given } from '../../shared/given.ts'
import type { NonceChallenge, NonceRequest, Session, SignInResult, SigningAccount } from '../../shared/session.ts'
import type { SignInApi } from './api.ts'
import { run, runTrusted } from './call.ts'
import { type HeldNonce, PreparedNonce } from './prepared-nonce.ts'
import { keepToken, type TokenStore } from './token-store.ts'
import { type ProofOptions, proveWithWallet, type Wallet, type WalletProof } from './wallet.ts'

/** Options of a direct sign-in. */
export interface SignInOptions extends ProofOptions {
  /**
   * Application name that the signed message must begin with. If it is not the service's own, the service refuses with
   * APP_NAME_MISMATCH; it never takes the name from here.
   */
  readonly appName?: string | undefined
  /**
   * Answer of `issueNonce` whose text the wallet signs. Default: it is fetched. For wallets at sites that take the
   * place of the page: the page keeps the challenge, and passes it again with the signature that it came back with.
   */
  readonly challenge?: NonceChallenge | undefined
  /** Whether the session token is stored; if not, only the cookie keeps the user signed in. Default true. */
  readonly autoPersistToken?: boolean | undefined
}

/** What a direct sign-in works with. */
export interface SignInParts {
  readonly api: SignInApi
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  readonly tokens: TokenStore
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
  readonly prepared?: PreparedNonce
}

/**
 * Signs in: nonce, wallet signature, verification. With a prepared nonce that fits, the wallet is asked before anything
 * is awaited.
 */
export async function signIn(
  { api, baseUrl, tokens, timeoutMs, prepared }: SignInParts,
  options: SignInOptions,
): Promise<SignInResult> {
  const { appName, signal } = options
  const used: { held?: HeldNonce | undefined; nonceId: string } = { nonceId: '' }
  const textOf = ({ nonceId, message }: NonceChallenge): string => {
    used.nonceId = nonceId
    return message
  }
  let proof: WalletProof
  try {
    proof = await proveWithWallet((account) => {
      if (options.challenge !== undefined) return textOf(options.challenge)
      used.held = prepared?.take(appName, account)
      if (used.held !== undefined) return textOf(used.held.challenge)
      const request = { ...given({ appName }), ...account }
      return runTrusted((call) => api.issueNonce(request, call), signal, timeoutMs, baseUrl).then(textOf)
    }, options)
  } catch (thrown) {
    if (used.held !== undefined) prepared?.giveBack(used.held)
    throw thrown
  }
  const request = { ...proof, nonceId: used.nonceId }
  const result = await run((call) => api.verifySignIn(request, call), signal, timeoutMs)
  prepared?.stop()
  keepToken(tokens, result.token, options.autoPersistToken)
  return result
}

/** Options of {@link SignInCalls.prepareSignIn}. */
export interface PrepareSignInOptions extends Pick<SignInOptions, 'appName' | 'signal'> {
  /**
   * Account that is going to sign, for wallets with `getAccount`. `signInWallet` uses the nonce only if the wallet then
   * names the same one, and fetches another if not. Default: a nonce for wallets without `getAccount`.
   */
  readonly account?: SigningAccount | undefined
}

/** Calls for a direct sign-in. */
export interface SignInCalls {
  /**
   * Signs in with a wallet on this device: nonce, wallet signature, verification. Call it in a user gesture, because
   * the wallet may open a window. It does not retry: after NETWORK, call it again.
   */
  signInWallet(options?: SignInOptions): Promise<SignInResult>
  /**
   * Fetches a nonce in advance, so that `signInWallet` makes no network call between the tap and the wallet. The nonce
   * is replaced before it expires for as long as the page is visible, until the user has signed in or `signal` aborts.
   */
  prepareSignIn(options?: PrepareSignInOptions): Promise<void>
  /**
   * Fetches a nonce for `signInWallet`, which takes it as `challenge`. Most pages need no such call: `signInWallet`
   * makes it.
   */
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
