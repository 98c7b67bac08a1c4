import { hash } from 'node:crypto'
import { changeRecord, parseRecord, recordText } from '../../base/record.ts'
import { equalInConstantTime, hashToken, type KeyPurpose, type Keyring, newToken } from '../../base/token.ts'
import { maxSessionsPerUser } from '../../limits/limits.ts'
import { CountersignError } from '../../shared/errors.ts'
import type { Store, VersionedValue } from '../../store/store.ts'
import type { CredentialForm, Session } from './host.ts'

/** A session as far as it is kept by a part that may act for its user after its end. */
export type PastSession = Pick<
  Session,
  'id' | 'userId' | 'adapterId' | 'subject' | 'publicKeyHex' | 'address' | 'createdAt' | 'orderId' | 'firstWallet'
>

/** Sessions to remove, ended ones included. */
export interface TakenSessions {
  /** Absent: sessions of all users, for which the store is searched. */
  readonly userId?: string
  /** Absent: all that fit. */
  readonly id?: string
  readonly fits?: (session: PastSession) => boolean
}

/** Hook for the ends of sessions, for a part that lets others act in them. Each call may be repeated after a crash. */
export interface SessionEnds {
  /** Called before a live session ends in any way: after a crash in between, it is still live. */
  ending(session: Pick<Session, 'id' | 'userId'>): Promise<void>
  /** Called when sessions are taken away from their users, so that what outlives a sign-out ends too. */
  taken(those: TakenSessions): Promise<void>
}

const noSessionEnds: SessionEnds = {
  async ending() {},
  async taken() {},
}

/** What a new session is made of. */
type SessionDetails = Omit<Session, 'id' | 'createdAt' | 'expiresAt'>

/** Lifetimes of sessions. */
export interface SessionSettings {
  /** Lifetime of an unused session, in seconds. Using it extends it. */
  readonly ttlSeconds: number
  /** Lifetime of a session however much it is used, in seconds. */
  readonly absoluteTtlSeconds: number
  /** Time in seconds for which the IP address of a session is kept. By default as long as the session. */
  readonly addressTtlSeconds?: number | undefined
  /** Most tokens in each generation of the cache of tokens. Default: 4,000. 0 turns the cache off. */
  readonly cachedTokens?: number | undefined
}

/** A session as it is stored while it lives. */
interface LiveRecord {
  readonly session: Session
  readonly tokenHash: string
}

/** What takes the place of a session that has ended, for a while. */
interface EndedRecord {
  readonly ended: true
  /** There if the session's order was taken back: whether the session was live then. */
  readonly wasLive?: boolean
}

/** What is stored: the session and the hash of its token, or a mark that it has ended. */
type SessionRecord = LiveRecord | EndedRecord

/** A session with both of its credentials, which hold the same random part under signatures of two purposes. */
interface MadeSession {
  readonly token: string
  /** The cookie's value. */
  readonly cookie: string
  readonly session: Session
}

/** What each form of a credential is signed for. */
const purposes = { token: 'session token', cookie: 'session cookie' } as const satisfies Record<
  CredentialForm,
  KeyPurpose
>

/** Part of its lifetime after which a session is extended if it is used, so that not every read is a write. */
const extendAfter = 0.1

/**
 * Time in ms before its end in which a session is not extended any more, or a tenth of its lifetime if that is shorter.
 * Longer than the two steps of extending it can take: once it has expired, a mark can be in its place that has the same
 * version as the session had, and that the second step would replace.
 */
const lastMs = 15_000

/**
 * Time in ms for which the mark of an ended session is kept. Longer than any request in flight and any retry of a
 * finalize (60 s) can last, so that neither brings the session back.
 */
const endedMs = 10 * 60_000

/** The mark of a session that has ended in any way but by taking back its order. */
const endedMark = recordText({ ended: true } satisfies EndedRecord)

/** Asks the store why the user of a session must not have it. */
type CheckRefusal = () => Promise<CountersignError | undefined>

