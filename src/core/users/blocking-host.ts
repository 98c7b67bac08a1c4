import type { WalletIdentity } from '../wallet/proof.ts'
import type { Host } from './host.ts'

/**
 * A session host of the application's own for which the blocks of operators hold: a blocked wallet gets no user, and so no session.
 * `requireNotBlocked` rejects with LOGIN_REFUSED for such a wallet.
 */
export function blockingHost(host: Host, requireNotBlocked: (wallet: WalletIdentity) => Promise<void>): Host {
  return {
    ...host,
    async resolveUser(identity, request) {
      await requireNotBlocked(identity)
      return await host.resolveUser(identity, request)
    },
  }
}
