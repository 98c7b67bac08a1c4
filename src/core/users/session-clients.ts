import type { Life, Store } from '../../store/store.ts'
import type { ConnectedApp } from './connected-apps.ts'

/** A session that has ended, or is about to. */
export interface EndedSession {
  readonly id: string
  readonly userId: string
  /** The application that the session's user disconnects, if the session itself goes on. */
  readonly app?: Pick<ConnectedApp, 'clientId' | 'connection'> | undefined
}

/** Time in ms for which an ended session is kept, if no issuer runs. */
const endedMs = 3 * 86_400_000

/** Most ended sessions that are kept. */
const maxEnded = 10_000

const endedKey = 'ended-sessions'

/**
 * The clients that sessions are signed in at by OpenID Connect, and those of these sessions that have ended: what the
 * issuer's back-channel logout goes by. Holds no secret, so that an operator's command can end a session, too.
 */
export class SessionClients {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Notes that a client gets tokens in a session, for as long as a session can live. */
  async add(sessionId: string, clientId: string, life: Life): Promise<void> {
    await this.#store.addMember(keyOf(sessionId), clientId, life)
  }

  /** The clients of a session. */
  async of(sessionId: string): Promise<readonly string[]> {
    return await this.#store.members(keyOf(sessionId))
  }

  /**
   * Notes that a session ends. Called before it does: after a crash in between, the note waits for the session's end.
   */
  async noteEnd({ id, userId }: EndedSession): Promise<void> {
    if ((await this.of(id)).length === 0) return
    await this.#store.addMember(endedKey, memberOf({ id, userId }), { ttlMs: endedMs }, maxEnded)
  }

  /** Notes that an application is disconnected that a session may be signed in at. Called before it is. */
  async noteDisconnect({ id, userId, app }: Required<EndedSession>): Promise<void> {
    if (app === undefined || !(await this.of(id)).includes(app.clientId)) return
    await this.#store.addMember(endedKey, memberOf({ id, userId, app }), { ttlMs: endedMs }, maxEnded)
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
      for (const clientId of await this.of(ended.id)) await this.#store.removeMember(keyOf(ended.id), clientId)
    }
    await this.#store.removeMember(endedKey, memberOf(ended))
  }
}

function memberOf({ id, userId, app }: EndedSession): string {
  return JSON.stringify(app === undefined ? [id, userId] : [id, userId, app.clientId, app.connection])
}

function keyOf(sessionId: string): string {
  return `session-clients:${sessionId}`
}