const neverRefused: CheckRefusal = async () => undefined

/** A live session as read. */
interface FoundSession {
  readonly session: Session
  readonly tokenHash: string
  readonly version: number
}

/**
 * The sessions of users in a store, to be listed and ended. Knows no tokens, and so needs no secret.
 *
 * The list of a user's sessions is a set of their ids. A session is stored together with its id in the list, and the id
 * is taken off after the session has ended. So a crash can leave an id too many, never a session that is in use and not
 * in the list. An id of a session that is over is taken off where it is found, and the store bounds the list in any
 * case.
 */
export class StoredSessions {
  protected readonly store: Store
  readonly ends: SessionEnds

  constructor(store: Store, ends: SessionEnds = noSessionEnds) {
    this.store = store
    this.ends = ends
  }

  /** The live sessions of a user, newest first. */
  async list(userId: string): Promise<Session[]> {
    const ids = await this.store.members(indexOf(userId))
    const found = await Promise.all(ids.map((id) => this.#readWithAddress(id)))
    const over = ids.filter((_, index) => found[index] === undefined)
    // The list that was read is right without this; if it fails, the next one does it.
    await Promise.allSettled(over.map((id) => this.#takeOff(userId, id)))
    return found
      .filter((one) => one !== undefined)
      .map(({ session }) => session)
      .filter((session) => session.userId === userId)
      .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1))
  }

  /** Ends a session of a user. Resolves with false if the user has no live session with this id. */
  async end(userId: string, id: string): Promise<boolean> {
    for (;;) {
      const found = await this.readStored(id)
      if (found === undefined) {
        await this.store.removeMember(indexOf(userId), id)
        return false
      }
      if (found.session.userId !== userId) return false
      await this.ends.ending(found.session)
      // A mark takes its place, so that a request in flight can neither extend the session nor make it again.
      const marked = await this.store.compareAndSet(keyOf(id), found.version, endedMark, { ttlMs: endedMs })
      if (!marked) continue
      await this.forgetAddress(found.session)
      await this.store.removeMember(indexOf(userId), id)
      return true
    }
  }

  /**
   * Takes a session away from its user: ends it, with what would outlive a sign-out. Resolves with false if the user
   * has no live session with this id.
   */
  async revoke(userId: string, id: string): Promise<boolean> {
    // Before, so that a call that fails in between leaves a session, which a retry finds; and after, because more can
    // begin while the session is live.
    await this.ends.taken({ userId, id })
    const ended = await this.end(userId, id)
    await this.ends.taken({ userId, id })
    return ended
  }

  /** Forgets the address of a session that is kept apart from it. */
  async forgetAddress({ id, ip }: Session): Promise<void> {
    if (ip === '') await this.store.take(addressKeyOf(id))
  }

  /** The live sessions of all users. One can come twice. */
  async *all(scan: NonNullable<Store['scan']>): AsyncGenerator<Session> {
    for await (const { value } of scan(keyOf(''))) {
      const record = readSession(value)
      if (isLive(record, this.store.now())) yield record.session
    }
  }

  /** Puts a stored session into the list of its user again, as after a copy of the sessions alone. */
  async relist({ id, userId, expiresAt }: Session): Promise<void> {
    await this.store.addMember(indexOf(userId), id, { ttlMs: Math.max(1, expiresAt - this.store.now()) })
  }

  /** The live session with this id, or `undefined`. */
  protected async readStored(id: string): Promise<FoundSession | undefined> {
    const stored = await this.store.get(keyOf(id))
    if (stored === undefined) return undefined
    const record = readSession(stored.value)
    if (!isLive(record, this.store.now())) return undefined
    return { session: record.session, tokenHash: record.tokenHash, version: stored.version }
  }

  /** As {@link readStored}, with the address also if it is kept apart. */
  async #readWithAddress(id: string): Promise<FoundSession | undefined> {
    const found = await this.readStored(id)
    if (found === undefined || found.session.ip !== '') return found
    const ip = (await this.store.get(addressKeyOf(id)))?.value ?? ''
    return { ...found, session: { ...found.session, ip } }
  }

  /** Ends a session that the list names. */
  async endListed(userId: string, id: string): Promise<void> {
    await this.#keepAway(id)
    await this.end(userId, id)
  }

  /** Takes a session that was found to be over off the list, unless it has arrived since. */
  async #takeOff(userId: string, id: string): Promise<void> {
    if ((await this.#keepAway(id)) || (await this.readStored(id)) === undefined) {
      await this.store.removeMember(indexOf(userId), id)
    }
  }

  /**
   * Marks a session that is not in the store as ended. Resolves with false if there is a session or a mark. A session
   * that the list names and the store does not have can be on its way, in a cluster, whose servers answer in any order.
   * The mark keeps it out: arriving after its removal from the list, it would be live and in no list.
   */
  async #keepAway(id: string): Promise<boolean> {
    return await this.store.create(keyOf(id), endedMark, { ttlMs: endedMs })
  }
}

