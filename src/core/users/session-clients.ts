import type { Life, Store } from '../../store/store.ts'

/** A session that has ended, or is about to. */
export interface EndedSession {
  readonly id: string
  readonly userId: string
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
    await this.#store.addMember(endedKey, JSON.stringify([id, userId]), { ttlMs: endedMs }, maxEnded)
  }

  /** The sessions whose end is noted. */
  async ended(): Promise<readonly EndedSession[]> {
    return (await this.#store.members(endedKey)).map((member) => {
      const [id, userId] = JSON.parse(member) as [string, string]
      return { id, userId }
    })
  }

  /** Forgets a session that has ended, and its clients. */
  async forget({ id, userId }: EndedSession): Promise<void> {
    for (const clientId of await this.of(id)) await this.#store.removeMember(keyOf(id), clientId)
    await this.#store.removeMember(endedKey, JSON.stringify([id, userId]))
  }
}

function keyOf(sessionId: string): string {
  return `session-clients:${sessionId}`
}
