import type { PreparedNonce } from './prepared-nonce.ts'
import type { TokenStore } from './token-store.ts'
import type { NonceChallenge, SignInResult } from './types.ts'
import { type ProofOptions, proveWithWallet, type WalletProof } from './wallet.ts'

/** The two calls of a direct sign-in, over whichever protocol. */
export interface SignInApi {
  issueNonce(appName: string | undefined, signal: AbortSignal | undefined): Promise<NonceChallenge>
  verifySignIn(
    proof: WalletProof & { readonly nonceId: string },
    signal: AbortSignal | undefined,
  ): Promise<SignInResult>
}

/** What a sign-in can be told. */
export interface SignInOptions extends ProofOptions {
  /**
   * The application name that the signed message is expected to begin with. The service refuses when it is not its own
   * (APP_NAME_MISMATCH), and never takes the name from here.
   */
  readonly appName?: string | undefined
  /** Whether the token is kept in the storage; with false, the cookie has to do. Default true. */
  readonly autoPersistToken?: boolean | undefined
}

/** Nonce, wallet, verify. A nonce that was prepared is signed before anything is waited for. */
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

/** Keeps a new session's token; or, where only the cookie is to count, drops an older one, which would win over it. */
export function keepToken(tokens: TokenStore, token: string, autoPersistToken = true): void {
  if (autoPersistToken) tokens.save(token)
  else tokens.clear()
}
