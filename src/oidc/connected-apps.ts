import { parseRecord, recordText, replaceFound } from '../base/record.ts'
import { hashToken, randomText } from '../base/token.ts'
import type { Session } from '../core/users/host.ts'
import { CountersignError } from '../shared/errors.ts'
import type { Life, Store, VersionedValue } from '../store/store.ts'
import type { SharedParts } from './parts.ts'

/** A connection of an application, by a user. Times are epoch milliseconds. */
export interface StoredConnection {
  readonly clientId: string
  /** Names this connection: that of another time has another. */
  readonly connection: string
  /**
   * Whether it is that of sessions that orders made; those of direct sign-ins have one of their own. So such a session
   * can disconnect an application without reaching what the user connected directly.
   */
  readonly isOfOrder: boolean
  /** What the application may have: scopes, those of a backend with its address behind a space. */
  readonly scopes: readonly string[]
  /** The part of it that the user has allowed. The operator's own applications get the rest without a question. */
  readonly allowed: readonly string[]
  readonly connectedAt: number
  /** To the hour. */
  readonly lastUsedAt: number
}

/** What a grant finds its connection by. */
type ConnectionKey = Pick<StoredConnection, 'clientId' | 'connection'>

/** Scopes that an application gets. */
export interface NewConnection extends Pick<StoredConnection, 'clientId' | 'isOfOrder' | 'scopes'> {
  /** Whether the user has been asked, and has allowed it. */
  readonly isAllowed: boolean
}

/** What is done when an application ends to make room for another. */
export interface Eviction {
  /** Called before each of its connections ends; they stay if one is used meanwhile. */
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
}

/** All connections of a user in one value, as earlier releases stored them. */
interface FormerRecord {
  readonly apps: readonly StoredConnection[]
}

/** Most applications of a user. */
const maxApps = 100

const fullOfDirect =
  `the account has ${maxApps} applications, which is the most, and a session that another device approved ends none ` +
  'that were connected directly; sign in with a wallet on this device, then try again'

/** Time in ms for which a use is not noted again, so that not every use is a write. */
const noteEveryMs = 3_600_000

/** Life of a record without a connection: longer than a call can take. */
const emptyLife: Life = { ttlMs: 3_600_000 }

