import { given } from '../../shared/defined-fields.ts'
import type { Store } from '../../store/store.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../wallet/wallet.ts'
import type { HeldWallet, Session } from './host.ts'
import { isOfWallet, type PastSession, type SessionEnds, StoredSessions } from './sessions.ts'
import {
  blockOf,
  firstWalletIn,
  type StoredUser,
  UserRecords,
  userIn,
  type WalletClaim,
  WalletClaims,
  type WalletUser,
  walletIn,
} from './user-records.ts'
import { maxWallets, Users } from './users.ts'

/** A store that can be searched. */
export type SearchableStore = Store & { readonly scan: NonNullable<Store['scan']> }

/** What {@link UserAdministration} needs. */
export interface UserAdministrationParts {
  readonly store: SearchableStore
  /** Default: nothing outlives a session. */
  readonly sessionEnds?: SessionEnds
  /** Forgets the computers that are known for a wallet. */
  readonly forgetComputers: (wallet: WalletIdentity) => Promise<void>
  /**
   * Ends and erases what else names a user who is deleted, or one of the user's wallets. Called again after a crash.
   */
  readonly eraseTraces: (userId: string, wallets: readonly ProvenIdentity[]) => Promise<void>
}

/** A wallet as an operator sees it. Times are epoch milliseconds. */
export interface AdministeredWallet extends HeldWallet {
  /** When it was blocked; absent if it is not. */
  readonly blockedAt?: number
}

/** What is known of a user. */
export interface AdministeredUser {
  readonly id: string
  /** Absent if the application keeps its users itself (`resolveLogin`). */
  readonly user?: WalletUser
  readonly wallets: readonly AdministeredWallet[]
  readonly sessions: readonly Session[]
  /** The wallet that the id follows from, as `{adapter_id}:{address}`, unless it was moved to another user. */
  readonly firstWallet?: string
}

/** Place of a user in the list of all, newest first. */
export type UserPlace = Pick<WalletUser, 'id' | 'createdAt'>

/** A wallet that a user of another back end has. */
export interface ImportedWallet {
  readonly wallet: ProvenIdentity
  readonly userId: string
  /** Line of the file that names it. */
  readonly line: number
}

/** What an import has done. */
export interface Imported {
  /** Number of wallets that were not the users' before. */
  readonly added: number
  /** Users who existed before, with their wallets from before and their new wallets. */
  readonly extended: readonly {
    readonly userId: string
    readonly had: readonly HeldWallet[]
    readonly got: readonly ProvenIdentity[]
  }[]
}

/** Why a command of an operator cannot be carried out. The message is one line for people. */
export class AdministrationError extends Error {
  override readonly name = 'AdministrationError'
}

/**
 * Time in ms for which the mark of a deleted user is kept. Longer than any request in flight can last, so that none
 * stores the user again.
 */
const deletedMs = 10 * 60_000

/**
 * What operators do with users, their wallets and their sessions, directly in the store, while services run. Each
 * change can be called again after a crash at any step, and goes on then. docs/admin.md says what each does.
 */
export class UserAdministration {
  readonly #parts: UserAdministrationParts
  readonly #claims: WalletClaims
  readonly #records: UserRecords
  readonly #sessions: StoredSessions
  readonly #users: Users
  readonly #scan: SearchableStore['scan']

  constructor(parts: UserAdministrationParts) {
    const { store, forgetComputers } = parts
    this.#parts = parts
    this.#scan = (beginning) => store.scan(beginning)
    this.#claims = new WalletClaims(store)
    this.#records = new UserRecords(store)
    this.#sessions = new StoredSessions(store, parts.sessionEnds)
    this.#users = new Users({ store, sessions: this.#sessions, forgetComputers })
  }

