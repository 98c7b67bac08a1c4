import type { SignInApi } from './api.ts'
import { run, runTrusted } from './call.ts'
import { given } from './given.ts'
import type { HeldNonce, PreparedNonce } from './prepared-nonce.ts'
import { keepToken, type TokenStore } from './token-store.ts'
import type { NonceChallenge, SignInResult } from './types.ts'
import { type ProofOptions, proveWithWallet, type WalletProof } from './wallet.ts'

/** Options of a direct sign-in. */
export interface SignInOptions extends ProofOptions {
  /**
   * Application name that the signed message must begin with. If it is not the service's own, the service refuses with
   * APP_NAME_MISMATCH; it never takes the name from here.
   */
  readonly appName?: string | undefined
  /**
   * Answer of `issueNonce` whose text the wallet signs. Default: it is fetched. For wallets at sites that take the place of the page:
   * the page keeps the challenge, and passes it again with the signature that it came back with.
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
 * Signs in: nonce, wallet signature, verification. With a prepared nonce that fits, the wallet is asked before anything is
 * awaited.
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
