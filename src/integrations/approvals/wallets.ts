import { isSameAddress, type WalletAdapter } from '../../core/wallet/wallet.ts'

/** A wallet that may approve. */
export interface ApprovalWallet {
  /** Id of its wallet adapter, such as `nimiq`. */
  readonly adapterId: string
  /** In any spelling that the adapter knows. For a contract wallet of Ethereum, its CAIP-10 identifier. */
  readonly address: string
}

/** Most wallets that may approve one action. */
const maxWallets = 5

/** A copy of the wallets, whose addresses are in their canonical form. Throws a `TypeError` if there is a wrong one. */
export function takeWallets(
  wallets: readonly ApprovalWallet[],
  adapters: readonly WalletAdapter[],
): readonly ApprovalWallet[] {
  if (!Array.isArray(wallets) || wallets.length === 0 || wallets.length > maxWallets) {
    throw new TypeError(`wallets must be a list of 1 to ${maxWallets} wallets`)
  }
  return wallets.map(({ adapterId, address }) => {
    const adapter = adapters.find(({ id }) => id === adapterId)
    if (adapter === undefined) throw new TypeError('wallets: adapterId must be the id of one of the adapters')
    const canonical = typeof address === 'string' ? adapter.readAddress(address) : undefined
    if (canonical === undefined) throw new TypeError(`wallets: this is no address of ${adapter.id}`)
    return { adapterId: adapter.id, address: canonical }
  })
}

/** Whether a wallet is among those of a list. */
export function includesWallet(
  wallets: readonly ApprovalWallet[],
  { adapterId, address }: ApprovalWallet,
  adapters: readonly WalletAdapter[],
): boolean {
  const adapter = adapters.find(({ id }) => id === adapterId)
  if (adapter === undefined) return false
  return wallets.some((wallet) => wallet.adapterId === adapterId && isSameAddress(adapter, wallet.address, address))
}
