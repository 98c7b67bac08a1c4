import { bearerToken, type RequestContext } from '../../../base/request.ts'
import { given, pick } from '../../../shared/defined-fields.ts'
import { CountersignError, invalidField, refused } from '../../../shared/errors.ts'
import { type InboxOrder, newWalletHours } from '../../../shared/orders.ts'
import { requirePlainLine } from '../../../shared/plain-line.ts'
import type { CurrentSession, Session } from '../../users/host.ts'
import type { InboxEntry, Inboxes } from '../inboxes.ts'
import type { OrderRecord, OrdersByRecipe } from '../order.ts'
import type { OrderCall, OrderParts, Recipe } from './recipe.ts'
import { artifactOf, signFields } from './sign.ts'

const newWalletMs = newWalletHours * 60 * 60_000

/**
 * Orders of kind sign for the inbox of a user: only that user claims and approves them, by a session that no order
 * made. The desktop is the application's backend, which gets the proof by its finalize key.
 */
export const inbox: Recipe<'inbox'> = {
  label: 'orders with inbox_user_id',
  action: 'order.approve',
  takes: [...signFields, 'inboxUserId', 'ttlSeconds'],
  scanned: false,
  keepsSignedText: true,
  takesFinalizeKey: true,
  ttlSeconds: 3600,
  // The backend may be away for a while.
  finishMs: 10 * 60_000,

  async begin(input, { parts, request }) {
    parts.requireUsers()
    const { inboxUserId = '', payload } = input
    if (parts.settings.orderStartKeys === undefined) {
      throw invalidField('inbox_user_id', 'inbox_user_id is for services with start keys (orderStartKeys) only')
    }
    const requester = await parts.admission.requester(input, request, inbox)
    requirePlainLine('inbox_user_id', inboxUserId)
    if (payload === undefined) throw invalidField('payload', 'inbox_user_id needs payload')
    return { requester, own: { kind: 'sign', inboxUserId } }
  },

  async create(order, startKeyId, { parts }) {
    const { inboxUserId, orderId } = order
    const { users, inboxes } = parts.requireUsers()
    const requireUser = async (): Promise<void> => {
      if ((await users.find(inboxUserId)) !== undefined) return
      throw invalidField('inbox_user_id', 'inbox_user_id is not the id of a user of this service')
    }
    await requireUser()
    await inboxes.enter(inboxUserId, entryOf(order, startKeyId))
    try {
      await parts.records.create(order)
      // Asked after the write: a concurrent deletion of the user either finds this order, or is seen here.
      await requireUser()
    } catch (error) {
      await Promise.allSettled([parts.withdraw(orderId), inboxes.takeOut(inboxUserId, orderId)])
      throw error
    }
  },

  announce(order, { parts }) {
    const { orderId, inboxUserId: userId, displayTitle: title, origin, requester } = order
    const approvalUrl = parts.requireUsers().approvalUrl(orderId)
    const caller = { ip: requester.ip || undefined, origin, userAgent: requester.userAgent }
    parts.audit.record({ type: 'order.addressed', orderId, userId, ...given({ title }), approvalUrl }, caller)
    return approvalUrl
  },

  /** Challenge tokens count only while the session that claimed the order lives. */
  async requireHolder({ claimSessions, inboxUserId }, challengeTokenHash, { parts }) {
    const sessionId = claimSessions?.[challengeTokenHash]
    const session = sessionId === undefined ? undefined : await parts.requireUsers().host.findSession(sessionId)
    if (session === undefined || session.userId !== inboxUserId) throw refused('SESSION_INVALID')
  },

  shown: () => ({ fromInbox: true }),

  /**
   * WRONG_WALLET for a wallet that is not the user's, or was added less than 24 hours before the order began;
   * LOGIN_REFUSED if the user may not sign in with it.
   */
  async requireApprover({ inboxUserId, issuedAt }, identity, { parts }) {
    const { users } = parts.requireUsers()
    const { adapterId, subject } = identity
    const user = await users.find(inboxUserId)
    const wallet = (await users.walletsOf(inboxUserId)).find(
      (each) => each.adapterId === adapterId && each.subject === subject,
    )
    if (user === undefined || wallet === undefined) throw refused('WRONG_WALLET')
    // The wallet that made the user was linked at that time; a wallet added later was not.
    const isFirst = wallet.linkedAt === user.createdAt
    if (!isFirst && wallet.linkedAt > issuedAt - newWalletMs) {
      throw new CountersignError(
        'WRONG_WALLET',
        `This wallet was added less than ${newWalletHours} hours before the request; sign with one added earlier`,
      )
    }
    await users.admit(inboxUserId, identity)
  },

  async leave({ inboxUserId, orderId }, { parts }) {
    await parts.keptUsers?.inboxes.takeOut(inboxUserId, orderId)
  },

  finalize: async () => async (finalized) => ({ kind: 'sign', proofArtifact: artifactOf(finalized) }),

  subject: ({ inboxUserId }) => ({ userId: inboxUserId }),
}

/**
 * The open orders of the request's user, newest first. Extends no session, and counts on a limit only without a live
 * one.
 */
export async function listInbox({ parts, request }: OrderCall): Promise<readonly InboxOrder[]> {
  const { host, inboxes } = parts.requireUsers()
  const look = async (): Promise<Session> => {
    requireOwnOrigin(request, parts)
    return await host.peekSession(request, true)
  }
  const session = await look().catch(async (refusal: unknown) => {
    await parts.limiter?.spend('session', request)
    throw refusal
  })
  requireDirect(session)
  const entries = await inboxes.list(session.userId)
  return entries
    .filter(({ appName }) => appName === parts.settings.appName)
    .map((entry) => pick(entry, ['orderId', 'displayTitle', 'displaySummary', 'startedBy', 'createdAt', 'expiresAt']))
}

/** The session of a request that claims an order, and the inboxes. */
export async function inboxClaimer({
  parts,
  request,
}: OrderCall): Promise<CurrentSession & { readonly inboxes: Inboxes }> {
  const { host, inboxes } = parts.requireUsers()
  requireOwnOrigin(request, parts)
  const current = await host.currentSession(request)
  requireDirect(current.session)
  return { ...current, inboxes }
}

/** Refuses an order that is not for the inbox of this user: to any other user it does not exist. */
export function requireAddressee(order: OrderRecord, userId: string): void {
  if (order.inboxUserId !== userId) throw refused('ORDER_NOT_FOUND')
}

/** A cookie counts from the service's own pages only, whatever other origins are trusted. */
function requireOwnOrigin(request: RequestContext, { origins }: OrderParts): void {
  if (bearerToken(request) === undefined) origins.requireOwn(request)
}

/** Refuses a session that an order made: an attacker who relayed that order may hold it. */
function requireDirect(session: Session): void {
  if (session.orderId === undefined) return
  throw new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in with another device, which is not enough to answer requests; sign in on this device, then try again',
  )
}

/** The entry of an order that was started with a key. */
function entryOf(order: OrdersByRecipe['inbox'], startKeyId: string): InboxEntry {
  return {
    ...pick(order, ['orderId', 'displayTitle', 'displaySummary', 'appName', 'expiresAt']),
    ...given({ startedBy: order.requester.startedBy }),
    createdAt: order.issuedAt,
    startKeyId,
  }
}