  /** A user with wallets and sessions; `undefined` if there is neither a record nor a session. */
  async find(userId: string): Promise<AdministeredUser | undefined> {
    const [stored, sessions] = await Promise.all([this.#records.load(userId), this.#sessions.list(userId)])
    const record = stored?.record.deleting ? undefined : stored?.record
    if (record === undefined && sessions.length === 0) return undefined
    const held = await this.#users.holding(userId, record?.wallets ?? [])
    const found = await Promise.all(held.map((entry) => this.#claims.of(entry)))
    const wallets = held.map((entry, index) => ({ ...walletIn(entry), ...blockOf(found[index]) }))
    const own = record && { user: userIn(record), ...given({ firstWallet: firstWalletIn(record) }) }
    return { id: userId, ...own, wallets, sessions }
  }

  /** The users behind a place in the list of all, newest first, at most `limit`. Reads the records of all users. */
  async list(limit: number, after: UserPlace | undefined): Promise<AdministeredUser[]> {
    await this.#requireRecords()
    let places = new Map<string, UserPlace>()
    const keepNewest = (): void => {
      const newest = [...places.values()].sort(newestFirst).slice(0, limit)
      places = new Map(newest.map((place) => [place.id, place]))
    }
    for await (const { id, createdAt, deleting } of this.#records.all(this.#scan)) {
      const place = { id, createdAt }
      if (deleting || (after !== undefined && newestFirst(place, after) <= 0)) continue
      places.set(id, place)
      if (places.size > limit + keptBeyond) keepNewest()
    }
    keepNewest()
    const ids = [...places.keys()]
    const users: AdministeredUser[] = []
    while (ids.length > 0) {
      const found = await Promise.all(ids.splice(0, readAtOnce).map((id) => this.find(id)))
      users.push(...found.filter((user) => user !== undefined))
    }
    return users
  }

  /** Number of users and of their live sessions. Reads all of both. */
  async count(): Promise<{ readonly users: number; readonly sessions: number }> {
    await this.#requireRecords()
    const [users, sessions] = [new Set<string>(), new Set<string>()]
    for await (const { id, deleting } of this.#records.all(this.#scan)) if (!deleting) users.add(id)
    for await (const { id } of this.#sessions.all(this.#scan)) sessions.add(id)
    return { users: users.size, sessions: sessions.size }
  }

  /**
   * Gives wallets to users, who are made if they do not exist, unless one of the wallets cannot be given: then none is.
   * Only with `add` a user who exists gets another one. A repeated call changes nothing.
   */
  async import(wallets: readonly ImportedWallet[], add: boolean): Promise<Imported> {
    await this.#requireRecords()
    const added: ImportedWallet[] = []
    const extended: Imported['extended'][number][] = []
    for (const one of wallets) if (await this.#isNew(one)) added.push(one)
    for (const [userId, those] of Map.groupBy(added, (one) => one.userId)) {
      const record = (await this.#records.load(userId))?.record
      const first = those[0]?.line ?? 0
      if (record?.deleting) throw refusedLine(first, 'the user was deleted a moment ago; try again in ten minutes')
      const held = await this.#users.holding(userId, record?.wallets ?? [])
      if (record !== undefined) {
        if (!add) throw refusedLine(first, `user ${userId} exists, and gets another wallet only with --add`)
        extended.push({ userId, had: held.map(walletIn), got: those.map(({ wallet }) => wallet) })
      }
      const beyond = those[maxWallets - held.length]
      if (beyond !== undefined) throw refusedLine(beyond.line, `a user has at most ${maxWallets} wallets`)
    }
    // The others too: a call that was interrupted can have left a claim without its entry.
    for (const one of wallets) await this.#give(one)
    return { added: added.length, extended }
  }

  /** Whether a wallet is not its user's yet. Rejects if it cannot be. */
  async #isNew({ wallet, userId, line }: ImportedWallet): Promise<boolean> {
    const found = await this.#claims.of(wallet)
    if (found?.blockedAt !== undefined) throw refusedLine(line, 'the wallet is blocked')
    if (found?.claim === undefined) return true
    if (found.claim.userId === userId) return false
    throw refusedLine(line, `the wallet is user ${found.claim.userId}’s`)
  }

  async #give({ wallet, userId, line }: ImportedWallet): Promise<void> {
    for (;;) {
      const found = await this.#claims.of(wallet)
      const claim = found?.claim ?? (await this.#claims.make(wallet, found, userId))
      if (claim === undefined) continue
      const read = await this.#records.load(userId)
      if (claim.userId !== userId || read?.record.deleting) {
        throw new AdministrationError(
          `line ${line}: the wallet or its user has changed meanwhile; run the command again`,
        )
      }
      if (await this.#users.writeEntry(claim, wallet, { read })) return
    }
  }

  /** Rejects if the application keeps its users itself: then there are sessions, and no records of users. */
  async #requireRecords(): Promise<void> {
    if ((await this.#records.all(this.#scan).next()).done !== true) return
    if ((await this.#sessions.all(this.#scan).next()).done === true) return
    throw new AdministrationError('the application keeps the users itself (resolveLogin); list and import them there')
  }

  /** Whose a wallet is, and when it was blocked; each is `undefined` if the wallet has no user, or is not blocked. */
  async ownerOf(wallet: WalletIdentity): Promise<{ readonly userId?: string; readonly blockedAt?: number }> {
    const found = await this.#claims.of(wallet)
    const userId = found?.claim?.userId
    return { ...(userId === undefined ? {} : { userId }), ...blockOf(found) }
  }

  /** The wallets of users and sessions that fit, each once. Reads all of both. */
  async walletsThat(fits: (wallet: ProvenIdentity) => boolean): Promise<ProvenIdentity[]> {
    const found = new Map<string, ProvenIdentity>()
    const add = (wallet: ProvenIdentity): void => {
      if (fits(wallet)) found.set(nameOf(wallet), wallet)
    }
    for await (const { wallets } of this.#records.all(this.#scan)) for (const entry of wallets) add(identityIn(entry))
    for await (const session of this.#sessions.all(this.#scan)) add(identityOfSession(session))
    return [...found.values()]
  }

  /** The users who have live sessions of a wallet. Reads all sessions. */
  async usersWithSessionsOf(wallet: ProvenIdentity): Promise<string[]> {
    const users = new Set<string>()
    for await (const session of this.#sessions.all(this.#scan))
      if (isOfWallet(session, wallet)) users.add(session.userId)
    return [...users]
  }

  /** Ends a session of a user. Resolves with false if the user has no live session with this id. */
  async endSession(userId: string, sessionId: string): Promise<boolean> {
    return await this.#sessions.revoke(userId, sessionId)
  }

  /** Ends all sessions of a user. Resolves with their number. */
  async endSessions(userId: string): Promise<number> {
    let ended = 0
    for (;;) {
      const sessions = await this.#sessions.list(userId)
      if (sessions.length === 0) break
      for (const { id } of sessions) if (await this.#sessions.revoke(userId, id)) ended++
    }
    await this.#sessions.ends.taken({ userId })
    return ended
  }

  /**
   * Blocks a wallet: it cannot sign in, be linked, or approve orders any more. Then ends its sessions and forgets its
   * computers. Resolves with whether it was blocked before, and the number of sessions that ended.
   */
  async block(wallet: ProvenIdentity): Promise<{ readonly wasBlocked: boolean; readonly sessionsEnded: number }> {
    for (;;) {
      const found = await this.#claims.of(wallet)
      const wasBlocked = found?.blockedAt !== undefined
      if (!wasBlocked && !(await this.#claims.block(wallet, found))) continue
      await this.#parts.forgetComputers(wallet)
      return { wasBlocked, sessionsEnded: await this.#endSessionsOf(wallet, found?.claim) }
    }
  }

  /** Unblocks a wallet. Resolves with false if it is not blocked. */
  async unblock(wallet: WalletIdentity): Promise<boolean> {
    return await this.#claims.unblock(wallet)
  }

  /**
   * Gives a wallet to another user, and ends what it left at the user before: its sessions and known computers.
   * Resolves with that user, or with undefined if it was the user's already. A user who has no wallet left is kept.
   *
   * Rejects with an {@link AdministrationError} if the wallet or the user is unknown, or the user has as many as a user
   * can have.
   */
  async move(wallet: ProvenIdentity, userId: string): Promise<string | undefined> {
    for (;;) {
      const found = await this.#claims.of(wallet)
      const claim = found?.claim
      if (found === undefined || claim === undefined) throw new AdministrationError('no user has this wallet')
      const from = claim.movedFrom
      if (from !== undefined) await this.#endMove(wallet, claim, from)
      if (claim.userId === userId) return from
      if (from !== undefined) continue
      await this.#requireRoom(userId)
      const moved = await this.#claims.move(wallet, { ...found, claim }, userId)
      if (moved === undefined) continue
      await this.#endMove(wallet, moved, claim.userId)
      return claim.userId
    }
  }

  /**
   * Deletes a user with all that is kept of the user, and ends the sessions. What is left are tombstones without any
   * text of the user, and what expires within minutes. The next sign-in of one of the wallets makes a new user.
   * Resolves with false if nothing is known of such a user.
   */
  async delete(userId: string): Promise<boolean> {
    const sessions = await this.#sessions.list(userId)
    const marked = await this.#mark(userId)
    if (marked === undefined && sessions.length === 0) return false
    const wallets = await this.#leftBy(userId, [...(marked?.record.wallets ?? []), ...sessions.map(identityOfSession)])
    for (const wallet of wallets) await this.#parts.forgetComputers(wallet)
    await this.endSessions(userId)
    await this.#parts.eraseTraces(userId, wallets)
    await this.#claims.buryAllOf(userId, this.#scan)
    for (let stored = marked; stored !== undefined; stored = await this.#records.load(userId)) {
      if (await this.#records.writeMark(stored, deletedMs)) break
    }
    return true
  }

  /**
   * Ends the sessions of a wallet. If the application keeps its users itself, a wallet without a claim can have
   * sessions of any user.
   */
  async #endSessionsOf(wallet: ProvenIdentity, claim: WalletClaim | undefined): Promise<number> {
    let ended = 0
    const end = async ({ userId, id }: Session): Promise<void> => {
      if (await this.#sessions.revoke(userId, id)) ended++
    }
    const fits = (session: PastSession): boolean => isOfWallet(session, wallet)
    if (claim === undefined) {
      for await (const session of this.#sessions.all(this.#scan)) if (fits(session)) await end(session)
      await this.#sessions.ends.taken({ fits })
      return ended
    }
    for (const userId of new Set([claim.userId, claim.movedFrom ?? claim.userId])) {
      for (const session of await this.#sessions.list(userId)) if (fits(session)) await end(session)
      await this.#sessions.ends.taken({ userId, fits })
    }
    return ended
  }

  async #requireRoom(userId: string): Promise<void> {
    const stored = await this.#records.load(userId)
    if (stored === undefined || stored.record.deleting) throw new AdministrationError('no user has this id')
    const held = await this.#users.holding(userId, stored.record.wallets)
    if (held.length < maxWallets) return
    throw new AdministrationError(`the user has ${maxWallets} wallets, which is the most`)
  }

  /** Does what is left to do of a move: ends what the wallet left, writes its new entry, and takes the old one away. */
  async #endMove(wallet: ProvenIdentity, claim: WalletClaim, from: string): Promise<void> {
    await this.#users.endWallet(from, wallet)
    const isThere = await this.#users.writeEntry(claim, wallet, { read: await this.#records.load(claim.userId) })
    await this.#dropEntries(wallet, from)
    await this.#claims.endMove(wallet, claim)
    if (!isThere) throw new AdministrationError('the wallet was unlinked, or its new user deleted, in the meantime')
  }

  /** Removes outdated entries of a moved wallet from a user's record. */
  async #dropEntries(wallet: ProvenIdentity, userId: string): Promise<void> {
    for (;;) {
      const [stored, found] = [await this.#records.load(userId), await this.#claims.of(wallet)]
      if (stored === undefined || stored.record.deleting) return
      const { wallets, firstWallet, ...record } = stored.record
      const staying = wallets.filter((entry) => nameOf(entry) !== nameOf(wallet) || entry.claim === found?.claim?.claim)
      // A wallet that has come back by another move is the user's own again.
      const isGone = found?.claim?.userId !== userId && firstWallet === `${wallet.adapterId}:${wallet.address}`
      const first = isGone ? {} : given({ firstWallet })
      if (await this.#records.write({ ...record, ...first, wallets: staying }, stored)) return
    }
  }

  /**
   * Marks a user's record as being deleted, with the entries that hold as leaving. Resolves with the record, if there
   * is one.
   */
  async #mark(userId: string): Promise<StoredUser | undefined> {
    for (;;) {
      const stored = await this.#records.load(userId)
      if (stored === undefined || stored.record.deleting) return stored
      const held = await this.#users.holding(userId, stored.record.wallets)
      const wallets = held.map((each) => ({ ...each, leaving: true }) as const)
      await this.#records.write({ ...stored.record, deleting: true, wallets }, stored)
    }
  }

  /** The wallets among these that are not another user's, each once. */
  async #leftBy(userId: string, wallets: readonly ProvenIdentity[]): Promise<ProvenIdentity[]> {
    const left = new Map<string, ProvenIdentity>()
    for (const wallet of wallets) {
      const owner = (await this.#claims.of(wallet))?.claim?.userId ?? userId
      if (owner === userId) left.set(nameOf(wallet), wallet)
    }
    return [...left.values()]
  }
}

/** Users in memory beyond those that a list keeps, until it is cut. */
const keptBeyond = 1_000

/** Users of a list that are read at the same time: calls that wait for one of few connections run out of time. */
const readAtOnce = 10

function newestFirst(one: UserPlace, other: UserPlace): number {
  return other.createdAt - one.createdAt || (one.id < other.id ? -1 : Number(one.id > other.id))
}

function refusedLine(line: number, what: string): AdministrationError {
  return new AdministrationError(`line ${line}: ${what}; nothing was imported`)
}

function identityIn({ adapterId, subject, publicKeyHex, address }: ProvenIdentity): ProvenIdentity {
  return { adapterId, subject, publicKeyHex, address }
}

function identityOfSession(session: Session): ProvenIdentity {
  return identityIn({ ...session, ...walletOf(session) })
}

function nameOf({ adapterId, subject }: WalletIdentity): string {
  return `${adapterId}\n${subject}`
}