/**
 * Sessions kept in a store.
 *
 * A token is `<random>.<HMAC>`, and so is the cookie's value, with an HMAC of another purpose: a script with the token
 * cannot plant it as a cookie, and a stolen cookie is no token. What this server did not sign never reaches the store.
 * A session's id is made from a hash of the random part, so that one read finds the session of a token, and a session
 * can be ended by its id.
 */
export class Sessions extends StoredSessions {
  readonly #settings: SessionSettings
  readonly #keyring: Keyring
  readonly #recent: RecentTokens

  constructor(settings: SessionSettings, store: Store, keyring: Keyring, ends?: SessionEnds) {
    super(store, ends)
    this.#settings = settings
    this.#keyring = keyring
    this.#recent = new RecentTokens(settings.cachedTokens)
    keyring.follow(() => () => this.#recent.clear())
  }

  /**
   * Creates a session. `secretPart` is the token's text before the dot, random by default. A second call with the same
   * one returns the session that the first made, or rejects with ORDER_FINALIZED if that has ended in the meantime.
   *
   * `refusalOf` resolves with the reason why the user must not have it, or `undefined`. It is checked after the write:
   * a concurrent "end all sessions" either sees this session or is seen by the check. A refused session is ended, and
   * this rejects with the refusal.
   */
  async create(
    details: SessionDetails,
    secretPart?: string,
    refusalOf: CheckRefusal = neverRefused,
  ): Promise<MadeSession> {
    for (;;) {
      const made = await this.#make(details, secretPart ?? newToken('session'), refusalOf)
      if (made !== undefined) return made
      if (secretPart !== undefined) throw orderSessionEnded()
    }
  }

  /** Makes or finds the session of a secret part. Resolves with undefined if it has ended. */
  async #make(details: SessionDetails, secretPart: string, refusalOf: CheckRefusal): Promise<MadeSession | undefined> {
    const id = sessionIdOf(secretPart)
    const createdAt = this.store.now()
    const expiresAt = createdAt + Math.min(this.#settings.ttlSeconds, this.#settings.absoluteTtlSeconds) * 1000
    const session: Session = { id, ...details, createdAt, expiresAt }
    const addressMs = this.#addressMs()
    const stored = addressMs === undefined ? session : { ...session, ip: '' }
    const record: SessionRecord = { session: stored, tokenHash: hashToken(secretPart) }
    const life = { ttlMs: expiresAt - createdAt }
    const list = indexOf(session.userId)
    // Sent together. The token is returned once all are stored, so no list misses a session that is in use.
    const [created, surplus] = await Promise.all([
      this.store.create(keyOf(id), recordText(record), life),
      this.store.addMember(list, id, life, maxSessionsPerUser),
      this.#keepAddress(session, Math.min(addressMs ?? 0, life.ttlMs)),
    ])
    const refusal = await refusalOf()
    const made = created ? session : (await this.readStored(id))?.session
    if (made === undefined) {
      await this.store.removeMember(list, id)
      return undefined
    }
    if (refusal !== undefined) {
      await this.end(session.userId, id)
      throw refusal
    }
    // One that cannot be ended now stays in the list, and the next sign-in ends it.
    if (created && surplus.length > 0) {
      await Promise.allSettled(surplus.map((each) => this.endListed(session.userId, each)))
    }
    const signed = (form: CredentialForm): string => `${secretPart}.${this.#keyring.sign(purposes[form], secretPart)}`
    return { token: signed('token'), cookie: signed('cookie'), session: made }
  }

  /** The live session of a token or cookie, or `undefined`. Changes nothing. */
  async find(token: string, form: CredentialForm = 'token'): Promise<Session | undefined> {
    const signed = this.#tokenOf(token, form)
    return signed && this.#sessionIn(signed, await this.store.get(keyOf(signed.sessionId)))?.session
  }

  /** The id of the session of a token or cookie, which may have ended; `undefined` if this server did not sign it. */
  idOf(token: string, form: CredentialForm): string | undefined {
    return this.#tokenOf(token, form)?.sessionId
  }

  /** The live session of a token or cookie, or `undefined`. Extended if due, and if `mayLast` does not deny it. */
  async use(
    token: string,
    form: CredentialForm = 'token',
    mayLast: (session: Session) => boolean = () => true,
  ): Promise<{ session: Session; extended: boolean } | undefined> {
    const signed = this.#tokenOf(token, form)
    const stored = signed && (await this.store.get(keyOf(signed.sessionId)))
    const now = this.store.now()
    const found = signed && this.#sessionIn(signed, stored, now)
    if (found === undefined) return undefined
    const extended = mayLast(found.session) ? this.#extend(found.session, now) : undefined
    return extended === undefined
      ? { session: found.session, extended: false }
      : await this.#replace(found, extended, now)
  }

  /** Extends a session that was read, if due, because it was used by other means than its token or cookie. */
  async extend(session: Session): Promise<void> {
    const now = this.store.now()
    // Most uses end here, without another read.
    if (this.#extend(session, now) === undefined) return
    const found = await this.readStored(session.id)
    const extended = found && this.#extend(found.session, now)
    if (found !== undefined && extended !== undefined) await this.#replace(found, extended, now)
  }

  /** Stores an extended session. Resolves with `undefined` if it has ended meanwhile. */
  async #replace(
    found: FoundSession,
    extended: Session,
    now: number,
  ): Promise<{ session: Session; extended: boolean } | undefined> {
    const record: SessionRecord = { session: extended, tokenHash: found.tokenHash }
    const life = { ttlMs: extended.expiresAt - now }
    // The list first: a list that contains an expired session is harmless, one that misses a live session is not.
    await this.store.addMember(indexOf(extended.userId), extended.id, life, maxSessionsPerUser)
    const replaced = await this.store.compareAndSet(keyOf(extended.id), found.version, recordText(record), life)
    if (replaced) return { session: extended, extended: true }
    // Another request was faster, and extended the session or ended it.
    const fresh = await this.read(extended.id)
    if (fresh !== undefined) return { session: fresh, extended: false }
    await this.store.removeMember(indexOf(extended.userId), extended.id)
    return undefined
  }

  /** The live session with this id, or `undefined`. Changes nothing. */
  async read(id: string): Promise<Session | undefined> {
    return (await this.readStored(id))?.session
  }

  /**
   * Ends the session of an order that is taken back, or keeps it from being made. Resolves with true if it was live. A
   * mark remembers the answer, so that a repeated call within ten minutes resolves with the same.
   */
  async takeBack(userId: string, id: string): Promise<boolean> {
    const wasLive = await this.#takeBack(userId, id)
    // After it: no more can begin.
    await this.ends.taken({ userId, id })
    return wasLive
  }

  async #takeBack(userId: string, id: string): Promise<boolean> {
    const { wasLive, session } = await changeRecord(this.store, keyOf(id), readSession, async (record, now) => {
      const live = record !== undefined && isLive(record, now)
      if (live) await this.ends.ending({ id, userId })
      // A mark that is there for another reason is replaced too: it could end before a request that is in flight now.
      const wasLive = (record !== undefined && 'ended' in record ? record.wasLive : undefined) ?? live
      const value = recordText({ ended: true, wasLive } satisfies EndedRecord)
      const session = record !== undefined && 'session' in record ? record.session : undefined
      return { value, life: { ttlMs: endedMs }, wasLive, session }
    })
    if (session !== undefined) await this.forgetAddress(session)
    await this.store.removeMember(indexOf(userId), id)
    return wasLive
  }

