import { parseRecord, type StoredRecord } from '../../base/record.ts'
import { hashToken, randomText } from '../../base/token.ts'
import type { Store, VersionedValue } from '../../store/store.ts'

/** An application that a user has connected. Times are epoch milliseconds. */
export interface ConnectedApp {
  /** Names this connection: that of another time has another. */
  readonly connection: string
  /** What the user has allowed: scopes, those of a backend with its address behind a space. */
  readonly scopes: readonly string[]
  readonly connectedAt: number
  /** To the hour. */
  readonly lastUsedAt: number
}

/** A connected application, as its user sees it. */
export interface ListedApp extends Omit<ConnectedApp, 'connection'> {
  readonly clientId: string
  readonly name: string
  /** Host that it is reached at; empty for an application on the user's device, and one that is no longer a client. */
  readonly host: string
}

interface AppsRecord extends StoredRecord {
  readonly apps: Readonly<Record<string, ConnectedApp>>
}

const recordVersion = 1

/** Time in ms for which a use is not noted again, so that not every use is a write. */
const noteEveryMs = 3_600_000

/**
 * The applications that users have connected by OpenID Connect, in one record for each user. All that an application
 * holds counts only while its connection stands here, so one write ends it: also what is just being made.
 */
export class ConnectedApps {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The applications of a user, by client id. */
  async of(userId: string): Promise<ReadonlyMap<string, ConnectedApp>> {
    return new Map(Object.entries(read(await this.#store.get(keyOf(userId)))))
  }

  /** The connection of an application, or `undefined`. */
  async find(userId: string, clientId: string): Promise<ConnectedApp | undefined> {
    return (await this.of(userId)).get(clientId)
  }

  /** Connects an application, or allows a connected one more. */
  async connect(userId: string, clientId: string, scopes: Iterable<string>): Promise<ConnectedApp> {
    const changed = await this.#change(userId, clientId, (app, now) => {
      const all = [...new Set([...(app?.scopes ?? []), ...scopes])]
      if (app !== undefined && all.length === app.scopes.length) return noted(app, now)
      return { connection: randomText(22), connectedAt: now, ...app, scopes: all, lastUsedAt: now }
    })
    return changed as ConnectedApp
  }

  /** Notes that an application was used. */
  async use(userId: string, clientId: string): Promise<void> {
    await this.#change(userId, clientId, (app, now) => app && noted(app, now))
  }

  /** Ends a connection. Resolves with false if there is none. */
  async disconnect(userId: string, clientId: string): Promise<boolean> {
    let isThere = false
    await this.#change(userId, clientId, (app) => {
      isThere = app !== undefined
      return undefined
    })
    return isThere
  }

  /** Ends all connections of a user. */
  async disconnectAll(userId: string): Promise<void> {
    await this.#store.take(keyOf(userId))
  }

  async #change(
    userId: string,
    clientId: string,
    change: (app: ConnectedApp | undefined, now: number) => ConnectedApp | undefined,
  ): Promise<ConnectedApp | undefined> {
    const key = keyOf(userId)
    for (;;) {
      const stored = await this.#store.get(key)
      const { [clientId]: app, ...others } = read(stored)
      const changed = change(app, this.#store.now())
      if (changed === app) return app
      const apps = changed === undefined ? others : { ...others, [clientId]: changed }
      const value = JSON.stringify({ v: recordVersion, apps } satisfies AppsRecord)
      const isStored =
        stored === undefined
          ? await this.#store.create(key, value, 'forever')
          : await this.#store.compareAndSet(key, stored.version, value, 'forever')
      if (isStored) return changed
    }
  }
}

function noted(app: ConnectedApp, now: number): ConnectedApp {
  return now - app.lastUsedAt < noteEveryMs ? app : { ...app, lastUsedAt: now }
}

function read(stored: VersionedValue | undefined): Readonly<Record<string, ConnectedApp>> {
  // Without a prototype, so that no client id finds anything else.
  const none: Record<string, ConnectedApp> = Object.create(null)
  return stored === undefined
    ? none
    : Object.assign(none, parseRecord<AppsRecord>('list of applications', stored.value, recordVersion).apps)
}

function keyOf(userId: string): string {
  return `apps:${hashToken(userId)}`
}
