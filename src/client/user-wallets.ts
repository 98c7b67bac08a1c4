import type { WalletApi } from './api.ts'
import type { CallOptions } from './call.ts'
import { given } from './given.ts'
import type { Authorised } from './sessions.ts'
import type { UserWallet } from './types.ts'
import { type ProofOptions, proveWithWallet } from './wallet.ts'

/** Options of {@link UserWalletCalls.linkWallet}. */
export interface LinkWalletOptions extends ProofOptions {
  /** Application name that the signed message must begin with; see `signInWallet`. */
  readonly appName?: string | undefined
}

/**
 * Calls for the wallets of the signed-in user. They reject with NOT_ENABLED if the application keeps its users or sessions itself.
 */
export interface UserWalletCalls {
  /** The user's wallets, the one linked first first. */
  listWallets(options?: CallOptions): Promise<readonly UserWallet[]>
  /**
   * Adds a wallet to the signed-in user, who can then sign in with it. Call it in a user gesture, because the wallet may open a
   * window. Rejects with SESSION_NOT_FRESH unless the user has signed in on this device in the last ten minutes (not with a
   * phone), and with WALLET_TAKEN if the wallet is another user's. Not retried.
   */
  linkWallet(options?: LinkWalletOptions): Promise<UserWallet>
  /**
   * Takes a wallet from the signed-in user. Its sessions end; if it signs in again, it is a new user. Rejects with LAST_WALLET,
   * WALLET_NOT_FOUND and, as `linkWallet` does, with SESSION_NOT_FRESH.
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
    async listWallets(options) {
      return (await authorised((call) => api.listWallets({}, call), options)).wallets
    },
    async linkWallet(options = {}) {
      const { appName, signal, ...proving } = { ...defaults, ...given(options) }
      const issued = { nonceId: '' }
      const proof = await proveWithWallet(
        async (account) => {
          const request = { ...given({ appName }), ...account }
          const { nonceId, message } = await authorised((call) => api.issueLinkNonce(request, call), { signal })
          issued.nonceId = nonceId
          return message
        },
        { ...proving, signal },
      )
      const { wallet } = await authorised((call) => api.linkWallet({ ...issued, proof }, call), { signal })
      return wallet
    },
    async unlinkWallet({ adapterId, address }, options) {
      await authorised((call) => api.unlinkWallet({ adapterId, address }, call), options)
    },
  }
}