  /** Time in ms for which addresses are kept apart from their sessions; `undefined` if they are kept in them. */
  #addressMs(): number | undefined {
    const { addressTtlSeconds, absoluteTtlSeconds } = this.#settings
    if (addressTtlSeconds === undefined || addressTtlSeconds >= absoluteTtlSeconds) return undefined
    return addressTtlSeconds * 1000
  }

  #keepAddress({ id, ip }: Session, ttlMs: number): Promise<unknown> | undefined {
    return ip !== '' && ttlMs > 0 ? this.store.create(addressKeyOf(id), ip, { ttlMs }) : undefined
  }

  /** Time at which a session ends however much it is used. */
  lastEndOf({ createdAt }: Pick<Session, 'createdAt'>): number {
    return createdAt + this.#settings.absoluteTtlSeconds * 1000
  }

  #extend(session: Session, now: number): Session | undefined {
    const ttlMs = this.#settings.ttlSeconds * 1000
    const leftMs = session.expiresAt - now
    if (leftMs > ttlMs * (1 - extendAfter) || leftMs < Math.min(lastMs, ttlMs * extendAfter)) return undefined
    const expiresAt = Math.min(now + ttlMs, this.lastEndOf(session))
    return expiresAt > session.expiresAt ? { ...session, expiresAt } : undefined
  }

  /** The parts of a signed token or cookie; `undefined` if this server did not sign it in this form. */
  #tokenOf(token: string, form: CredentialForm): SignedToken | undefined {
    // The form is part of the key: a text accepted in one form must not pass in the other.
    return this.#recent.of(`${form} ${token}`, () => this.#signed(token, form))
  }

  /** The live session of a token in what is stored under its id, or `undefined`. */
  #sessionIn(
    signed: SignedToken,
    stored: VersionedValue | undefined,
    now = this.store.now(),
  ): FoundSession | undefined {
    if (stored === undefined || !isSameText(signed.last, stored)) signed.last = stored && readFor(signed, stored)
    const { last, tokenHash } = signed
    if (last === undefined || now >= last.session.expiresAt) return undefined
    return { session: last.session, tokenHash, version: last.version }
  }

  #signed(token: string, form: CredentialForm): SignedToken | undefined {
    const [secretPart, signature, ...rest] = token.split('.')
    if (secretPart === undefined || signature === undefined || rest.length > 0) return undefined
    if (!this.#keyring.verify(purposes[form], secretPart, signature)) return undefined
    return { sessionId: sessionIdOf(secretPart), tokenHash: hashToken(secretPart) }
  }
}

