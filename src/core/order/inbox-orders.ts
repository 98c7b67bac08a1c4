import { bearerToken, type RequestContext } from '../../base/request.ts'
import type { RateLimiter } from '../../limits/rate.ts'
import { CountersignError, invalidField, refused } from '../../shared/errors.ts'
import { pick } from '../../shared/given.ts'
import type { InboxOrder } from '../../shared/orders.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { CurrentSession, Session } from '../users/host.ts'
import type { StandaloneHost } from '../users/standalone.ts'
import type { Users } from '../users/users.ts'
import type { ProvenIdentity } from '../wallet/wallet.ts'
import { entryOf, type Inboxes } from './inbox.ts'
import type { OrderRecord } from './order.ts'

/** Parts of {@link InboxOrders}. */
export interface InboxOrdersParts {
  /** Orders of another application that shares the store are not listed. */
  readonly appName: string
  /** The address of the page on which a user approves an order. */
  readonly approvalUrl: (orderId: string) => string
  readonly inboxes: Inboxes
  readonly host: Pick<StandaloneHost, 'currentSession' | 'peekSession' | 'findSession'>
  readonly users: Pick<Users, 'find' | 'walletsOf' | 'admit'>
  readonly origins: Pick<OriginPolicy, 'requireOwn'>
  /** Limits looks without a live session. Without it, there is no such limit. */
  readonly limiter?: RateLimiter | undefined
}

/** Time in ms for which a wallet that was added to a user approves no order of the user's inbox. */
const newWalletMs = 24 * 60 * 60_000

/** Sessions, users and wallets of orders for an inbox: only the user that an order names claims and approves it. */
export class InboxOrders {
  readonly #parts: InboxOrdersParts

  constructor(parts: InboxOrdersParts) {
    this.#parts = parts
  }

  /**
   * The open orders of the request's user, newest first. Extends no session, and counts on a limit only without a live
   * one.
   */
  async list(request: RequestContext): Promise<readonly InboxOrder[]> {
    const { appName, inboxes, limiter } = this.#parts
    const session = await this.#looker(request).catch(async (refusal: unknown) => {
      await limiter?.spend('session', request)
      throw refusal
    })
    requireDirect(session)
    const entries = await inboxes.list(session.userId)
    return entries
      .filter((entry) => entry.appName === appName)
      .map((entry) => pick(entry, ['orderId', 'displayTitle', 'displaySummary', 'startedBy', 'createdAt', 'expiresAt']))
  }

  async #looker(request: RequestContext): Promise<Session> {
    this.#requireOwnOrigin(request)
    return await this.#parts.host.peekSession(request, true)
  }

  /** The address of the page on which a user approves an order. */
  approvalUrl(orderId: string): string {
    return this.#parts.approvalUrl(orderId)
  }

  /** The session of a request that claims an order. */
  async claimer(request: RequestContext): Promise<CurrentSession> {
    this.#requireOwnOrigin(request)
    const current = await this.#parts.host.currentSession(request)
    requireDirect(current.session)
    return current
  }

  /**
   * Rejects with SESSION_INVALID unless the session that claimed an order with a token lives, and its user may sign in:
   * what the session could read and decline, it can no more. The token is right, and counts as no wrong one.
   */
  async requireClaimer({ claimSessions, inboxUserId }: OrderRecord, challengeTokenHash: string): Promise<void> {
    const sessionId = claimSessions?.[challengeTokenHash]
    const session = sessionId === undefined ? undefined : await this.#parts.host.findSession(sessionId)
    if (session === undefined || session.userId !== inboxUserId) throw refused('SESSION_INVALID')
  }

  /** A cookie counts from the service's own pages only, whatever other origins are trusted. */
  #requireOwnOrigin(request: RequestContext): void {
    if (bearerToken(request) === undefined) this.#parts.origins.requireOwn(request)
  }

  /**
   * Enters a new order into its user's inbox. INVALID_REQUEST if there is no such user, RATE_LIMITED if too many orders
   * wait for the user.
   */
  async enter(order: OrderRecord, startKeyId: string): Promise<void> {
    await this.requireUser(order)
    await this.#parts.inboxes.enter(userIn(order), entryOf(order, startKeyId))
  }

  /** Refuses an order for an unknown user with INVALID_REQUEST. */
  async requireUser(order: OrderRecord): Promise<void> {
    if ((await this.#parts.users.find(userIn(order))) !== undefined) return
    throw invalidField('inbox_user_id', 'inbox_user_id is not the id of a user of this service')
  }

  /** Takes an order out of its user's inbox, if it is in. */
  async takeOut({ inboxUserId, orderId }: Pick<OrderRecord, 'inboxUserId' | 'orderId'>): Promise<void> {
    if (inboxUserId !== undefined) await this.#parts.inboxes.takeOut(inboxUserId, orderId)
  }

  /**
   * Refuses a wallet that cannot approve an order for its user now: WRONG_WALLET if it is not the user's, or was added
   * less than 24 hours before the order began; LOGIN_REFUSED if the user may not sign in with it.
   */
  async requireApprover(order: OrderRecord, identity: ProvenIdentity): Promise<void> {
    const { users } = this.#parts
    const userId = userIn(order)
    const user = await users.find(userId)
    const { adapterId, subject } = identity
    const wallet = (await users.walletsOf(userId)).find(
      (each) => each.adapterId === adapterId && each.subject === subject,
    )
    if (user === undefined || wallet === undefined) throw refused('WRONG_WALLET')
    // The wallet that made the user, at the same time. One that was added later does not become it.
    const isFirst = wallet.linkedAt === user.createdAt
    if (!isFirst && wallet.linkedAt > order.issuedAt - newWalletMs) throw tooNew()
    await users.admit(userId, identity)
  }
}

function userIn({ inboxUserId }: OrderRecord): string {
  return inboxUserId as string
}

/** Refuses a session that an order made: an attacker who relayed that order may hold it. */
function requireDirect(session: Session): void {
  if (session.orderId === undefined) return
  throw new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in with another device, which is not enough to answer requests; sign in on this device, then try again',
  )
}

function tooNew(): CountersignError {
  return new CountersignError(
    'WRONG_WALLET',
    'This wallet was added to the user less than 24 hours before the request; sign with another wallet of the user',
  )
}
