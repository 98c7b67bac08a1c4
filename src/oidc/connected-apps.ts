import { changeRecord, parseRecord, recordText, replaceFound } from '../base/record.ts'
import { hashToken, randomText } from '../base/token.ts'
import type { PastSession, TakenSessions } from '../core/users/sessions.ts'
import { pick } from '../shared/defined-fields.ts'
import type { Life, Store, VersionedValue } from '../store/store.ts'

/** A connection of an application, by a user. Times are epoch milliseconds. */
export interface StoredConnection {
  readonly clientId: string
  /** Names this connection: that of another time has another. */
  readonly connection: string
  /**
   * Whether the connection belongs to sessions that orders made; direct sign-ins have a connection of their own. So a
   * session that an order made can disconnect an application without reaching what the user connected directly.
   */
  readonly isOfOrder: boolean
  /** What the application may have: scopes, those of a backend with its address behind a space. */
  readonly scopes: readonly string[]
  /** The part of it that the user has allowed. The operator's own applications get the rest without a question. */
  readonly allowed: readonly string[]
  readonly connectedAt: number
  /** To the hour. */
  readonly lastUsedAt: number
  /**
   * Sessions in which the user has given offline access (`offline_access` of OpenID Connect), soonest end first: 50 at
   * most, one more ends the first. Signing out and a session's expiry leave them; taking a session away from its user
   * ends its offline access. Absent: none.
   */
  readonly offline?: readonly OfflineSession[]
}

/** A session with offline access. */
interface OfflineSession {
  readonly session: PastSession
  /** When it ends, in epoch milliseconds. */
  readonly until: number
  /**
   * It has not begun: {@link ConnectedApps.beginOffline} does that, once the session was seen alive after this was
   * stored. Taking the session away removes it in any case, so that nothing begins afterwards.
   */
  readonly isPending?: true
}

/** Time in ms for which applications may act for a user who has signed out: 90 days. */
export const offlineMs: number = 90 * 86_400_000

/** Most sessions of a connection with offline access. */
const maxOffline = 50

/** Most bytes of these, enough for 50 of usual wallets: two connections and their scopes fit in a stored value. */
const maxOfflineBytes = 24 * 1024

/** Time in ms for which offline access that has not begun is kept: longer than a consent takes to be stored. */
const pendingMs = 60_000

/** What is kept of a session that can have ended. */
const pastFields = [
  ...(['id', 'userId', 'adapterId', 'subject', 'publicKeyHex', 'address', 'createdAt', 'orderId'] as const),
  'firstWallet',
] as const satisfies (keyof PastSession)[]

/** What a grant finds its connection by. */
type ConnectionKey = Pick<StoredConnection, 'clientId' | 'connection'>

/** Scopes that an application gets. */
export interface NewConnection extends Pick<StoredConnection, 'clientId' | 'isOfOrder' | 'scopes'> {
  /** Whether the user has been asked, and has allowed it. */
  readonly isAllowed: boolean
  /** Whether it rests on an earlier consent, which the user may withdraw at the same time. Default: false. */
  readonly needsConsent?: boolean | undefined
  /** Session whose offline access is about to begin. Absent: none is given. */
  readonly offline?: PastSession | undefined
}

/** What is done when an application ends to make room for another. */
export interface Eviction {
  /** Called before each connection of the application ends; all of them stay if one is used meanwhile. */
  readonly ending: (connection: StoredConnection) => Promise<void>
  /** Called once it has ended. */
  readonly ended: (clientId: string) => void
}

/** There is no room for another application. The message says what to do. */
export class GrantsFull extends Error {
  override readonly name = 'GrantsFull'
}

/** An eviction, and whether it is for a session that an order made. */
interface ReachedEviction extends Eviction, Pick<StoredConnection, 'isOfOrder'> {}

/** What one application has of one user: a connection of direct sign-ins, one of orders, or both. */
interface AppRecord {
  readonly connections: readonly StoredConnection[]
}

/** The names of a user's applications, with which the keys of their records end. */
interface AppList {
  readonly names: readonly string[]
  /** The user has been erased: no application connects any more, also one whose consent is in flight. */
  readonly isErased?: true
}

/** Most applications of a user. */
const maxApps = 100

const fullOfDirect =
  `the account has ${maxApps} applications, which is the most, and a session that another device approved ends none ` +
  'that were connected directly; sign in with a wallet on this device, then try again'

/** Time in ms for which a use is not noted again, so that not every use is a write. */
const noteEveryMs = 3_600_000

