import type { SessionCalls } from './sessions.ts'
import { type FormAccount, HeldForms, type SignInFormClient, signInForm } from './sign-in-steps.ts'

/** The part of a client that RainbowKit's adapter uses. */
export type RainbowKitClient = SignInFormClient & Pick<SessionCalls, 'signOut'>

/** The functions that `createAuthenticationAdapter` of RainbowKit takes. */
export interface RainbowKitFunctions {
  /** Fetches a nonce, before the user has chosen an account. */
  getNonce(): Promise<string>
  /**
   * The text for the account. It has another nonce than the one given if that was sent already or is about to expire:
   * RainbowKit keeps a nonce for as long as its window is open.
   */
  createMessage(input: { readonly nonce: string; readonly address: string; readonly chainId: number }): Promise<string>
  /** Signs in. Resolves with `true`, or rejects with a `CountersignClientError`, for which RainbowKit has words. */
  verify(input: { readonly message: string; readonly signature: string }): Promise<boolean>
  /** Ends the session. RainbowKit calls it when the account changes and when the wallet disconnects. */
  signOut(): Promise<void>
}

/**
 * RainbowKit's sign-in with Ethereum on a client of Countersign, for `createAuthenticationAdapter`. Its `status` is the
 * page's to say, from `client.onSession` or `useSession`.
 */
export function rainbowKit(client: RainbowKitClient): RainbowKitFunctions {
  const steps = signInForm(client)
  const held = new HeldForms()
  const issue = async () => {
    const nonce = await steps.issueNonce()
    held.add(nonce)
    return nonce
  }
  return {
    getNonce: async () => (await issue()).form.nonce,
    async createMessage({ nonce, address, chainId }) {
      return await steps.createMessage(held.get(nonce) ?? (await issue()), { address, chainId })
    },
    async verify({ message, signature }) {
      const { nonce, ...account } = accountIn(message)
      await steps.verify(held.take(nonce), { ...account, signature })
      return true
    },
    signOut: () => client.signOut(),
  }
}

/**
 * What a text of `createMessage` names. RainbowKit passes nothing else to `verify`, and several can be open at once.
 */
function accountIn(message: string): FormAccount & { readonly nonce: string } {
  const [, address = ''] = message.split('\n')
  const [, chainId = '', nonce = ''] = /^Chain ID: (.*)\nNonce: (.*)$/m.exec(message) ?? []
  return { address, chainId, nonce }
}
