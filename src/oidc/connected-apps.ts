import { parseRecord, recordText, replaceFound } from '../base/record.ts'
import { hashToken, randomText } from '../base/token.ts'
import type { Session } from '../core/users/host.ts'
import { CountersignError } from '../shared/errors.ts'
import type { Store, VersionedValue } from '../store/store.ts'
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

/** Scopes that an application gets. */
export interface NewConnection extends Pick<StoredConnection, 'clientId' | 'isOfOrder' | 'scopes'> {
  /** Whether the user has been asked, and has allowed it. */
  readonly isAllowed: boolean
}

interface AppsRecord {
  readonly apps: readonly StoredConnection[]
}

/** Time in ms for which a use is not noted again, so that not every use is a write. */
const noteEveryMs = 3_600_000

/**
 * The applications that users have connected by OpenID Connect, in one record for each user. All that an application
 * holds counts only while its connection is here, so one write ends it: also what is just being made.
 */
export class ConnectedApps {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The connections of a user. */
  async of(userId: string): Promise<readonly StoredConnection[]> {
    return read(await this.#store.get(keyOf(userId)))
  }

  /** The connection of a user with this name, or `undefined`. */
  async find(userId: string, connection: string): Promise<StoredConnection | undefined> {
    return (await this.of(userId)).find((each) => each.connection === connection)
  }

  /** What a user has allowed an application. */
  async allowed(userId: string, clientId: string): Promise<ReadonlySet<string>> {
    return new Set((await this.of(userId)).flatMap((each) => (each.clientId === clientId ? each.allowed : [])))
  }

  /** Connects an application, or gives a connected one more. Resolves with the name of the connection. */
  async connect(userId: string, { clientId, isOfOrder, scopes, isAllowed }: NewConnection): Promise<string> {
    const own = await this.#change(userId, clientId, isOfOrder, (app, now) => {
      const { scopes: before = [], allowed = [] } = app ?? {}
      const all = union(before, scopes)
      const allAllowed = isAllowed ? union(allowed, scopes) : allowed
      if (app !== undefined && all === before && allAllowed === allowed) return noted(app, now)
      const made = { clientId, isOfOrder, connection: randomText(22), connectedAt: now }
      return { ...made, ...app, scopes: all, allowed: allAllowed, lastUsedAt: now }
    })
    return (own as StoredConnection).connection
  }

  /** Notes that a connection was used. */
  async use(userId: string, connection: string): Promise<void> {
    const app = await this.find(userId, connection)
    if (app === undefined) return
    await this.#change(userId, app.clientId, app.isOfOrder, (found, now) =>
      found?.connection === connection ? noted(found, now) : found,
    )
  }

  /** Ends a connection, if it is there. */
  async disconnect(userId: string, { clientId, isOfOrder, connection }: StoredConnection): Promise<void> {
    await this.#change(userId, clientId, isOfOrder, (found) => (found?.connection === connection ? undefined : found))
  }

  /** Ends all connections of a user. */
  async disconnectAll(userId: string): Promise<void> {
    await this.#store.take(keyOf(userId))
  }

  async #change(
    userId: string,
    clientId: string,
    isOfOrder: boolean,
    change: (app: StoredConnection | undefined, now: number) => StoredConnection | undefined,
  ): Promise<StoredConnection | undefined> {
    const key = keyOf(userId)
    for (;;) {
      const stored = await this.#store.get(key)
      const before = read(stored)
      const app = before.find((each) => each.clientId === clientId && each.isOfOrder === isOfOrder)
      const changed = change(app, this.#store.now())
      if (changed === app) return app
      const others = before.filter((each) => each !== app)
      const apps = changed === undefined ? others : [...others, changed]
      const value = recordText({ apps } satisfies AppsRecord)
      if (await replaceFound(this.#store, { key, found: stored, value, life: 'forever' })) return changed
    }
  }
}

/**
 * Ends what an application holds of the user of a session, in one step for each of its connections, and notes for the
 * back channel that the application is to be logged out. Resolves with whether there was something to end. Rejects with
 * SESSION_NOT_FRESH if an order made the session, and all that there is was connected directly.
 */
export async function disconnect(
  { apps, host, offline, sessionClients }: Pick<SharedParts, 'apps' | 'host' | 'offline' | 'sessionClients'>,
  own: Session,
  clientId: string,
): Promise<boolean> {
  const { userId } = own
  const connected = (await apps.of(userId)).filter((each) => each.clientId === clientId)
  const reached = connected.filter(({ isOfOrder }) => isOfOrder || own.orderId === undefined)
  if (connected.length > 0 && reached.length === 0) {
    throw new CountersignError(
      'SESSION_NOT_FRESH',
      'You signed in with another device, which is not enough to disconnect this application; sign in on this ' +
        'device, then try again',
    )
  }
  const sessions = [...(await host.listSessions(userId)), ...(await offline.of(userId))]
  for (const app of reached) {
    const itsSessions = sessions.filter(({ orderId }) => (orderId !== undefined) === app.isOfOrder)
    // First: after a crash in between, the note waits for the end of the connection.
    for (const { id } of itsSessions) await sessionClients.noteEnd({ id, userId, app })
    await apps.disconnect(userId, app)
  }
  return reached.length > 0
}

/** A list with what it lacks of another; the same list if it lacks nothing. */
function union(list: readonly string[], others: readonly string[]): readonly string[] {
  const all = new Set([...list, ...others])
  return all.size === list.length ? list : [...all]
}

function noted(app: StoredConnection, now: number): StoredConnection {
  return now - app.lastUsedAt < noteEveryMs ? app : { ...app, lastUsedAt: now }
}

function read(stored: VersionedValue | undefined): readonly StoredConnection[] {
  return stored === undefined ? [] : parseRecord<AppsRecord>('list of applications', stored.value).apps
}

function keyOf(userId: string): string {
  return `apps:${hashToken(userId)}`
}
