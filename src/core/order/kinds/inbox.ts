import { hash } from 'node:crypto'
import { changeRecord, parseRecord, recordText } from '../../../base/record.ts'
import { bearerToken, type RequestContext } from '../../../base/request.ts'
import { given, pick } from '../../../shared/defined-fields.ts'
import { CountersignError, invalidField, refused } from '../../../shared/errors.ts'
import { type InboxOrder, newWalletHours } from '../../../shared/orders.ts'
import { requirePlainLine } from '../../../shared/plain-line.ts'
import type { Store } from '../../../store/store.ts'
import type { CurrentSession, Session } from '../../users/host.ts'
import type { OrderRecord, OrdersByRecipe } from '../order.ts'
import type { OrderCall, OrderParts, Recipe } from './recipes.ts'
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

/** An open order in its user's inbox: all that a list shows, and what the limits count by. */
export interface InboxEntry extends InboxOrder {
  /** Name of the application that it was started at. */
  readonly appName: string
  /** The start key that the order counts for: its name, or a hash if it has none. */
  readonly startKeyId: string
}

/** What is stored of an inbox. 20 orders with the longest texts are 62 KB, and a store takes 64. */
interface InboxRecord {
  /** Newest first. */
  readonly orders: readonly InboxEntry[]
}

/** Most open orders of a user. */
const maxOrders = 20

/** Most open orders of a user that were started with one key, or with keys of one name. */
const maxOfStartKey = 5

/**
 * The inboxes of users: their orders that wait for an approval.
 *
 * An inbox has one record, and each change is a compare-and-set on it, decided anew if another instance was faster. So
 * the bounds hold. An entry comes before its order and goes after the order is approved or over. A crash in between
 * leaves an entry, which a claim takes out, or the end of its time.
 */
export class Inboxes {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The open orders of a user, newest first. */
  async list(userId: string): Promise<readonly InboxEntry[]> {
    const stored = await this.#store.get(keyOf(userId))
    return stored === undefined ? [] : readInbox(stored.value, this.#store.now())
  }

  /** Enters an order. Rejects with RATE_LIMITED if the user has too many, or too many of the start key. */
  async enter(userId: string, entry: InboxEntry): Promise<void> {
    await this.#change(userId, (entries, now) => {
      const ofKey = entries.filter(({ startKeyId }) => startKeyId === entry.startKeyId)
      const full = ofKey.length >= maxOfStartKey ? ofKey : entries.length >= maxOrders ? entries : undefined
      if (full !== undefined) throw inboxFull(Math.min(...full.map(({ expiresAt }) => expiresAt)) - now)
      return [entry, ...entries]
    })
  }

  /** Takes an order out, if it is in. */
  async takeOut(userId: string, orderId: string): Promise<void> {
    await this.#change(userId, (entries) =>
      entries.some((entry) => entry.orderId === orderId)
        ? entries.filter((entry) => entry.orderId !== orderId)
        : undefined,
    )
  }

  /** Erases the inbox of a user. */
  async erase(userId: string): Promise<void> {
    await this.#store.take(keyOf(userId))
  }

  /** Changes what is not over. `change` returns `undefined` to change nothing; it is called again after a lost race. */
  async #change(
    userId: string,
    change: (entries: readonly InboxEntry[], now: number) => readonly InboxEntry[] | undefined,
  ): Promise<void> {
    await changeRecord(this.#store, keyOf(userId), readInbox, (entries = [], now) => {
      const orders = change(entries, now)
      if (orders === undefined) return undefined
      const life = { ttlMs: Math.max(1, ...orders.map(({ expiresAt }) => expiresAt - now)) }
      return { value: recordText({ orders } satisfies InboxRecord), life }
    })
  }
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

function keyOf(userId: string): string {
  // Hashed, because a user's id may be of any form.
  return `inbox:${hash('sha256', `inbox\n${userId}`, 'base64url')}`
}

/** The entries of a stored inbox that are not over. */
function readInbox(text: string, now: number): readonly InboxEntry[] {
  return parseRecord<InboxRecord>('inbox', text).orders.filter(({ expiresAt }) => now < expiresAt)
}

function inboxFull(retryAfterMs: number): CountersignError {
  return new CountersignError(
    'RATE_LIMITED',
    'Too many requests wait for this user; cancel one, or try again once one is answered or over',
    { retryAfterMs, metadata: { limit: 'inbox' } },
  )
}