/**
 * The applications that users have connected by OpenID Connect, in a record for each user and application, so that a
 * use reads one, however many there are. All that an application holds counts only while its connection is in its
 * record, so one write ends it: also what is just being made.
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
    await this.#takeOver(userId)
    const names = namesIn(await this.#store.get(listKeyOf(userId)))
    const records = await Promise.all(names.map((name) => this.#store.get(keyOf(userId, name))))
    return records.flatMap(connectionsIn)
  }

  /** The connections of one application of a user. */
  async ofClient(userId: string, clientId: string): Promise<readonly StoredConnection[]> {
    return connectionsIn(await this.#read(userId, clientId))
  }

  /** The connection of a user with this name, or `undefined`. */
  async find(userId: string, { clientId, connection }: ConnectionKey): Promise<StoredConnection | undefined> {
    return (await this.ofClient(userId, clientId)).find((each) => each.connection === connection)
  }

  /** What a user has allowed an application. */
  async allowed(userId: string, clientId: string): Promise<ReadonlySet<string>> {
    return new Set((await this.ofClient(userId, clientId)).flatMap(({ allowed }) => allowed))
  }

  /**
   * Connects an application, or gives a connected one more. Resolves with the name of the connection. If the user has
   * 100 others, the one that was used longest ago ends first. A session that an order made ends only applications
   * without a connection of direct sign-ins; if there are none, it is refused with {@link GrantsFull}.
   */
  async connect(
    userId: string,
    { clientId, isOfOrder, scopes, isAllowed }: NewConnection,
    eviction: Eviction,
  ): Promise<string> {
    const name = nameOf(clientId)
    const key = keyOf(userId, name)
    for (;;) {
      const stored = await this.#read(userId, clientId)
      const before = connectionsIn(stored)
      const app = before.find((each) => each.isOfOrder === isOfOrder)
      const own = connected(app, { clientId, isOfOrder, scopes, isAllowed }, this.#store.now())
      if (own === app) return own.connection
      if (stored === undefined) await this.#store.create(key, recordOf([]), emptyLife)
      if (before.length === 0) await this.#enter(userId, name, { ...eviction, isOfOrder })
      const value = recordOf([...before.filter((each) => each !== app), own])
      if (await this.#store.compareAndSet(key, stored?.version ?? 1, value, 'forever')) return own.connection
    }
  }

  /** Notes that a connection was used. */
  async use(userId: string, { clientId, connection }: ConnectionKey): Promise<void> {
    await this.#change(userId, clientId, (found, now) =>
      found.map((each) => (each.connection === connection ? noted(each, now) : each)),
    )
  }

  /** Ends a connection, if it is there. */
  async disconnect(userId: string, { clientId, connection }: ConnectionKey): Promise<void> {
    await this.#change(userId, clientId, (found) => found.filter((each) => each.connection !== connection))
  }

  /** Ends all connections of a user. */
  async disconnectAll(userId: string): Promise<void> {
    await this.#store.take(formerKeyOf(userId))
    const takeThose = async (names: readonly string[]): Promise<void> => {
      for (const name of names) await this.#store.take(keyOf(userId, name))
    }
    // Before, so that a crash leaves no record without its name; and after, because another can have come.
    await takeThose(namesIn(await this.#store.get(listKeyOf(userId))))
    const value = await this.#store.take(listKeyOf(userId))
    if (value !== undefined) await takeThose(namesIn({ value }))
  }

  /** The record of an application. */
  async #read(userId: string, clientId: string): Promise<VersionedValue | undefined> {
    const key = keyOf(userId, nameOf(clientId))
    const found = await this.#store.get(key)
    return found === undefined && (await this.#takeOver(userId)) ? await this.#store.get(key) : found
  }

  /** Changes a record, if it is there. */
  async #change(
    userId: string,
    clientId: string,
    change: (found: readonly StoredConnection[], now: number) => readonly StoredConnection[],
  ): Promise<void> {
    for (;;) {
      const stored = await this.#read(userId, clientId)
      if (stored === undefined) return
      const before = connectionsIn(stored)
      const after = change(before, this.#store.now())
      if (after.length === before.length && after.every((each, index) => each === before[index])) return
      const life = after.length === 0 ? emptyLife : 'forever'
      const key = keyOf(userId, nameOf(clientId))
      if (await this.#store.compareAndSet(key, stored.version, recordOf(after), life)) return
    }
  }

  /**
   * Names an application whose record is empty. The list is written also if it has the name: a caller that found no
   * record of it, and is about to drop the name, then looks again.
   */
  async #enter(userId: string, name: string, eviction: ReachedEviction): Promise<void> {
    const key = listKeyOf(userId)
    for (;;) {
      const found = await this.#store.get(key)
      const others = namesIn(found).filter((each) => each !== name)
      const kept = others.length < maxApps ? others : await this.#withRoom(userId, others, eviction)
      if (kept === undefined) continue
      const value = recordText({ names: [...kept, name] } satisfies AppList)
      if (await replaceFound(this.#store, { key, found, value, life: 'forever' })) return
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

  /**
   * Takes over what an earlier release stored, as far as there is room. Resolves with whether there was something. It
   * is taken first, so that nothing that ends meanwhile comes back; what a crash then loses has ended.
   */
  async #takeOver(userId: string): Promise<boolean> {
    const key = formerKeyOf(userId)
    if ((await this.#store.get(key)) === undefined) return false
    const former = await this.#store.take(key)
    if (former === undefined) return false
    const { apps } = parseRecord<FormerRecord>('list of applications', former)
    const oldestFirst = apps.toSorted((a, b) => a.lastUsedAt - b.lastUsedAt)
    for (const [clientId, connections] of [...Map.groupBy(oldestFirst, (each) => each.clientId)].slice(-maxApps)) {
      const name = nameOf(clientId)
      const isNew = await this.#store.create(keyOf(userId, name), recordOf([]), emptyLife)
      if (!isNew) continue
      await this.#enter(userId, name, { isOfOrder: false, ending: async () => {}, ended: () => {} })
      await this.#store.compareAndSet(keyOf(userId, name), 1, recordOf(connections), 'forever')
    }
    return true
  }
}

/**
 * Ends what an application holds of the user of a session, in one step for each of its connections, and notes for the
 * back channel that the application is to be logged out. Resolves with whether there was something to end. Rejects with
 * SESSION_NOT_FRESH if an order made the session, and all that there is was connected directly.
 */
export async function disconnect(
  parts: Pick<SharedParts, 'apps' | 'host' | 'offline' | 'sessionClients'>,
  own: Session,
  clientId: string,
): Promise<boolean> {
  const { apps } = parts
  const { userId } = own
  const connected = await apps.ofClient(userId, clientId)
  const reached = connected.filter(({ isOfOrder }) => isOfOrder || own.orderId === undefined)
  if (connected.length > 0 && reached.length === 0) {
    throw new CountersignError(
      'SESSION_NOT_FRESH',
      'You signed in with another device, which is not enough to disconnect this application; sign in on this ' +
        'device, then try again',
    )
  }
  for (const app of reached) {
    await noteEnding(parts, userId, app)
    await apps.disconnect(userId, app)
  }
  return reached.length > 0
}

/**
 * Notes for the back channel, before a connection ends, that its application is to be logged out: after a crash in
 * between, the note waits for the end of the connection.
 */
export async function noteEnding(
  { host, offline, sessionClients }: Pick<SharedParts, 'host' | 'offline' | 'sessionClients'>,
  userId: string,
  app: StoredConnection,
): Promise<void> {
  const sessions = [...(await host.listSessions(userId)), ...(await offline.of(userId))]
  const its = sessions.filter(({ orderId }) => (orderId !== undefined) === app.isOfOrder)
  for (const { id } of its) await sessionClients.noteEnd({ id, userId, app })
}

/** A list with what it lacks of another; the same list if it lacks nothing. */
function union(list: readonly string[], others: readonly string[]): readonly string[] {
  const all = new Set([...list, ...others])
  return all.size === list.length ? list : [...all]
}

/** A connection with what it gets; the same one if that is no change. */
function connected(
  app: StoredConnection | undefined,
  { clientId, isOfOrder, scopes, isAllowed }: NewConnection,
  now: number,
): StoredConnection {
  const { scopes: before = [], allowed = [] } = app ?? {}
  const all = union(before, scopes)
  const allAllowed = isAllowed ? union(allowed, scopes) : allowed
  if (app !== undefined && all === before && allAllowed === allowed) return noted(app, now)
  const made = { clientId, isOfOrder, connection: randomText(22), connectedAt: now }
  return { ...made, ...app, scopes: all, allowed: allAllowed, lastUsedAt: now }
}

function noted(app: StoredConnection, now: number): StoredConnection {
  return now - app.lastUsedAt < noteEveryMs ? app : { ...app, lastUsedAt: now }
}

function connectionsIn(stored: Pick<VersionedValue, 'value'> | undefined): readonly StoredConnection[] {
  return stored === undefined ? [] : parseRecord<AppRecord>('application of a user', stored.value).connections
}

function recordOf(connections: readonly StoredConnection[]): string {
  return recordText({ connections } satisfies AppRecord)
}

function namesIn(list: Pick<VersionedValue, 'value'> | undefined): readonly string[] {
  return list === undefined ? [] : parseRecord<AppList>('list of applications', list.value).names
}

/** Hashed, because the ids of clients can be of any form. */
function nameOf(clientId: string): string {
  return hashToken(clientId)
}

function keyOf(userId: string, name: string): string {
  return `app:${hashToken(userId)}:${name}`
}

function listKeyOf(userId: string): string {
  return `apps-of:${hashToken(userId)}`
}

function formerKeyOf(userId: string): string {
  return `apps:${hashToken(userId)}`
}
