import { type AuditTrail, noAudit } from '../../base/audit/trail.ts'
import type { RequestContext } from '../../base/request.ts'
import type { Session, UserWallet, WalletHost } from '../users/host.ts'
import type { Proof } from '../wallet/proof.ts'
import { WalletLinks, type WalletLinksParts } from './link.ts'

/** A wallet of the caller's user. */
export interface ListedWallet extends UserWallet {
  /** Whether the caller signed in with it. */
  readonly current: boolean
}

/** Parts of {@link UserWallets}. */
export interface UserWalletsParts extends WalletLinksParts<UserWallet> {
  readonly host: WalletHost
  /** Told which wallets are linked and unlinked. Without it, nobody is. */
  readonly audit?: AuditTrail | undefined
}

/** The wallets of the signed-in user, on a host that keeps them itself. `cookies` are Set-Cookie header values. */
export class UserWallets {
  /** Issues the nonces for adding a wallet. */
  readonly links: WalletLinks<UserWallet>
  readonly #parts: UserWalletsParts

  constructor(parts: UserWalletsParts) {
    this.links = new WalletLinks(parts)
    this.#parts = parts
  }

  /** The wallets of the user of a session. */
  async of(session: Session): Promise<readonly UserWallet[]> {
    return await this.#parts.host.listWallets(session)
  }

  /** The wallets of the request's user, the one linked first first. */
  async list(
    request: RequestContext,
  ): Promise<{ readonly wallets: readonly ListedWallet[]; readonly cookies: readonly string[] }> {
    const { session, cookies } = await this.#parts.host.currentSession(request)
    return { wallets: (await this.of(session)).map((wallet) => listed(wallet, session)), cookies }
  }

  /** Adds the wallet of a proof to the request's user: see {@link WalletLinks.link}. */
  async link(
    nonceId: string,
    proof: Proof,
    request: RequestContext,
  ): Promise<{ readonly wallet: ListedWallet; readonly cookies: readonly string[] }> {
    const { linked, session, cookies } = await this.links.link(nonceId, proof, request)
    this.#tell('wallet.linked', linked, session, request)
    return { wallet: listed(linked, session), cookies }
  }

  /**
   * Takes a wallet from the request's user; `address` is in any form that the adapter reads. Rejects with SESSION_NOT_FRESH,
   * WALLET_NOT_FOUND or LAST_WALLET.
   */
  async unlink(
    adapterId: string,
    address: string,
    request: RequestContext,
  ): Promise<{ readonly cookies: readonly string[] }> {
    const { host, prover } = this.#parts
    const { session, cookies } = await this.links.freshSession(request)
    let picked: UserWallet | undefined
    await host.unlinkWallet(session, (wallets) => {
      const ofAdapter = wallets.filter((wallet) => wallet.adapterId === adapterId)
      // As it is listed first: the wallets of an adapter that is configured no more can only be named so.
      picked =
        ofAdapter.find((wallet) => wallet.address === address) ??
        ofAdapter.find((wallet) => prover.isAddressOf(wallet, address))
      return picked
    })
    if (picked !== undefined) this.#tell('wallet.unlinked', picked, session, request)
    return { cookies }
  }

  #tell(
    type: 'wallet.linked' | 'wallet.unlinked',
    { adapterId, address, publicKeyHex }: UserWallet,
    { id: sessionId, userId }: Session,
    request: RequestContext,
  ): void {
    const { audit = noAudit } = this.#parts
    audit.tell({ type, userId, sessionId, adapterId, address, publicKeyHex }, request)
  }
}

function listed(wallet: UserWallet, session: Session): ListedWallet {
  const { adapterId, address } = session
  return { ...wallet, current: wallet.adapterId === adapterId && wallet.address === address }
}
