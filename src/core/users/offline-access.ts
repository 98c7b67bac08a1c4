import { parseRecord, recordText } from '../../base/record.ts'
import { hashToken } from '../../base/token.ts'
import type { Life, Store } from '../../store/store.ts'
import type { Session } from './host.ts'

/** A session that applications may act for after its end, by `offline_access` of OpenID Connect. */
export type OfflineSession = Pick<
  Session,
  'id' | 'userId' | 'adapterId' | 'publicKeyHex' | 'address' | 'createdAt' | 'orderId'
>

interface OfflineRecord {
  readonly session: OfflineSession
}

/** Most sessions of a user with offline access. One more ends the one that expires soonest. */
const maxPerUser = 100

/**
 * Sessions with offline access. A grant that outlives its session counts only while its session is in here, so one step
 * ends all of them, without the secret that seals grants: an operator's command can do it.
 *
 * Signing out and the session's expiry leave it. What takes a session away from outside ends it.
 */
export class OfflineAccess {
  /** Time in ms for which applications may act for a user who has signed out: 90 days. */
  readonly lifeMs: number = 90 * 86_400_000
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Begins offline access of a session, for 90 days from now. */
  async keep({ id, userId, adapterId, publicKeyHex, address, createdAt, orderId }: Session): Promise<void> {
    const wallet = { adapterId, publicKeyHex, address }
    const session: OfflineSession = { id, userId, ...wallet, createdAt, ...(orderId === undefined ? {} : { orderId }) }
    const value = recordText({ session } satisfies OfflineRecord)
    const life: Life = { ttlMs: this.lifeMs }
    // The list first: an id too many in it is harmless, a missing one is not.
    const surplus = await this.#store.addMember(indexOf(userId), id, life, maxPerUser)
    for (const each of surplus) await this.end(userId, each)
    for (;;) {
      const stored = await this.#store.get(keyOf(id))
      const isStored =
        stored === undefined
          ? await this.#store.create(keyOf(id), value, life)
          : await this.#store.compareAndSet(keyOf(id), stored.version, value, life)
      if (isStored) return
    }
  }

  /** The session with offline access that has this id, or `undefined`. */
  async find(id: string): Promise<OfflineSession | undefined> {
    const stored = await this.#store.get(keyOf(id))
    return stored && parseRecord<OfflineRecord>('offline access', stored.value).session
  }

  /** Ends the offline access of a session, if it has some. */
  async end(userId: string, id: string): Promise<void> {
    // An id that a crash leaves in the list is of nothing, and expires with the list.
    if ((await this.#store.take(keyOf(id))) !== undefined) await this.#store.removeMember(indexOf(userId), id)
  }

  /** The sessions of a user with offline access. */
  async of(userId: string): Promise<OfflineSession[]> {
    const ids = await this.#store.members(indexOf(userId))
    const found = await Promise.all(ids.map((id) => this.find(id)))
    return found.filter((session) => session !== undefined)
  }

  /** Ends the offline access of those sessions of a user that fit. */
  async endThose(userId: string, fits: (session: OfflineSession) => boolean = () => true): Promise<void> {
    for (const session of await this.of(userId)) if (fits(session)) await this.end(userId, session.id)
  }

  /** All sessions with offline access. */
  async *all(scan: NonNullable<Store['scan']>): AsyncGenerator<OfflineSession> {
    for await (const { value } of scan(keyOf(''))) {
      yield parseRecord<OfflineRecord>('offline access', value).session
    }
  }
}

function keyOf(id: string): string {
  return `offline:${id}`
}

function indexOf(userId: string): string {
  return `offline-of:${hashToken(userId)}`
}