function isSameText(last: ReadSession | undefined, { value, version }: VersionedValue): boolean {
  return last !== undefined && last.text === value && last.version === version
}

/** Reads the session of a token; `undefined` if it has ended, or is not of that token. */
function readFor({ tokenHash }: SignedToken, { value, version }: VersionedValue): ReadSession | undefined {
  const record = readSession(value)
  if ('ended' in record || !equalInConstantTime(tokenHash, record.tokenHash)) return undefined
  return { text: value, version, session: Object.freeze(record.session) }
}

function isLive(record: SessionRecord, now: number): record is LiveRecord {
  return !('ended' in record) && now < record.session.expiresAt
}

function readSession(text: string): SessionRecord {
  return parseRecord<SessionRecord>('session', text)
}

/** The id of the session whose token has this text before the dot. */
export function sessionIdOf(secretPart: string): string {
  // Not the hash that tokens are compared with: an id is public, and reveals nothing about that hash.
  return hash('sha256', `session id\n${secretPart}`, 'base64url').slice(0, 22)
}

function keyOf(id: string): string {
  return `session:${id}`
}

/** Where the address of a session is if it is to be kept for a shorter time. */
function addressKeyOf(id: string): string {
  return `session-address:${id}`
}

function indexOf(userId: string): string {
  // Hashed, because an application's own user ids may be of any form.
  return `sessions:${hashToken(userId)}`
}

