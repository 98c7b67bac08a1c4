import { changeRecord, parseRecord, recordText } from '../base/record.ts'
import type { Session } from '../core/users/host.ts'
import type { SessionEnds } from '../core/users/sessions.ts'
import type { StandaloneHost } from '../core/users/standalone.ts'
import { CountersignError } from '../shared/errors.ts'
import type { Store } from '../store/store.ts'
import { ConnectedApps, type StoredConnection } from './connected-apps.ts'

/** A session that has ended, or is about to. */
export interface EndedSession {
  readonly id: string
  readonly userId: string
  /** The application that the session's user disconnects, if the session itself goes on. */
  readonly app?: { readonly clientId: string; readonly connection: string } | undefined
}

/** Clients of a session, each with the id of its grant. */
type ClientGrants = ReadonlyMap<string, string>

/** What is stored of a session's clients. */
interface ClientsRecord {
  readonly clients: readonly (readonly [clientId: string, grantId: string])[]
}

/** Time in ms for which an ended session is kept, if no issuer runs. */
const endedMs = 3 * 86_400_000

/** Most ended sessions that are kept. */
const maxEnded = 10_000

const endedKey = 'ended-sessions'

/**
 * The clients that sessions are signed in at, and those of these sessions that have ended: what grants and back-channel
 * logout use. Holds no secret, so that an operator's command can end a session, too.
 */
export class SessionClients {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The clients of a session, and their grants. A grant may be gone. */
  async of(sessionId: string): Promise<ClientGrants> {
    const found = await this.#store.get(clientsKey(sessionId))
    return found === undefined ? new Map() : readClients(found.value)
  }

  /** Changes the clients of a session, for a life in ms. `change` may be called again; `undefined` changes nothing. */
  async change(
    sessionId: string,
    ttlMs: number,
    change: (found: ClientGrants) => Promise<ClientGrants | undefined>,
  ): Promise<void> {
    await changeRecord(this.#store, clientsKey(sessionId), readClients, async (found = new Map()) => {
      const next = await change(found)
      if (next === undefined) return undefined
      return { value: recordText({ clients: [...next] } satisfies ClientsRecord), life: { ttlMs } }
    })
  }

  /** Notes, before it happens, that a session ends, or that its user disconnects an application. */
  async noteEnd(ended: EndedSession): Promise<void> {
    const clients = await this.of(ended.id)
    const concerns = ended.app === undefined ? clients.size > 0 : clients.has(ended.app.clientId)
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
    if (ended.app === undefined) await this.#store.take(clientsKey(ended.id))
    await this.#store.removeMember(endedKey, memberOf(ended))
  }
}

function readClients(text: string): ClientGrants {
  return new Map(parseRecord<ClientsRecord>('clients of a session', text).clients)
}

function memberOf({ id, userId, app }: EndedSession): string {
  return JSON.stringify(app === undefined ? [id, userId] : [id, userId, app.clientId, app.connection])
}

function clientsKey(sessionId: string): string {
  return `clients-of:${sessionId}`
}

/** What the ends of sessions in a store mean to the issuer: logouts to send, and offline access that ends. */
export function sessionEnds(store: Store): SessionEnds {
  const [clients, apps] = [new SessionClients(store), new ConnectedApps(store)]
  return {
    ending: ({ id, userId }) => clients.noteEnd({ id, userId }),
    taken: (those) => apps.endOffline(those),
  }
}

/** What the end of a connection needs. */
export interface EndParts {
  readonly apps: ConnectedApps
  readonly host: Pick<StandaloneHost, 'listSessions'>
  readonly sessionClients: SessionClients
}

/**
 * Ends what an application holds of the user of a session, in one step for each of its connections, and notes for the
 * back channel that the application is to be logged out. Resolves with whether there was something to end. Rejects with
 * SESSION_NOT_FRESH if an order made the session, and all that there is was connected directly.
 */
export async function disconnect(parts: EndParts, own: Session, clientId: string): Promise<boolean> {
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
  { host, apps, sessionClients }: EndParts,
  userId: string,
  app: StoredConnection,
): Promise<void> {
  const sessions = await host.listSessions(userId)
  const its = sessions.filter(({ orderId }) => (orderId !== undefined) === app.isOfOrder)
  for (const { id } of [...its, ...apps.offlineOf(app)]) await sessionClients.noteEnd({ id, userId, app })
}
