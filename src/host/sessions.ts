import { hash } from 'node:crypto'
import { parseRecord, type StoredRecord } from '../record.ts'
import type { Store, VersionedValue } from '../store/store.ts'
import { hashToken, type Keyring, newToken, tokenMatches } from '../token.ts'
import type { Session } from './host.ts'
import { orderSessionEnded } from './refusals.ts'

/** Lifetimes of sessions. */
export interface SessionSettings {
  /** Lifetime of an unused session, in seconds. Using it extends it. */
  readonly ttlSeconds: number
  /** Lifetime of a session however much it is used, in seconds. */
  readonly absoluteTtlSeconds: number
}

/** What is stored: the session and the hash of its token, or, for a while, a mark that it has ended. */
type SessionRecord = StoredRecord &
  ({ readonly session: Session; readonly tokenHash: string } | { readonly ended: true })

/** Newest version of {@link SessionRecord} that this release reads, and the one that it writes. */
const sessionVersion = 1

/** Part of its lifetime after which a session is extended if it is used, so that not every read is a write. */
const extendAfter = 0.1

/**
 * Time in ms for which the mark of an ended session is kept. Longer than any request in flight and any retry of a
 * finalize (60 s) can last, so that neither brings the session back.
 */
const endedMs = 10 * 60_000

/** Most live sessions of a user. One more ends the oldest. */
const maxSessionsPerUser = 100

/**
 * Sessions kept in a store.
 *
 * A token is `<random>.<HMAC>`. One that this server did not sign never reaches the store. A session's id is made from
 * a hash of the random part, so that one read finds the session of a token, and a session can be ended by its id.
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
   * Creates a session. `secretPart` is the token's text before the dot, random by default. A second call with the same
   * one returns the session that the first made, or rejects with ORDER_FINALIZED if that has ended in the meantime.
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
    const record: SessionRecord = { v: sessionVersion, session, tokenHash: hashToken(secretPart) }
    const life = { ttlMs: expiresAt - createdAt }
    // Sent together. The token is returned once both are stored, so no list misses a session that is in use.
    const [count, created] = await Promise.all([
      this.#store.addMember(indexOf(session.userId), id, life),
      this.#store.create(keyOf(id), JSON.stringify(record), life),
    ])
    if (created) {
      if (count > maxSessionsPerUser) await this.#endOldest(session.userId)
      return { token, session }
    }
    const existing = await this.#read(id)
    if (existing === undefined) {
      throw orderSessionEnded()
    }
    return { token, session: existing.session }
  }

  /** The live session of a token, or `undefined`. Changes nothing. */
  async find(token: string): Promise<Session | undefined> {
    return (await this.#findVersioned(token))?.session
  }

  /** The live session of a token, extended if due, or `undefined`. */
  async use(token: string): Promise<{ session: Session; extended: boolean } | undefined> {
    const found = await this.#findVersioned(token)
    if (found === undefined) return undefined
    const extended = this.#extend(found.session)
    if (extended === undefined) return { session: found.session, extended: false }
    const record: SessionRecord = { v: sessionVersion, session: extended, tokenHash: found.tokenHash }
    const life = { ttlMs: extended.expiresAt - Date.now() }
    // The list first: a list that contains an expired session is harmless, one that misses a live session is not.
    await this.#store.addMember(indexOf(extended.userId), extended.id, life)
    const replaced = await this.#store.compareAndSet(keyOf(extended.id), found.version, JSON.stringify(record), life)
    if (replaced) return { session: extended, extended: true }
    // Another request was faster, and extended the session or ended it.
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

  /** Ends a session of a user. Resolves with false if the user has no live session with this id. */
  async end(userId: string, id: string): Promise<boolean> {
    for (;;) {
      const found = await this.#read(id)
      if (found === undefined || found.session.userId !== userId) return false
      // A mark takes its place, so that a request in flight can neither extend the session nor make it again.
      const ended: SessionRecord = { v: sessionVersion, ended: true }
      const marked = await this.#store.compareAndSet(keyOf(id), found.version, JSON.stringify(ended), {
        ttlMs: endedMs,
      })
      if (!marked) continue
      await this.#store.removeMember(indexOf(userId), id)
      return true
    }
  }

  /** Ends the oldest sessions of a user beyond the limit, so that listing them stays cheap. */
  async #endOldest(userId: string): Promise<void> {
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
    const record = parseRecord<SessionRecord>('session', stored.value, sessionVersion)
    if ('ended' in record || !(Date.now() < record.session.expiresAt)) return undefined
    return { session: record.session, tokenHash: record.tokenHash, version: stored.version }
  }

  /** The token's text before the dot, if this server signed it. */
  #secretPartOf(token: string): string | undefined {
    const [secretPart, signature, ...rest] = token.split('.')
    if (secretPart === undefined || signature === undefined || rest.length > 0) return undefined
    return this.#keyring.verify('session token', secretPart, signature) ? secretPart : undefined
  }
}

function sessionIdOf(secretPart: string): string {
  // Not the hash that tokens are compared with: an id is public, and reveals nothing about that hash.
  return hash('sha256', `session id\n${secretPart}`, 'base64url').slice(0, 22)
}

function keyOf(id: string): string {
  return `session:${id}`
}

function indexOf(userId: string): string {
  // Hashed, because an application's own user ids may be of any form.
  return `sessions:${hashToken(userId)}`
}
