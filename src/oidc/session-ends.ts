import { changeRecord, parseRecord, recordText } from '../base/record.ts'
import { hashToken } from '../base/token.ts'
import type { PastSession, SessionEnds, TakenSessions } from '../core/users/sessions.ts'
import { given } from '../shared/given.ts'
import type { Life, Store } from '../store/store.ts'

interface OfflineRecord {
  readonly session: PastSession
}

/** Most grants of a session, one for each client. */
export const maxGrants = 100

/** Most sessions of a user with offline access. One more ends the one that expires soonest. */
const maxPerUser = 100

/** Time in ms for which applications may act for a user who has signed out: 90 days. */
export const offlineMs: number = 90 * 86_400_000

/**
 * Sessions with offline access (`offline_access` of OpenID Connect). A grant that outlives its session counts only
 * while its session is in here, so one step ends all of them, without the secret that seals grants: an operator's
 * command can do it.
 *
 * Signing out and the session's expiry leave it. Taking the session away from its user ends it.
 */
export class OfflineAccess {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Begins offline access of a session, for 90 days from now. */
  async keep(kept: PastSession): Promise<void> {
    const { id, userId, adapterId, subject, publicKeyHex, address, createdAt, orderId, firstWallet } = kept
    const others = given({ subject, orderId, firstWallet })
    const session = { id, userId, adapterId, publicKeyHex, address, createdAt, ...others }
    const value = recordText({ session } satisfies OfflineRecord)
    const life: Life = { ttlMs: offlineMs }
    // The list first: an id too many in it is harmless, a missing one is not.
    const surplus = await this.#store.addMember(offlineIndex(userId), id, life, maxPerUser)
    for (const each of surplus) await this.end(userId, each)
    await changeRecord(this.#store, offlineKey(id), readOffline, () => ({ value, life }))
  }

  /** The session with offline access that has this id, or `undefined`. */
  async find(id: string): Promise<PastSession | undefined> {
    const stored = await this.#store.get(offlineKey(id))
    return stored && readOffline(stored.value)
  }

  /** Ends the offline access of a session, if it has some. */
  async end(userId: string, id: string): Promise<void> {
    // An id that a crash leaves in the list is of nothing, and expires with the list.
    if ((await this.#store.take(offlineKey(id))) !== undefined) await this.#store.removeMember(offlineIndex(userId), id)
  }

  /** The sessions of a user with offline access. */
  async of(userId: string): Promise<PastSession[]> {
    const ids = await this.#store.members(offlineIndex(userId))
    const found = await Promise.all(ids.map((id) => this.find(id)))
    return found.filter((session) => session !== undefined)
  }

  /** Ends the offline access of sessions that are taken away. */
  async endThose({ userId, id, fits = () => true }: TakenSessions): Promise<void> {
    if (userId !== undefined && id !== undefined) return await this.end(userId, id)
    const sessions = userId === undefined ? this.#all() : await this.of(userId)
    for await (const session of sessions) if (fits(session)) await this.end(session.userId, session.id)
  }

  async *#all(): AsyncGenerator<PastSession> {
    for await (const { value } of this.#store.scan?.(offlineKey('')) ?? []) yield readOffline(value)
  }
}

function readOffline(value: string): PastSession {
  return parseRecord<OfflineRecord>('offline access', value).session
}

function offlineKey(id: string): string {
  return `offline:${id}`
}

function offlineIndex(userId: string): string {
  return `offline-of:${hashToken(userId)}`
}

/** A session that has ended, or is about to. */
export interface EndedSession {
  readonly id: string
  readonly userId: string
  /** The application that the session's user disconnects, if the session itself goes on. */
  readonly app?: { readonly clientId: string; readonly connection: string } | undefined
}

/** Time in ms for which an ended session is kept, if no issuer runs. */
const endedMs = 3 * 86_400_000

/** Most ended sessions that are kept. */
const maxEnded = 10_000

const endedKey = 'ended-sessions'

/**
 * The clients that sessions are signed in at, and those of these sessions that have ended: what back-channel logout
 * uses. Holds no secret, so that an operator's command can end a session, too.
 */
export class SessionClients {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Notes that a client gets tokens in a session, for as long as a session can live. The latest 100 are kept. */
  async add(sessionId: string, clientId: string, life: Life): Promise<void> {
    const surplus = await this.#store.addMember(clientsKey(sessionId), clientId, life, maxGrants)
    for (const each of surplus) await this.remove(sessionId, each)
  }

  /** Forgets a client that has nothing of a session any more. */
  async remove(sessionId: string, clientId: string): Promise<void> {
    await this.#store.removeMember(clientsKey(sessionId), clientId)
  }

  /** The clients of a session. */
  async of(sessionId: string): Promise<readonly string[]> {
    return await this.#store.members(clientsKey(sessionId))
  }

  /** Notes, before it happens, that a session ends, or that its user disconnects an application. */
  async noteEnd(ended: EndedSession): Promise<void> {
    const clients = await this.of(ended.id)
    const concerns = ended.app === undefined ? clients.length > 0 : clients.includes(ended.app.clientId)
    if (concerns) await this.#store.addMember(endedKey, memberOf(ended), { ttlMs: endedMs }, maxEnded)
  }

  /** The sessions whose end, or an end of whose connections, is noted. */
  async ended(): Promise<readonly EndedSession[]> {
    return (await this.#store.members(endedKey)).map((member) => {
      const [id, userId, clientId, connection] = JSON.parse(member) as [string, string, string?, string?]
      const app = clientId === undefined || connection === undefined ? undefined : { clientId, connection }
      return { id, userId, app }
    })
  }

  /** Forgets what was noted, and with it the clients of a session that has ended. */
  async forget(ended: EndedSession): Promise<void> {
    if (ended.app === undefined) {
      for (const clientId of await this.of(ended.id)) await this.remove(ended.id, clientId)
    }
    await this.#store.removeMember(endedKey, memberOf(ended))
  }
}

function memberOf({ id, userId, app }: EndedSession): string {
  return JSON.stringify(app === undefined ? [id, userId] : [id, userId, app.clientId, app.connection])
}

function clientsKey(sessionId: string): string {
  return `session-clients:${sessionId}`
}

/** What the ends of sessions in a store mean to the issuer: logouts to send, and offline access that ends. */
export function sessionEnds(store: Store): SessionEnds {
  const [clients, offline] = [new SessionClients(store), new OfflineAccess(store)]
  return {
    ending: ({ id, userId }) => clients.noteEnd({ id, userId }),
    taken: (those) => offline.endThose(those),
  }
}
