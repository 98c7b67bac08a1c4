import { type AuditTrail, noAudit } from '../../base/audit.ts'
import type { RequestContext } from '../../base/request.ts'
import { CountersignError, internalError } from '../../shared/errors.ts'
import { isPlainLine } from '../../shared/plain-line.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { CurrentSession, HeldWallet, Host, LinkingUsers, Session } from '../users/host.ts'
import type { Users } from '../users/users.ts'
import type { Prover } from '../wallet/prover.ts'
import type { Proof, ProvenIdentity, WalletNamed } from '../wallet/wallet.ts'
import type { NonceRecord, Nonces } from './nonce.ts'

/** Parts of {@link WalletLinks}. */
export interface WalletLinksParts<Linked = void> {
  readonly nonces: Nonces
  readonly prover: Prover
  readonly origins: OriginPolicy
  readonly host: Pick<Host, 'currentSession'>
  readonly users: LinkingUsers<Linked>
}

/**
 * Adds wallets to the signed-in user: a challenge of its own that names the user, and a signature over it. A signature
 * for a sign-in adds no wallet, and one for adding a wallet makes no session.
 *
 * Both steps need a session that counts as fresh and that no order made. An attacker who relays an order gets a session
 * of the user who approved it; that must not be enough to add the attacker's wallet. `Linked` is what comes back for a
 * wallet that was added.
 */
export class WalletLinks<Linked = void> {
  readonly #parts: WalletLinksParts<Linked>

  constructor(parts: WalletLinksParts<Linked>) {
    this.#parts = parts
  }

  /**
   * Makes a challenge for the request's origin, which must be trusted, and for the request's user. `expectedAppName`,
   * if given, must be the server's own. The message is the text for the wallet that is named, and the nonce keeps what
   * is named. `cookies` are Set-Cookie header values.
   */
  async issueNonce(
    expectedAppName: string | undefined,
    wallet: WalletNamed,
    request: RequestContext,
  ): Promise<{ readonly challenge: NonceRecord; readonly cookies: readonly string[] }> {
    const { nonces, prover, origins } = this.#parts
    const origin = origins.requireTrusted(request)
    nonces.requireAppName(expectedAppName)
    const { session, cookies } = await this.freshSession(request)
    const { userId, address } = session
    requirePlainUserId(userId)
    const link = { userId, sessionAddress: address === '' ? undefined : address }
    const make = (nonce: NonceRecord): string => prover.textFor(nonce, wallet, request.origin)
    const challenge = await nonces.issue(origin, { link, askedFor: wallet, ip: request.ip, make })
    return { challenge, cookies }
  }

  /**
   * Consumes the nonce, checks the proof over its challenge, and adds the wallet to the request's user. The nonce must
   * be that user's, and the request must come from the nonce's own origin. `session` is the request's, `linked` what
   * `users` resolves with, `cookies` are Set-Cookie header values.
   */
  async link(
    nonceId: string,
    proof: Proof,
    request: RequestContext,
  ): Promise<CurrentSession & { readonly identity: ProvenIdentity; readonly linked: Linked }> {
    const { nonces, prover, origins, users } = this.#parts
    const { session, cookies } = await this.freshSession(request)
    const nonce = await nonces.consume(nonceId, { request, origins, userId: session.userId })
    const { identity } = await prover.prove(nonce, proof, { pageOrigin: request.origin })
    const linked = await users.link(session, identity)
    return { identity, linked, session, cookies }
  }

  /**
   * The request's session. SESSION_NOT_FRESH if it is not enough to change the user's wallets. `cookies` are Set-Cookie
   * header values.
   */
  async freshSession(request: RequestContext): Promise<CurrentSession> {
    const { host, users } = this.#parts
    const current = await host.currentSession(request)
    if (current.session.orderId !== undefined) {
      throw new CountersignError(
        'SESSION_NOT_FRESH',
        'You signed in with another device, which is not enough to change your wallets; sign in on this device, ' +
          'then try again',
      )
    }
    users.requireFresh(current.session)
    return current
  }
}

/**
 * A host's user ids can be any text. One that could forge a line is refused: it stands in the text as it is, so that a
 * reader can compare it.
 */
function requirePlainUserId(userId: string): void {
  if (isPlainLine(userId)) return
  throw internalError(
    new TypeError(
      'the id of the user is not one line of text without control, text-direction and invisible characters, so ' +
        'no wallet can be added',
    ),
  )
}

/** A wallet of the caller's user. */
export interface ListedWallet extends HeldWallet {
  /** Whether the caller signed in with it. */
  readonly current: boolean
}

/** Parts of {@link UserWallets}. */
export interface UserWalletsParts extends WalletLinksParts<HeldWallet> {
  readonly users: Pick<Users, 'requireFresh' | 'link' | 'list' | 'unlink'>
  /** Receives audit events of linked and unlinked wallets. Default: none. */
  readonly audit?: AuditTrail | undefined
}

/** The wallets of the signed-in user, if the store keeps them. `cookies` are Set-Cookie header values. */
export class UserWallets {
  /** Issues the nonces for adding a wallet. */
  readonly links: WalletLinks<HeldWallet>
  readonly #parts: UserWalletsParts

  constructor(parts: UserWalletsParts) {
    this.links = new WalletLinks(parts)
    this.#parts = parts
  }

  /** The wallets of the user of a session. */
  async of(session: Session): Promise<readonly HeldWallet[]> {
    return await this.#parts.users.list(session)
  }

  /** The wallets of the request's user, oldest first. */
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
    this.#record('wallet.linked', linked, session, request)
    return { wallet: listed(linked, session), cookies }
  }

  /**
   * Takes a wallet from the request's user; `address` is in any form that the adapter reads. Rejects with
   * SESSION_NOT_FRESH, WALLET_NOT_FOUND or LAST_WALLET.
   */
  async unlink(
    adapterId: string,
    address: string,
    request: RequestContext,
  ): Promise<{ readonly cookies: readonly string[] }> {
    const { users, prover } = this.#parts
    const { session, cookies } = await this.links.freshSession(request)
    let picked: HeldWallet | undefined
    await users.unlink(session, (wallets) => {
      const ofAdapter = wallets.filter((wallet) => wallet.adapterId === adapterId)
      // As it is listed first: the wallets of an adapter that is configured no more can only be named so.
      picked =
        ofAdapter.find((wallet) => wallet.address === address) ??
        ofAdapter.find((wallet) => prover.isAddressOf(wallet, address))
      return picked
    })
    if (picked !== undefined) this.#record('wallet.unlinked', picked, session, request)
    return { cookies }
  }

  #record(
    type: 'wallet.linked' | 'wallet.unlinked',
    { adapterId, address, publicKeyHex }: HeldWallet,
    { id: sessionId, userId }: Session,
    request: RequestContext,
  ): void {
    const { audit = noAudit } = this.#parts
    audit.record({ type, userId, sessionId, adapterId, address, publicKeyHex }, request)
  }
}

/** A wallet as the caller with this session sees it. */
export function listed(wallet: HeldWallet, session: Session): ListedWallet {
  const { adapterId, address } = session
  return { ...wallet, current: wallet.adapterId === adapterId && wallet.address === address }
}
