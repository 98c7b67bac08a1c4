import { defaultPrefix, type Fetcher, type RestOptions, restCalls } from './rest.ts'
import { restSignIn } from './rest-api.ts'
import { type SignInOptions, signIn } from './sign-in.ts'
import { defaultTimeoutMs } from './time-limit.ts'
import { TokenStore, type TokenStoreOptions } from './token-store.ts'
import type { SignInResult } from './types.ts'

/** Options of {@link signInWithWallet}. */
export interface SignInWithWalletOptions extends SignInOptions, TokenStoreOptions, RestOptions {}

/**
 * Signs in over REST with the caller's own `fetch`: nonce, wallet signature, verification. Small, for pages that need nothing
 * else of the client. Call it in a user gesture, because the wallet may open a window.
 *
 * Rejects with a `CountersignClientError`.
 */
export async function signInWithWallet(fetcher: Fetcher, options: SignInWithWalletOptions = {}): Promise<SignInResult> {
  const { baseUrl = '', endpointPrefix = defaultPrefix, timeoutMs = defaultTimeoutMs } = options
  const api = restSignIn(restCalls(fetcher, options), endpointPrefix)
  return await signIn({ api, baseUrl, tokens: new TokenStore(options), timeoutMs }, options)
}
