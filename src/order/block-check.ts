import type { WalletIdentity } from '../wallet/proof.ts'

/** Rejects with LOGIN_REFUSED if an operator has blocked the wallet. */
export type RequireNotBlocked = (wallet: WalletIdentity) => Promise<void>

/**
 * Begins to ask whether the wallet that a proof claims to be by is blocked, before the proof is checked, beside other steps. What it
 * returns is asked about the wallet that the proof is found to prove: if that is another one, or at the second time, it asks anew.
 *
 * So a wallet can be approved that was blocked while its proof was checked. That is as good as a block just after the approval: every
 * way to finalize an order asks again.
 */
export function askedBeforeProof(
  claimed: WalletIdentity | undefined,
  requireNotBlocked: RequireNotBlocked,
): RequireNotBlocked {
  if (claimed === undefined) return requireNotBlocked
  let begun: Promise<void> | undefined = requireNotBlocked(claimed)
  // What it says of a wallet that turns out to be another one concerns nobody.
  begun.catch(() => {})
  return async (wallet) => {
    const isClaimed = wallet.adapterId === claimed.adapterId && wallet.subject === claimed.subject
    const answer = isClaimed ? begun : undefined
    begun = undefined
    await (answer ?? requireNotBlocked(wallet))
  }
}
