import type { AuthContext } from '@better-auth/core'
import type { Session } from '../core/users/host.ts'
import { type WalletIdentity, walletOf } from '../core/wallet/wallet.ts'
import { guarded } from './failures.ts'
import type { WalletSettings } from './settings.ts'

/**
 * The wallets of a session's user: their accounts with wallet adapters. With `resolveLogin` wallets are not accounts, and this is
 * the wallet that the session was made with.
 */
export async function walletsOfUser(
  { internalAdapter }: AuthContext,
  { resolveLogin, adapterIds }: WalletSettings,
  session: Session,
): Promise<WalletIdentity[]> {
  if (resolveLogin !== undefined) return [walletOf(session)]
  const accounts = await guarded(() => internalAdapter.findAccounts(session.userId))
  return accounts
    .filter(({ providerId }) => adapterIds.has(providerId))
    .map(({ providerId, accountId }) => ({ adapterId: providerId, subject: accountId }))
}
