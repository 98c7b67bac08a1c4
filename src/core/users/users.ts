import { type AuditTrail, noAudit } from '../../base/audit.ts'
import { given } from '../../shared/defined-fields.ts'
import { CountersignError, type ErrorReason, refused } from '../../shared/errors.ts'
import type { Store } from '../../store/store.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../wallet/wallet.ts'
import type { HeldWallet, HostUser, LinkingUsers, Session } from './host.ts'
import { Membership, type PersonKey, sessionNotListed } from './people.ts'
import { isOfWallet, type SessionWallet, type StoredSessions } from './sessions.ts'
import type { SignInUsers } from './standalone.ts'
import {
  derivedUserId,
  entryOf,
  type FoundClaim,
  firstWalletIn,
  randomUserId,
  type StoredUser,
  type UserRecord,
  UserRecords,
  userIn,
  type WalletClaim,
  WalletClaims,
  type WalletEntry,
  type WalletUser,
  walletIn,
} from './user-records.ts'

/** Most wallets of a user. A record of so many stays below 64 KiB. */
export const maxWallets = 20

/** Why a wallet that is taken back stays as it is. SESSION_INVALID: its user is being deleted. */
const notUnlinked: ReadonlySet<ErrorReason> = new Set(['WALLET_NOT_FOUND', 'LAST_WALLET', 'SESSION_INVALID'])

/** Age in ms up to which a session is enough to change the user's wallets. */
const freshMs = 10 * 60_000

/** What {@link Users} needs. */
export interface UsersParts {
  readonly store: Store
  readonly sessions: Pick<StoredSessions, 'list' | 'revoke' | 'ends'>
  /** Forgets the computers that are known for a wallet. */
  readonly forgetComputers: (wallet: WalletIdentity) => Promise<void>
  /** Default: everyone may sign in. */
  readonly membership?: Membership
  /** Whether a user keeps the address of the wallet that signed in last. Default: no. */
  readonly syncAddressToUser?: boolean
  /** Whether a user keeps the public key of the wallet that signed in last. Default: no. */
  readonly syncPublicKeyToUser?: boolean
  /** Records sessions that end with their wallet. Default: nothing is recorded. */
  readonly audit?: AuditTrail | undefined
}

/** A user as read, with what is kept in addition to the entry. */
interface UserAsRead {
  readonly read: StoredUser | undefined
  readonly synced?: Pick<WalletUser, 'address' | 'publicKeyHex'>
}

/**
 * Keeps the users and their wallets.
 *
 * Two records say that a wallet is a user's: the wallet's claim, and an entry for that claim in the user's record. The
 * wallet is the user's only if both are there.
 *
 * - Giving a wallet to a user begins with the claim: by `create`, or by `compareAndSet` over a tombstone. So of many
 *   callers one succeeds. The entry follows. After a crash in between, the next sign-in or link of the wallet writes
 *   it.
 * - Taking back a wallet that an order added unlinks it, or changes what stands for it: a link in progress that has
 *   read that before begins anew, and asks first whether the order still stands.
 * - Unlinking a wallet begins with marking the entry as leaving, by `compareAndSet` on the user's record. So of two
 *   callers who unlink a user's last two wallets, one is refused. What the wallet left is ended next; then a tombstone
 *   takes the place of the claim; then the entry goes. After a crash in between, the next call that finds the entry
 *   goes on.
 *
 * What operators do is in `UserAdministration`:
 *
 * - A block is part of the record that stands for the wallet, a claim or a tombstone, which every sign-in and link
 *   reads anyway.
 * - Moving a wallet puts a new claim in place of the old one. It names the former user until that user's sessions of
 *   the wallet are ended.
 * - Deleting a user begins with marking the record, with all entries as leaving. From then on nothing is added to it.
 *
 * An entry with an expired claim is ignored; a slow writer may leave one.
 */
