import type { RequestContext } from '../../base/request.ts'
import { CountersignError } from '../../shared/errors.ts'
import { type ListedWallet, listed, type WalletLinks } from '../sign-in/user-wallets.ts'
import type { CurrentSession, HeldWallet, Host } from '../users/host.ts'
import type { Users } from '../users/users.ts'
import type { ProvenIdentity } from '../wallet/wallet.ts'
import { identityOf, type OrderRecord, type OrderStarter } from './order.ts'

/** Parts of {@link LinkOrders}. */
export interface LinkOrdersParts {
  /** Decides which sessions may add a wallet. */
  readonly links: Pick<WalletLinks<HeldWallet>, 'freshSession'>
  readonly host: Pick<Host, 'currentSession'>
  readonly users: Pick<Users, 'requireLinkable' | 'link' | 'withdraw'>
}

/** A link order that is being finalized. */
interface Adding {
  /** The session that started the order. */
  readonly own: CurrentSession
  /** Rejects with ORDER_REJECTED if the order is taken back. */
  readonly requireStanding: () => Promise<void>
}

/** Sessions and wallets of link orders: the wallet that approves is added to the user of the session that starts. */
export class LinkOrders {
  readonly #parts: LinkOrdersParts

  constructor(parts: LinkOrdersParts) {
    this.#parts = parts
  }

  /** The user and session of a request that starts an order. The session must be as for adding a wallet directly. */
  async starterOf(
    request: RequestContext,
  ): Promise<{ readonly starter: OrderStarter; readonly cookies: readonly string[] }> {
    const { session, cookies } = await this.#parts.links.freshSession(request)
    const { userId, id: sessionId, adapterId, address, firstWallet } = session
    return { starter: { userId, sessionId, adapterId, address, firstWallet }, cookies }
  }

  /** The request's session, which must be the one that started the order (SESSION_REQUIRED). */
  async requireStarter({ starter }: OrderRecord, request: RequestContext): Promise<CurrentSession> {
    const current = await this.#parts.host.currentSession(request)
    if (current.session.id === starter?.sessionId) return current
    throw new CountersignError(
      'SESSION_REQUIRED',
      'Only the session that started the order can finalize it; start a new order from this one',
    )
  }

  /** Refuses a wallet that the order's user could not add now: WALLET_TAKEN, or one more than a user can have. */
  async requireAddable(order: OrderRecord, wallet: ProvenIdentity): Promise<void> {
    await this.#parts.users.requireLinkable(starterIn(order), wallet)
  }

  /** Adds the wallet that approved the order. The same again for a wallet that is the user's already. */
  async add(order: OrderRecord, { own: { session }, requireStanding }: Adding): Promise<ListedWallet> {
    return listed(await this.#parts.users.link(session, identityOf(order), requireStanding), session)
  }

  /** Unlinks the wallet of an order that is taken back. Resolves with false if the order has not added it. */
  async takeBack(order: OrderRecord): Promise<boolean> {
    return await this.#parts.users.withdraw(starterIn(order), identityOf(order), order.issuedAt)
  }
}

function starterIn({ starter }: OrderRecord): OrderStarter {
  return starter as OrderStarter
}
