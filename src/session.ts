import { createHash } from 'node:crypto'
import { CountersignError } from './errors.ts'
import type { Session } from './host/host.ts'
import type { Store, VersionedValue } from './store/store.ts'
import { hashToken, type Keyring, newToken, tokenMatches } from './token.ts'

/** How long sessions live. */
export interface SessionSettings {
  /** Life of a session that is not used, seconds. Using it extends it. */
  readonly ttlSeconds: number
  /** Life of a session however much it is used, seconds. */
  readonly absoluteTtlSeconds: number
}

/** What is stored: the session and the hash of its token; or that it was ended, for a while. */
type SessionRecord = { readonly session: Session; readonly tokenHash: string } | { readonly ended: true }

/** A session is extended once this part of its life has gone by, so that not every read is a write. */
const extendAfter = 0.1

/**
 * How long it is remembered that a session was ended. Longer than any request in flight or retry of a finalize (60 s) can
 * last, so that neither brings it back.
 */
const endedMs = 10 * 60_000

/** Live sessions that a user has at most: a further one ends the oldest. */
const maxSessionsPerUser = 100

/**
 * Sessions kept in a store.
 *
 * A token is `<random>.<HMAC>`: one that this server did not sign never reaches the store. A session's id is made from a
 * hash of the random part, so that a token finds its session by one read, and a session can be ended by its id.
 */
export class Sessions {
  readonly #settings: SessionSettings
  readonly #store: Store
  readonly #keyring: Keyring

  constructor(settings: SessionSettings, store: Store, keyring: Keyring) {
    this.#settings = settings
    this.#store = store
    this.#keyring = keyring
  }

  /**
   * Creates a session. `secretPart` (a token's text before the dot) is random unless it is given; given twice, the second
   * call returns the session that the first made. When that one was ended meanwhile: ORDER_FINALIZED.
   */
  async create(
    details: Omit<Session, 'id' | 'createdAt' | 'expiresAt'>,
    secretPart: string = newToken('session'),
  ): Promise<{ token: string; session: Session }> {
    const id = sessionIdOf(secretPart)
    const token = `${secretPart}.${this.#keyring.sign('session token', secretPart)}`
    const createdAt = Date.now()
    const expiresAt = createdAt + Math.min(this.#settings.ttlSeconds, this.#settings.absoluteTtlSeconds) * 1000
    const session: Session = { id, ...details, createdAt, expiresAt }
    const record: SessionRecord = { session, tokenHash: hashToken(secretPart) }
    const life = { ttlMs: expiresAt - createdAt }
    // Both go out together. The token is handed out after both are there, so there is no session that a list misses.
    const [, created] = await Promise.all([
      this.#store.addMember(indexOf(session.userId), id, life),
      this.#store.create(keyOf(id), JSON.stringify(record), life),
    ])
    if (created) {
      await this.#endOldest(session.userId)
      return { token, session }
    }
    const existing = await this.#read(id)
    if (existing === undefined) {
      throw new CountersignError('ORDER_FINALIZED', 'The order was finalized, and the session it made has ended')
    }
    return { token, session: existing.session }
  }

  /** The live session of a token, or `undefined`. Changes nothing. */
  async find(token: string): Promise<Session | undefined> {
    return (await this.#findVersioned(token))?.session
  }

  /** The live session of a token, extended when due, or `undefined`. */
  async use(token: string): Promise<{ session: Session; extended: boolean } | undefined> {
    const found = await this.#findVersioned(token)
    if (found === undefined) return undefined
    const extended = this.#extend(found.session)
    if (extended === undefined) return { session: found.session, extended: false }
    const record: SessionRecord = { session: extended, tokenHash: found.tokenHash }
    const life = { ttlMs: extended.expiresAt - Date.now() }
    // The list first: one that names a session for too long is harmless, one that misses a live session is not.
    await this.#store.addMember(indexOf(extended.userId), extended.id, life)
    const replaced = await this.#store.compareAndSet(keyOf(extended.id), found.version, JSON.stringify(record), life)
    if (replaced) return { session: extended, extended: true }
    // Somebody was faster: another request that extended it, or one that ended it.
    const fresh = await this.find(token)
    return fresh === undefined ? undefined : { session: fresh, extended: false }
  }

  /** The live sessions of a user, newest first. */
  async list(userId: string): Promise<Session[]> {
    const ids = await this.#store.members(indexOf(userId))
    const found = await Promise.all(ids.map((id) => this.#read(id)))
    return found
      .filter((one) => one !== undefined)
      .map(({ session }) => session)
      .filter((session) => session.userId === userId)
      .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1))
  }

  /** Ends a session of a user; false when the user has no live session with this id. */
  async end(userId: string, id: string): Promise<boolean> {
    for (;;) {
      const found = await this.#read(id)
      if (found === undefined || found.session.userId !== userId) return false
      // A mark stays in its place: a request in flight that means to extend it, or to make it again, finds it taken.
      const ended: SessionRecord = { ended: true }
      const marked = await this.#store.compareAndSet(keyOf(id), found.version, JSON.stringify(ended), {
        ttlMs: endedMs,
      })
      if (!marked) continue
      await this.#store.removeMember(indexOf(userId), id)
      return true
    }
  }

  /** Keeps the number of a user's sessions, and so the work of listing them, within bounds. */
  async #endOldest(userId: string): Promise<void> {
    const ids = await this.#store.members(indexOf(userId))
    if (ids.length <= maxSessionsPerUser) return
    const oldest = (await this.list(userId)).slice(maxSessionsPerUser)
    await Promise.all(oldest.map(({ id }) => this.end(userId, id)))
  }

  #extend(session: Session): Session | undefined {
    const now = Date.now()
    const ttlMs = this.#settings.ttlSeconds * 1000
    if (session.expiresAt - now > ttlMs * (1 - extendAfter)) return undefined
    const expiresAt = Math.min(now + ttlMs, session.createdAt + this.#settings.absoluteTtlSeconds * 1000)
    return expiresAt > session.expiresAt ? { ...session, expiresAt } : undefined
  }

  async #findVersioned(token: string): Promise<{ session: Session; tokenHash: string; version: number } | undefined> {
    const secretPart = this.#secretPartOf(token)
    if (secretPart === undefined) return undefined
    const found = await this.#read(sessionIdOf(secretPart))
    return found !== undefined && tokenMatches(secretPart, found.tokenHash) ? found : undefined
  }

  async #read(id: string): Promise<{ session: Session; tokenHash: string; version: number } | undefined> {
    const stored: VersionedValue | undefined = await this.#store.get(keyOf(id))
    if (stored === undefined) return undefined
    const record = JSON.parse(stored.value) as SessionRecord
    if ('ended' in record || !(Date.now() < record.session.expiresAt)) return undefined
    return { ...record, version: stored.version }
  }

  /** What stands before the dot, if this server signed it. */
  #secretPartOf(token: string): string | undefined {
    const [secretPart, signature, ...rest] = token.split('.')
    if (secretPart === undefined || signature === undefined || rest.length > 0) return undefined
    return this.#keyring.verify('session token', secretPart, signature) ? secretPart : undefined
  }
}

function sessionIdOf(secretPart: string): string {
  // Not the hash that is stored to compare with: an id is shown, so it says nothing of that one either.
  return createHash('sha256').update(`session id\n${secretPart}`).digest('base64url').slice(0, 22)
}

function keyOf(id: string): string {
  return `session:${id}`
}

function indexOf(userId: string): string {
  // Hashed, because an application's own user ids may be of any form.
  return `sessions:${hashToken(userId)}`
}