export class Users implements SignInUsers, LinkingUsers<HeldWallet> {
  readonly #parts: UsersParts
  readonly #store: Store
  readonly #claims: WalletClaims
  readonly #records: UserRecords
  readonly #membership: Membership
  readonly #audit: AuditTrail

  constructor(parts: UsersParts) {
    const { store, membership = new Membership(), audit = noAudit } = parts
    this.#parts = parts
    this.#store = store
    this.#claims = new WalletClaims(store)
    this.#records = new UserRecords(store)
    this.#membership = membership
    this.#audit = audit
  }

  async resolve(identity: ProvenIdentity): Promise<HostUser> {
    for (;;) {
      // Most users have the id that follows from their wallet: their record is read together with the claim.
      const derivedId = derivedUserId(identity)
      const [found, derived] = await Promise.all([this.#claims.of(identity), this.#records.load(derivedId)])
      if (found?.blockedAt !== undefined) throw refused('LOGIN_REFUSED')
      const userId = userIdOf(identity, found)
      const stored = userId === derivedId ? derived : await this.#records.load(userId)
      this.#membership.requireListed({ ...identity, userId, firstWallet: firstWalletIn(stored?.record) })
      const claim = found?.claim ?? (await this.#claims.make(identity, found, userId))
      if (claim === undefined) continue
      if (await this.writeEntry(claim, identity, { read: stored, synced: this.#synced(identity) }))
        return { id: claim.userId }
    }
  }

  #synced({ address, publicKeyHex }: ProvenIdentity): Pick<WalletUser, 'address' | 'publicKeyHex'> {
    const { syncAddressToUser, syncPublicKeyToUser } = this.#parts
    return { ...(syncAddressToUser ? { address } : {}), ...(syncPublicKeyToUser ? { publicKeyHex } : {}) }
  }

  async requireListed(identity: ProvenIdentity): Promise<void> {
    if (!this.#membership.isRequired) return
    await this.admit(userIdOf(identity, await this.#claims.of(identity)), identity)
  }

  async admit(userId: string, wallet: ProvenIdentity): Promise<PersonKey> {
    const { adapterId, address } = wallet
    const isOwn = userId === derivedUserId(wallet)
    const firstWallet = isOwn ? undefined : firstWalletIn((await this.#records.load(userId))?.record)
    const key = { userId, adapterId, address, firstWallet }
    this.#membership.requireListed(key)
    return key
  }

  async refusalOf({ id }: HostUser, wallet: WalletIdentity): Promise<CountersignError | undefined> {
    const [found, stored] = await Promise.all([this.#claims.of(wallet), this.#records.load(id)])
    if (found?.blockedAt !== undefined) return refused('LOGIN_REFUSED')
    const { claim } = found ?? {}
    const isStaying = claim?.userId === id && entryOf(stored?.record, claim)?.leaving !== true
    return isStaying && !stored?.record.deleting ? undefined : walletUnlinked()
  }

  async holds(userId: string, wallet: SessionWallet): Promise<boolean> {
    if (await this.#claims.isBlocked(walletOf(wallet))) return false
    return (await this.walletsOf(userId)).some((each) => isOfWallet(each, wallet))
  }

  async walletsOf(userId: string): Promise<HeldWallet[]> {
    return (await this.find(userId)) === undefined ? [] : await this.list({ userId })
  }

  /** The user with this id, if there is one. */
  async find(userId: string): Promise<WalletUser | undefined> {
    const stored = await this.#records.load(userId)
    return stored === undefined || stored.record.deleting ? undefined : userIn(stored.record)
  }

  /** The wallets of a session's user, oldest first. */
  async list(session: Pick<Session, 'userId'>): Promise<HeldWallet[]> {
    const { staying } = await this.#current(session)
    return staying.map(walletIn).sort((a, b) => a.linkedAt - b.linkedAt)
  }

  /** By the store's clock, in the first ten minutes. */
  requireFresh({ createdAt }: Pick<Session, 'createdAt'>): void {
    if (this.#store.now() - createdAt >= freshMs) throw refused('SESSION_NOT_FRESH')
  }

  /**
   * Gives a wallet to a session's user. Rejects with WALLET_TAKEN if it is another's, with LOGIN_REFUSED if it is
   * blocked, and with INVALID_REQUEST if the user has as many as a user can have. `requireWanted` rejects if the wallet
   * must not be added any more: it is called after the wallet's state was read and before that is changed, and its
   * rejection is passed on. See {@link withdraw}.
   */
  async link(
    session: Pick<Session, 'userId'>,
    identity: ProvenIdentity,
    requireWanted: () => Promise<void> = async () => {},
  ): Promise<HeldWallet> {
    const { userId } = session
    await this.#current(session)
    for (;;) {
      const found = await this.#claims.of(identity)
      if (found?.blockedAt !== undefined) throw refused('LOGIN_REFUSED')
      await requireWanted()
      if (found?.claim === undefined) {
        await this.#claims.make(identity, found, userId)
        continue
      }
      const { claim } = found
      const stored = await this.#records.load(claim.userId)
      const entry = entryOf(stored?.record, claim)
      if (entry?.leaving) await this.#finishUnlink(claim.userId, entry)
      else if (claim.userId !== userId) throw refused('WALLET_TAKEN')
      else if (stored?.record.deleting) {
        await this.#claims.writeTombstone(identity, claim)
        throw refused('SESSION_INVALID')
      } else if (entry !== undefined) return walletIn(entry)
      // Then it is read again: the claim may have ended before its entry was there.
      else await this.writeEntry(claim, identity, { read: stored })
    }
  }

  /**
   * Refuses a wallet that {@link link} would not give to the user of a session now: WALLET_TAKEN for another user's,
   * INVALID_REQUEST if the user has as many as a user can have; and a user who may not sign in now, by
   * SESSION_INVALID. Changes nothing.
   */
  async requireLinkable(session: PersonKey, identity: ProvenIdentity): Promise<void> {
    if (!this.#membership.admits(session)) throw sessionNotListed()
    const { userId } = session
    const { staying } = await this.#current(session)
    const { claim } = (await this.#claims.of(identity)) ?? {}
    if (claim?.userId === userId) return
    // A link finishes what a crash left of an unlink.
    const isLeaving = claim && entryOf((await this.#records.load(claim.userId))?.record, claim)?.leaving
    if (claim !== undefined && !isLeaving) throw refused('WALLET_TAKEN')
    if (staying.length >= maxWallets) throw tooManyWallets()
  }

  /**
   * Takes a wallet from a user again that was added at `since` (epoch milliseconds) or later, as {@link unlink} does. A
   * call of {@link link} in progress, on any instance, adds it no more if its `requireWanted` rejects by now. Resolves
   * with false if the wallet is not the user's, was added before, or is the only one.
   */
  async withdraw(user: Pick<Session, 'userId'>, identity: ProvenIdentity, since: number): Promise<boolean> {
    const { userId } = user
    for (;;) {
      const found = await this.#claims.of(identity)
      const { claim } = found ?? {}
      if (claim !== undefined) {
        if (claim.userId !== userId) return false
        if (entryOf((await this.#records.load(userId))?.record, claim) !== undefined) {
          return await this.#unlinkSince(user, identity, since)
        }
        // The link has not written its entry, and writes it for a claim that is over. One that is claimed after that is
        // of another link, and stays: two calls would undo each other's steps for ever.
        await this.#claims.writeTombstone(identity, claim)
      } else if (!(await this.#claims.touch(identity, found))) continue
      // Of a sign-in while the claim was there.
      await this.endWallet(userId, identity)
      return false
    }
  }

  /** Unlinks a wallet that was linked at `since` or later. False if there is no such wallet, or no other. */
  async #unlinkSince(user: Pick<Session, 'userId'>, wallet: WalletIdentity, since: number): Promise<boolean> {
    const { adapterId, subject } = wallet
    try {
      await this.unlink(user, (wallets) =>
        wallets.find((each) => each.adapterId === adapterId && each.subject === subject && each.linkedAt >= since),
      )
      return true
    } catch (thrown) {
      if (thrown instanceof CountersignError && notUnlinked.has(thrown.reason)) return false
      throw thrown
    }
  }

  /**
   * Takes a wallet from a session's user. Rejects with WALLET_NOT_FOUND if `pick` finds none among the user's, and with
   * LAST_WALLET if the user has no other; of concurrent calls, none takes the last. Afterwards the wallet's sessions
   * have ended, the computers that are known for it are forgotten, and if it signs in again, it is a new user.
   */
  async unlink(
    session: Pick<Session, 'userId'>,
    pick: (wallets: readonly HeldWallet[]) => HeldWallet | undefined,
  ): Promise<void> {
    const { userId } = session
    for (;;) {
      const { stored, staying } = await this.#current(session)
      const wallet = pick(staying.map(walletIn))
      const chosen = staying.find(
        ({ adapterId, subject }) => adapterId === wallet?.adapterId && subject === wallet.subject,
      )
      if (stored === undefined || chosen === undefined) throw refused('WALLET_NOT_FOUND')
      if (staying.length === 1) throw refused('LAST_WALLET')
      const left = {
        ...stored.record,
        ...given({ firstWallet: firstWalletIn(stored.record) }),
        wallets: staying.map((entry) => (entry === chosen ? { ...entry, leaving: true as const } : entry)),
      }
      if (await this.#records.write(left, stored)) return await this.#finishUnlink(userId, chosen)
    }
  }

  /**
   * The record of a session's user, and the entries in it that hold. The claims are read after the record, so if the
   * record is replaced in the version that was read, they still held. What a crash interrupted is done before.
   * SESSION_INVALID if the user is being deleted.
   */
  async #current(
    session: Pick<Session, 'userId'>,
  ): Promise<{ stored: StoredUser | undefined; staying: readonly WalletEntry[] }> {
    const { userId } = session
    for (;;) {
      const stored = await this.#records.load(userId)
      if (stored?.record.deleting) throw refused('SESSION_INVALID')
      const entries = stored?.record.wallets ?? []
      const leaving = entries.filter((entry) => entry.leaving)
      if (leaving.length === 0) return { stored, staying: await this.holding(userId, entries) }
      for (const entry of leaving) await this.#finishUnlink(userId, entry)
    }
  }

  /**
   * Writes the entry of a claim if it is not there, and the other fields to be kept with the user, whose record was
   * read as `read`. Resolves with false if the wallet is being unlinked, or the user deleted; for the wallet that is
   * done then.
   */
  async writeEntry(claim: WalletClaim, identity: ProvenIdentity, { read, synced = {} }: UserAsRead): Promise<boolean> {
    for (let stored = read; ; stored = await this.#records.load(claim.userId)) {
      const entry = entryOf(stored?.record, claim)
      if (entry?.leaving) {
        await this.#finishUnlink(claim.userId, entry)
        return false
      }
      if (stored?.record.deleting) {
        await this.#claims.writeTombstone(identity, claim)
        return false
      }
      if (isSettled(claim, stored, synced)) return true
      const entered = entry === undefined ? undefined : stored?.record
      const record = entered ?? (await this.#entered(stored, claim, identity))
      if (await this.#records.write({ ...record, ...synced }, stored)) return true
    }
  }

  /** A user's record with one more entry, and without entries whose claims no longer hold. */
  async #entered(stored: StoredUser | undefined, claim: WalletClaim, identity: ProvenIdentity): Promise<UserRecord> {
    const { userId: id, claim: name } = claim
    const now = this.#store.now()
    const record: UserRecord = stored?.record ?? { id, createdAt: now, wallets: [] }
    const wallets = await this.holding(id, record.wallets)
    if (wallets.length >= maxWallets) {
      await this.#claims.writeTombstone(identity, claim)
      throw tooManyWallets()
    }
    const { adapterId, subject, publicKeyHex, address } = identity
    const entry = { adapterId, subject, publicKeyHex, address, linkedAt: now, claim: name }
    return { ...record, wallets: [...wallets, entry] }
  }

  /** Ends what a wallet left whose entry is leaving, and then its claim and its entry. */
  async #finishUnlink(userId: string, entry: WalletEntry): Promise<void> {
    const { claim } = (await this.#claims.of(entry)) ?? {}
    await this.endWallet(userId, walletIn(entry))
    // A move that a crash interrupted has left the sessions at the user before.
    if (claim?.claim === entry.claim && claim.movedFrom !== undefined) {
      await this.endWallet(claim.movedFrom, walletIn(entry))
    }
    await this.#claims.writeTombstone(entry, entry)
    for (;;) {
      const stored = await this.#records.load(userId)
      // Of a user who is deleted, the entries are needed until the last step.
      if (stored === undefined || stored.record.deleting || entryOf(stored.record, entry) === undefined) return
      const wallets = stored.record.wallets.filter(({ claim }) => claim !== entry.claim)
      if (await this.#records.write({ ...stored.record, wallets }, stored)) return
    }
  }

  /**
   * Ends the sessions and forgets the known computers of a wallet that is taken from a user. Called again after a
   * crash, and by several callers at once.
   */
  async endWallet(userId: string, wallet: ProvenIdentity): Promise<void> {
    const { sessions, forgetComputers } = this.#parts
    await forgetComputers(wallet)
    const ofWallet = (await sessions.list(userId)).filter((session) => isOfWallet(session, wallet))
    await Promise.all(
      ofWallet.map(async ({ id: sessionId }) => {
        if (!(await sessions.revoke(userId, sessionId))) return
        this.#audit.record({ type: 'session.ended', by: 'unlink', userId, sessionId }, {})
      }),
    )
    await sessions.ends.taken({ userId, fits: (session) => isOfWallet(session, wallet) })
  }

  /** The entries of a user whose claims hold. */
  async holding(userId: string, entries: readonly WalletEntry[]): Promise<WalletEntry[]> {
    const found = await Promise.all(entries.map((entry) => this.#claims.of(entry)))
    return entries.filter((entry, index) => {
      const claim = found[index]?.claim
      return claim?.userId === userId && claim.claim === entry.claim
    })
  }
}

function tooManyWallets(): CountersignError {
  return new CountersignError('INVALID_REQUEST', `You have ${maxWallets} wallets, which is the most; unlink one first`)
}

/** The refusal of a session for a wallet that was taken from its user while it signed in. */
function walletUnlinked(): CountersignError {
  return new CountersignError('LOGIN_REFUSED', 'The wallet was unlinked from this user in the meantime; sign in again')
}

/** User id of a wallet: that of its claim, the derived one, or a new one if the wallet was unlinked. */
function userIdOf(wallet: WalletIdentity, found: FoundClaim | undefined): string {
  return found?.claim?.userId ?? (found === undefined ? derivedUserId(wallet) : randomUserId())
}

/** Whether a user's record has an entry for a claim that stays, and says already what is kept of the wallet. */
function isSettled(
  claim: WalletClaim,
  stored: StoredUser | undefined,
  { address, publicKeyHex }: Pick<WalletUser, 'address' | 'publicKeyHex'>,
): boolean {
  const { record } = stored ?? {}
  const entry = entryOf(record, claim)
  if (record === undefined || entry === undefined || entry.leaving || record.deleting) return false
  return (
    (address === undefined || record.address === address) &&
    (publicKeyHex === undefined || record.publicKeyHex === publicKeyHex)
  )
}
