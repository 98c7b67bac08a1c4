import type { PreparedNonce } from './prepared-nonce.ts'
import type { TokenStore } from './token-store.ts'
import type { NonceChallenge, SignInResult } from './types.ts'
import { type ProofOptions, proveWithWallet, type WalletProof } from './wallet.ts'

/** The two calls of a direct sign-in, over any protocol. */
export interface SignInApi {
  issueNonce(appName: string | undefined, signal: AbortSignal | undefined): Promise<NonceChallenge>
  verifySignIn(
    proof: WalletProof & { readonly nonceId: string },
    signal: AbortSignal | undefined,
  ): Promise<SignInResult>
}

/** Options of a direct sign-in. */
export interface SignInOptions extends ProofOptions {
  /**
   * Application name that the signed message must begin with. If it is not the service's own, the service refuses with
   * APP_NAME_MISMATCH; it never takes the name from here.
   */
  readonly appName?: string | undefined
  /** Whether the session token is stored; if not, only the cookie keeps the user signed in. Default true. */
  readonly autoPersistToken?: boolean | undefined
}

/** Signs in: nonce, wallet signature, verification. With a prepared nonce, the wallet is asked before anything is awaited. */
export async function signIn(
  api: SignInApi,
  tokens: TokenStore,
  options: SignInOptions,
  prepared?: PreparedNonce,
): Promise<SignInResult> {
  const { appName, signal } = options
  const held = prepared?.take(appName)
  const challenge = held?.challenge ?? (await api.issueNonce(appName, signal))
  let proof: WalletProof
  try {
    proof = await proveWithWallet(challenge.message, options)
  } catch (thrown) {
    if (held !== undefined) prepared?.giveBack(held)
    throw thrown
  }
  const result = await api.verifySignIn({ ...proof, nonceId: challenge.nonceId }, signal)
  prepared?.stop()
  keepToken(tokens, result.token, options.autoPersistToken)
  return result
}

/** Stores a new session's token. Without `autoPersistToken`, removes an older one, which would take precedence over the cookie. */
export function keepToken(tokens: TokenStore, token: string, autoPersistToken = true): void {
  if (autoPersistToken) tokens.save(token)
  else tokens.clear()
}