/** Life of the list of an erased user: longer than a consent can take, and no longer than the mark of the user. */
const erasedLife: Life = { ttlMs: 600_000 }

/** Life of a record without a connection: longer than a call can take. */
const emptyLife: Life = { ttlMs: 3_600_000 }

/**
 * The applications that users have connected by OpenID Connect, in a record for each user and application, so that a
 * use reads one, however many there are. All that an application holds counts only while its connection is in its
 * record, and offline access only while its session is there, so one write ends it: also what is just being made. The
 * records hold no secret, so that an operator's command can end what they give.
 *
 * A list names the applications of a user, 100 at most. An application is named while its record is empty, and only
 * then connected; a name leaves the list once its record is found or made empty, by a write that a connection in
 * progress notices. So wherever a crash comes, each connection is named, and a name too many stands for nothing.
 */
export class ConnectedApps {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The connections of a user. */
  async of(userId: string): Promise<readonly StoredConnection[]> {
    const keys = await this.#keysOf(userId)
    return (await Promise.all(keys.map((key) => this.#store.get(key)))).flatMap(connectionsIn)
  }

  /** The connections of one application of a user. */
  async ofClient(userId: string, clientId: string): Promise<readonly StoredConnection[]> {
    return connectionsIn(await this.#store.get(keyOf(userId, nameOf(clientId))))
  }

  /** The connection of a user with this name, or `undefined`. */
  async find(userId: string, { clientId, connection }: ConnectionKey): Promise<StoredConnection | undefined> {
    return (await this.ofClient(userId, clientId)).find((each) => each.connection === connection)
  }

  /** What a user has allowed an application. */
  async allowed(userId: string, clientId: string): Promise<ReadonlySet<string>> {
    return new Set((await this.ofClient(userId, clientId)).flatMap(({ allowed }) => allowed))
  }

  /** The session in which a user gave an application offline access; `undefined` if there is none. */
  async findOffline(userId: string, clientId: string, sessionId: string): Promise<PastSession | undefined> {
    const sessions = (await this.ofClient(userId, clientId)).flatMap((each) => this.offlineOf(each))
    return sessions.find(({ id }) => id === sessionId)
  }

  /** The sessions in which a connection has offline access. */
  offlineOf({ offline = [] }: StoredConnection): readonly PastSession[] {
    const counting = offline.filter(({ until, isPending }) => isPending !== true && until > this.#store.now())
    return counting.map(({ session }) => session)
  }

  /** Begins the offline access of a session, for 90 days from now. Resolves with false if that has ended meanwhile. */
  async beginOffline(userId: string, { clientId, connection }: ConnectionKey, id: string): Promise<boolean> {
    return await this.#change(keyOf(userId, nameOf(clientId)), (found, now) =>
      found.map((each) => {
        const { offline = [] } = each
        const own = each.connection === connection ? offline.find(({ session }) => session.id === id) : undefined
        if (own === undefined) return each
        const others = offline.filter((one) => one !== own && one.until > now)
        return { ...each, offline: atMost([...others, { session: own.session, until: now + offlineMs }]) }
      }),
    )
  }

  /** Ends the offline access that one application has of a session. */
  async leaveOffline(userId: string, clientId: string, id: string): Promise<void> {
    const stays = ({ session }: OfflineSession): boolean => session.id !== id
    await this.#change(keyOf(userId, nameOf(clientId)), (found) => found.map((each) => withOffline(each, stays)))
  }

  /** Ends the offline access of sessions that are taken away. */
  async endOffline({ userId, id, fits = () => true }: TakenSessions): Promise<void> {
    const stays = ({ session }: OfflineSession): boolean => (id !== undefined && session.id !== id) || !fits(session)
    const end = (key: string) => this.#change(key, (found) => found.map((each) => withOffline(each, stays)))
    if (userId !== undefined) return void (await Promise.all((await this.#keysOf(userId)).map(end)))
    for await (const { key, value } of this.#store.scan?.(keyBeginning) ?? []) {
      if (!connectionsIn({ value }).every(({ offline = [] }) => offline.every(stays))) await end(key)
    }
  }

  /**
   * Connects an application, or gives a connected one more. Resolves with the name of the connection; with `undefined`,
   * and without a change, if the consent that it needs is gone, or the user has been erased. If the user has 100
   * others, the one that was used longest ago ends first. A session that an order made ends only applications without a
   * connection of direct sign-ins; if there are none, it is refused with {@link GrantsFull}.
   */
  async connect(userId: string, wanted: NewConnection, eviction: Eviction): Promise<string | undefined> {
    const { clientId, isOfOrder, scopes, needsConsent = false } = wanted
    const name = nameOf(clientId)
    const key = keyOf(userId, name)
    for (;;) {
      const stored = await this.#store.get(key)
      const before = connectionsIn(stored)
      const allowed = before.flatMap((each) => each.allowed)
      if (needsConsent && !scopes.every((scope) => allowed.includes(scope))) return undefined
      const app = before.find((each) => each.isOfOrder === isOfOrder)
      const own = connected(app, wanted, this.#store.now())
      if (own === app) return own.connection
      if (stored === undefined) await this.#store.create(key, recordOf([]), emptyLife)
      if (before.length === 0 && !(await this.#enter(userId, name, { ...eviction, isOfOrder }))) return undefined
      const value = recordOf([...before.filter((each) => each !== app), own])
      if (!(await this.#store.compareAndSet(key, stored?.version ?? 1, value, 'forever'))) continue
      // After an erasure, another consent may have made an empty record again, whose version is the same.
      if (before.length > 0 || !(await this.#isErased(userId))) return own.connection
      await this.#store.take(key)
      return undefined
    }
  }

  /** Notes that a connection was used. */
  async use(userId: string, { clientId, connection }: ConnectionKey): Promise<void> {
    await this.#change(keyOf(userId, nameOf(clientId)), (found, now) =>
      found.map((each) => (each.connection === connection ? noted(each, now) : each)),
    )
  }

  /** Ends a connection, if it is there. */
  async disconnect(userId: string, { clientId, connection }: ConnectionKey): Promise<void> {
    const key = keyOf(userId, nameOf(clientId))
    await this.#change(key, (found) => found.filter((each) => each.connection !== connection))
  }

  /** Ends all connections of a user who is erased, and for ten minutes connects no other. */
  async erase(userId: string): Promise<void> {
    const mark = (life: Life) =>
      changeRecord(this.#store, listKeyOf(userId), readList, (found) => {
        const { names = [] } = found ?? {}
        return { value: recordText({ names, isErased: true } satisfies AppList), life, names }
      })
    // The names last as long as their records can: a call that was interrupted may come again after any time.
    const { names } = await mark('forever')
    for (const name of names) await this.#store.take(keyOf(userId, name))
    await mark(erasedLife)
  }

  async #isErased(userId: string): Promise<boolean> {
    const list = await this.#store.get(listKeyOf(userId))
    return list !== undefined && readList(list.value).isErased === true
  }

  /** Keys of the records of a user's applications. */
  async #keysOf(userId: string): Promise<readonly string[]> {
    return namesIn(await this.#store.get(listKeyOf(userId))).map((name) => keyOf(userId, name))
  }

  /** Changes a record. Resolves with false if it is not there, or stays the same. */
  async #change(
    key: string,
    change: (found: readonly StoredConnection[], now: number) => readonly StoredConnection[],
  ): Promise<boolean> {
    const changed = await changeRecord(this.#store, key, readConnections, (before = [], now) => {
      const after = change(before, now)
      if (after.length === before.length && after.every((each, index) => each === before[index])) return undefined
      return { value: recordOf(after), life: after.length === 0 ? emptyLife : ('forever' as const) }
    })
    return changed !== undefined
  }

  /**
   * Names an application whose record is empty. Resolves with false if the user has been erased. The list is written
   * also if it has the name: a caller that found no record of it, and is about to drop the name, then looks again.
   */
  async #enter(userId: string, name: string, eviction: ReachedEviction): Promise<boolean> {
    const key = listKeyOf(userId)
    for (;;) {
      const found = await this.#store.get(key)
      const { names, isErased } = found === undefined ? { names: [] } : readList(found.value)
      if (isErased) return false
      const others = names.filter((each) => each !== name)
      const kept = others.length < maxApps ? others : await this.#withRoom(userId, others, eviction)
      if (kept === undefined) continue
      const value = recordText({ names: [...kept, name] } satisfies AppList)
      if (await replaceFound(this.#store, { key, found, value, life: 'forever' })) return true
    }
  }

  /**
   * The names of a full list that stay: those of connections, without the application that was used longest ago of
   * those that may end. Records of the others are empty then. Resolves with `undefined` if one has changed meanwhile.
   */
  async #withRoom(
    userId: string,
    names: readonly string[],
    { isOfOrder, ending, ended }: ReachedEviction,
  ): Promise<readonly string[] | undefined> {
    const found = await Promise.all(
      names.map(async (name) => {
        const stored = await this.#store.get(keyOf(userId, name))
        return { name, stored, connections: connectionsIn(stored) }
      }),
    )
    const lastUse = (each: (typeof found)[number]): number =>
      Math.max(...each.connections.map(({ lastUsedAt }) => lastUsedAt))
    const inUse = found.filter(({ connections }) => connections.length > 0)
    const isFull = inUse.length >= maxApps
    const reached = inUse.filter((each) => !isOfOrder || each.connections.every((one) => one.isOfOrder))
    const oldest = isFull ? reached.toSorted((a, b) => lastUse(a) - lastUse(b))[0] : undefined
    if (isFull && oldest === undefined) throw new GrantsFull(fullOfDirect)
    for (const connection of oldest?.connections ?? []) await ending(connection)
    const leaving = found.filter((each) => each === oldest || each.connections.length === 0)
    for (const each of leaving) {
      const { name, stored } = each
      // Written also if it is empty, so that a connection in progress notices.
      if (stored === undefined) continue
      const isEmptied = await this.#store.compareAndSet(keyOf(userId, name), stored.version, recordOf([]), emptyLife)
      if (!isEmptied) return undefined
      const [first] = each.connections
      if (first !== undefined) ended(first.clientId)
    }
    return found.flatMap((each) => (leaving.includes(each) ? [] : [each.name]))
  }
}

/** A list with what it lacks of another; the same list if it lacks nothing. */
function union(list: readonly string[], others: readonly string[]): readonly string[] {
  const all = new Set([...list, ...others])
  return all.size === list.length ? list : [...all]
}

/** A connection with what it gets; the same one if that is no change. */
function connected(
  app: StoredConnection | undefined,
  { clientId, isOfOrder, scopes, isAllowed, offline }: NewConnection,
  now: number,
): StoredConnection {
  const { scopes: before = [], allowed = [] } = app ?? {}
  const all = union(before, scopes)
  const allAllowed = isAllowed ? union(allowed, scopes) : allowed
  const kept = (app?.offline ?? []).filter(({ until }) => until > now)
  const isNew = offline !== undefined && !kept.some(({ session }) => session.id === offline.id)
  if (app !== undefined && all === before && allAllowed === allowed && !isNew) return noted(app, now)
  const made = { clientId, isOfOrder, connection: randomText(22), connectedAt: now }
  const own = { ...made, ...app, scopes: all, allowed: allAllowed, lastUsedAt: now }
  if (!isNew) return own
  const pending = { session: pick(offline, pastFields), until: now + pendingMs, isPending: true } as const
  return { ...own, offline: [...kept, pending] }
}

/** Offline access without what ends first beyond 50 sessions, or beyond its size. */
function atMost(offline: readonly OfflineSession[]): readonly OfflineSession[] {
  const begun = offline.filter(({ isPending }) => isPending !== true)
  const kept = begun.slice(-maxOffline)
  while (Buffer.byteLength(JSON.stringify(kept)) > maxOfflineBytes) kept.shift()
  return [...offline.filter(({ isPending }) => isPending), ...kept]
}

/** The connection with the offline access that stays; the same object if all of it stays. */
function withOffline(app: StoredConnection, stays: (each: OfflineSession) => boolean): StoredConnection {
  const { offline = [] } = app
  return offline.every(stays) ? app : { ...app, offline: offline.filter(stays) }
}

function noted(app: StoredConnection, now: number): StoredConnection {
  return now - app.lastUsedAt < noteEveryMs ? app : { ...app, lastUsedAt: now }
}

function connectionsIn(stored: Pick<VersionedValue, 'value'> | undefined): readonly StoredConnection[] {
  return stored === undefined ? [] : readConnections(stored.value)
}

function readConnections(text: string): readonly StoredConnection[] {
  return parseRecord<AppRecord>('application of a user', text).connections
}

function recordOf(connections: readonly StoredConnection[]): string {
  return recordText({ connections } satisfies AppRecord)
}

function namesIn(list: Pick<VersionedValue, 'value'> | undefined): readonly string[] {
  return list === undefined ? [] : readList(list.value).names
}

function readList(text: string): AppList {
  return parseRecord<AppList>('list of applications', text)
}

/** Hashed, because the ids of clients can be of any form. */
function nameOf(clientId: string): string {
  return hashToken(clientId)
}

const keyBeginning = 'app:'

function keyOf(userId: string, name: string): string {
  return `${keyBeginning}${hashToken(userId)}:${name}`
}

function listKeyOf(userId: string): string {
  return `apps-of:${hashToken(userId)}`
}