/** The refusal of a retried finalize whose session was made before and has ended since. */
export function orderSessionEnded(): CountersignError {
  return new CountersignError('ORDER_FINALIZED', 'The order was finalized, and the session it made has ended')
}

/** The wallet of a session. */
export type SessionWallet = Pick<Session, 'adapterId' | 'subject' | 'address' | 'publicKeyHex'>

/**
 * Whether a session is of a wallet. If one of them does not have the subject, an address or key in common is enough.
 */
export function isOfWallet(session: SessionWallet, wallet: SessionWallet): boolean {
  const { adapterId, subject, publicKeyHex, address } = wallet
  if (session.adapterId !== adapterId) return false
  if (session.subject !== undefined && subject !== undefined) return session.subject === subject
  return session.address === address || (publicKeyHex !== '' && session.publicKeyHex === publicKeyHex)
}

/** Parts of a token that this server signed, by which its session is found. */
export interface SignedToken {
  readonly sessionId: string
  /** What is stored of the token. */
  readonly tokenHash: string
  /** The session as it was read last. Good for as long as the store has the same text. */
  last?: ReadSession | undefined
}

/** A session as it was read, and what it was read from. */
export interface ReadSession {
  readonly text: string
  readonly version: number
  /** Frozen, because it is handed out again and again. */
  readonly session: Session
}

/** Most tokens of each of the two generations. A token takes about 3 KiB together with its session. */
const maxTokens = 4_000
/** Time in ms after which the newer generation becomes the older one, as it also does when it is full. */
const generationMs = 30_000

/**
 * Cache of session tokens, two generations. Without it, a session check takes 1.5 to 1.8 times the CPU: most tokens are
 * used again and again, and a lookup here takes a small part of the time that the check of a token's signature, its
 * hash and the reading of its session take.
 *
 * It holds SHA-256 hashes of tokens, and no token; a token without the server's signature is not held, so made-up
 * tokens fill no memory. Whether a session is live is not known here: the store is asked at every use. A token is
 * forgotten between 30 and 60 seconds after its last use, or sooner under load.
 */
export class RecentTokens {
  readonly #max: number
  #newer = new Map<string, SignedToken>()
  #older = new Map<string, SignedToken>()
  #timer: NodeJS.Timeout | undefined

  /** `max` is the most tokens of each generation; 0 turns the cache off. */
  constructor(max: number = maxTokens) {
    this.#max = max
  }

  /** What is made of a token; `make` makes it, or returns `undefined` for a token that this server did not sign. */
  of(token: string, make: () => SignedToken | undefined): SignedToken | undefined {
    if (this.#max === 0) return make()
    const key = hash('sha256', token, 'base64url')
    const known = this.#newer.get(key)
    if (known !== undefined) return known
    const signed = this.#older.get(key) ?? make()
    if (signed === undefined) return undefined
    if (this.#newer.size >= this.#max) {
      this.#age()
      this.#timer?.refresh()
    }
    this.#newer.set(key, signed)
    this.#timer ??= setInterval(() => this.#age(), generationMs).unref()
    return signed
  }

  /** Forgets all tokens. */
  clear(): void {
    this.#newer.clear()
    this.#older.clear()
  }

  #age(): void {
    this.#older = this.#newer
    this.#newer = new Map()
    if (this.#older.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
