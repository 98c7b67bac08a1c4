import { hash } from 'node:crypto'
import { parseRecord, type StoredRecord } from '../record.ts'
import type { Store, VersionedValue } from '../store/store.ts'
import { newId } from '../token.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../wallet/proof.ts'
import type { HostUser, Session, UserWallet } from './host.ts'
import { lastWallet, tooManyWallets, walletNotFound, walletTaken } from './refusals.ts'

/** A user that the standalone host keeps: one for each wallet, unless its holder linked several. */
export interface WalletUser extends HostUser {
  readonly createdAt: number
  /** Address of the wallet that signed in last, with `syncAddressToUser`. */
  readonly address?: string
  /** Public key of the wallet that signed in last, lower-case hex, with `syncPublicKeyToUser`. */
  readonly publicKeyHex?: string
}

/** A wallet as its user's record has it. */
interface WalletEntry extends UserWallet {
  /** Says which of the wallet's claims this entry is for. */
  readonly claim: string
  /** It is being unlinked, and is not the user's any more. */
  readonly leaving?: true
}

/** What is stored of a user. */
interface UserRecord extends WalletUser, StoredRecord {
  /** Absent from the records of releases that knew no list. */
  readonly wallets?: readonly WalletEntry[]
}

/**
 * Newest version of {@link UserRecord} that this release reads. It writes 2 once the wallet that the user's id was made of is
 * unlinked, and else 1. An older release goes by the id only, and would let that wallet sign in as the user: it must refuse.
 */
const newestUserVersion = 2

/** A wallet's claim: which user the wallet is for. Each claim has a random name, so none that is over is taken for a later one. */
interface Claim extends StoredRecord {
  readonly userId: string
  readonly claim: string
}

/** What stands in place of a claim after the wallet was unlinked. */
interface Tombstone extends StoredRecord {
  readonly unlinkedAt: number
}

/** Newest version of {@link Claim} and {@link Tombstone} that this release reads, and the one that it writes. */
const claimVersion = 1

/** Most wallets of a user. A record of so many stays below 64 KiB. */
const maxWallets = 20

/** What {@link Users} needs. */
export interface UsersParts {
  readonly store: Store
  /** What of a wallet that signs in is kept with its user. */
  readonly synced: (identity: ProvenIdentity) => Pick<WalletUser, 'address' | 'publicKeyHex'>
  /**
   * Ends what a wallet that is being unlinked left at its user. Called again after a crash, and by several callers at once.
   */
  readonly unlinked: (userId: string, wallet: UserWallet) => Promise<void>
}

/**
 * Keeps the users and their wallets.
 *
 * Two records say that a wallet is a user's: the wallet's claim, and an entry for that claim in the user's record. The wallet is
 * the user's only if both are there. A wallet without a claim is the user's whose id is made of it, as in releases without claims.
 *
 * - Whoever gives a wallet to a user makes the claim first: by `create`, or by `compareAndSet` over a tombstone. So of many callers
 *   one succeeds. The entry follows. After a crash in between, the next sign-in or link of the wallet writes it.
 * - Whoever unlinks a wallet first marks the entry as leaving, by `compareAndSet` on the user's record. So of two callers who
 *   unlink a user's last two wallets, one is refused. What the wallet left is ended next; then a tombstone takes the place of the
 *   claim; then the entry goes. After a crash in between, whoever finds the entry goes on.
 *
 * An entry whose claim is over says nothing. It can be left by a caller that was held up for long.
 */
export class Users {
  readonly #store: Store
  readonly #synced: UsersParts['synced']
  readonly #unlinked: UsersParts['unlinked']

  constructor({ store, synced, unlinked }: UsersParts) {
    this.#store = store
    this.#synced = synced
    this.#unlinked = unlinked
  }

  /** Finds or makes the user of a wallet that signs in. */
  async resolve(identity: ProvenIdentity): Promise<HostUser> {
    const derived = derivedUserId(identity)
    for (;;) {
      // Most wallets are the user's whose id is made of them. That the record may be older than the claim shows when it is written.
      const [found, record] = await Promise.all([this.#claimOf(identity), this.#store.get(userKey(derived))])
      const claim = found?.claim ?? (await this.#make(identity, found, found ? randomUserId() : derived))
      if (claim === undefined) continue
      const { userId: id } = claim
      const stored = id === derived ? readUser(record) : await this.#load(id)
      if (await this.#settle(claim, identity, stored, this.#synced(identity))) return { id }
    }
  }

  /**
   * Whether a wallet is a user's. To be asked after a session of the wallet is stored: whoever unlinks the wallet either finds that
   * session, or has marked the entry before.
   */
  async isOf(userId: string, wallet: WalletIdentity): Promise<boolean> {
    const [found, stored] = await Promise.all([this.#claimOf(wallet), this.#load(userId)])
    if (found === undefined) return derivedUserId(wallet) === userId
    const { claim } = found
    return claim?.userId === userId && entryOf(stored?.record, claim)?.leaving !== true
  }

  /** The user with this id, if there is one. */
  async find(userId: string): Promise<WalletUser | undefined> {
    const stored = await this.#load(userId)
    if (stored === undefined) return undefined
    const { v: _version, wallets: _wallets, ...user } = stored.record
    return user
  }

  /** The wallets of a session's user, the one linked first first. */
  async list(session: Session): Promise<UserWallet[]> {
    const { staying } = await this.#current(session)
    return staying.map(walletIn).sort((a, b) => a.linkedAt - b.linkedAt)
  }

  /**
   * Gives a wallet to a session's user. Rejects with WALLET_TAKEN if it is another's, or was before there were claims, and with
   * INVALID_REQUEST if the user has as many as a user can have.
   */
  async link(session: Session, identity: ProvenIdentity): Promise<UserWallet> {
    const { userId } = session
    await this.#current(session)
    for (;;) {
      const found = await this.#claimOf(identity)
      if (found?.claim === undefined) {
        if (found === undefined) await this.#requireNoOtherUser(identity, userId)
        await this.#make(identity, found, userId)
        continue
      }
      const { claim } = found
      const stored = await this.#load(claim.userId)
      const entry = entryOf(stored?.record, claim)
      if (entry?.leaving) await this.#finish(claim.userId, entry)
      else if (claim.userId !== userId) throw walletTaken()
      else if (entry !== undefined) return walletIn(entry)
      // Then it is read again: the claim may have ended before its entry was there.
      else await this.#settle(claim, identity, stored)
    }
  }

  /** Takes a wallet from a session's user: see `WalletHost.unlinkWallet`. */
  async unlink(session: Session, pick: (wallets: readonly UserWallet[]) => UserWallet | undefined): Promise<void> {
    const { userId } = session
    for (;;) {
      const { stored, staying } = await this.#current(session)
      const wallet = pick(staying.map(walletIn))
      const chosen = staying.find(
        ({ adapterId, subject }) => adapterId === wallet?.adapterId && subject === wallet.subject,
      )
      if (stored === undefined || chosen === undefined) throw walletNotFound()
      if (staying.length === 1) throw lastWallet()
      const left = {
        ...stored.record,
        ...(derivedUserId(chosen) === userId ? { v: newestUserVersion } : {}),
        wallets: staying.map((entry) => (entry === chosen ? { ...entry, leaving: true as const } : entry)),
      }
      if (await this.#write(left, stored)) return await this.#finish(userId, chosen)
    }
  }

  /**
   * The record of a session's user, and the entries in it that hold. The claims are read after the record, so if the record is
   * replaced in the version that was read, they still held. Whatever a crash interrupted is done before.
   */
  async #current(session: Session): Promise<{ stored: StoredUser | undefined; staying: readonly WalletEntry[] }> {
    const { userId } = session
    await this.#adopt(session)
    for (;;) {
      const stored = await this.#load(userId)
      const entries = stored?.record.wallets ?? []
      const leaving = entries.filter((entry) => entry.leaving)
      if (leaving.length === 0) return { stored, staying: await this.#holding(userId, entries) }
      for (const entry of leaving) await this.#finish(userId, entry)
    }
  }

  /** Makes the claim of a session's wallet if it has none yet, because it signed in at a release without claims. */
  async #adopt(session: Session): Promise<void> {
    const { userId, adapterId, publicKeyHex, address } = session
    const { subject } = walletOf(session)
    const identity = { adapterId, subject, publicKeyHex, address }
    if (derivedUserId(identity) !== userId || (await this.#claimOf(identity)) !== undefined) return
    const claim = await this.#make(identity, undefined, userId)
    if (claim !== undefined) await this.#settle(claim, identity, await this.#load(userId))
  }

  /** Refuses a wallet without a claim that signed in as a user of its own at a release without claims. */
  async #requireNoOtherUser(wallet: WalletIdentity, userId: string): Promise<void> {
    const derived = derivedUserId(wallet)
    if (derived !== userId && (await this.#load(derived)) !== undefined) throw walletTaken()
  }

  /**
   * Writes the entry of a claim if it is not there, and whatever else is to be kept with the user, whose record was read as `read`.
   * Resolves with false if the wallet is being unlinked; that is done then.
   */
  async #settle(
    claim: Claim,
    identity: ProvenIdentity,
    read: StoredUser | undefined,
    synced: Pick<WalletUser, 'address' | 'publicKeyHex'> = {},
  ): Promise<boolean> {
    for (let stored = read; ; stored = await this.#load(claim.userId)) {
      const entry = entryOf(stored?.record, claim)
      if (entry?.leaving) {
        await this.#finish(claim.userId, entry)
        return false
      }
      const record =
        stored !== undefined && entry !== undefined ? stored.record : await this.#entered(stored, claim, identity)
      if (await this.#write({ ...record, ...synced }, stored)) return true
    }
  }

  /** A user's record with one more entry, and without those that say nothing any more. */
  async #entered(stored: StoredUser | undefined, claim: Claim, identity: ProvenIdentity): Promise<UserRecord> {
    const { userId: id, claim: name } = claim
    const now = this.#store.now()
    const record: UserRecord = stored?.record ?? { v: 1, id, createdAt: now }
    const wallets = await this.#holding(id, record.wallets ?? [])
    if (wallets.length >= maxWallets) {
      await this.#bury(identity, claim)
      throw tooManyWallets(maxWallets)
    }
    const isFirst = record.wallets === undefined && derivedUserId(identity) === id
    const { adapterId, subject, publicKeyHex, address } = identity
    const linkedAt = isFirst ? record.createdAt : now
    return { ...record, wallets: [...wallets, { adapterId, subject, publicKeyHex, address, linkedAt, claim: name }] }
  }

  /** Ends what a wallet left whose entry is leaving, and then its claim and its entry. */
  async #finish(userId: string, entry: WalletEntry): Promise<void> {
    await this.#unlinked(userId, walletIn(entry))
    await this.#bury(entry, entry)
    for (;;) {
      const stored = await this.#load(userId)
      if (stored === undefined || entryOf(stored.record, entry) === undefined) return
      const wallets = stored.record.wallets?.filter(({ claim }) => claim !== entry.claim) ?? []
      if (await this.#write({ ...stored.record, wallets }, stored)) return
    }
  }

  /** The entries whose claims hold. */
  async #holding(userId: string, entries: readonly WalletEntry[]): Promise<WalletEntry[]> {
    const found = await Promise.all(entries.map((entry) => this.#claimOf(entry)))
    return entries.filter((entry, index) => {
      const claim = found[index]?.claim
      return claim?.userId === userId && claim.claim === entry.claim
    })
  }

  /** What stands for a wallet: its claim, or a tombstone; undefined if there never was a claim. */
  async #claimOf(wallet: WalletIdentity): Promise<FoundClaim | undefined> {
    const stored = await this.#store.get(walletKey(wallet))
    if (stored === undefined) return undefined
    const record = parseRecord<Claim | Tombstone>('claim of a wallet', stored.value, claimVersion)
    return { claim: 'userId' in record ? record : undefined, version: stored.version }
  }

  /** Claims a wallet for a user, in place of what was found. Resolves with undefined if another caller was faster. */
  async #make(wallet: WalletIdentity, found: FoundClaim | undefined, userId: string): Promise<Claim | undefined> {
    const claim: Claim = { v: claimVersion, userId, claim: newId() }
    const [key, text] = [walletKey(wallet), JSON.stringify(claim)]
    const made =
      found === undefined
        ? await this.#store.create(key, text, 'forever')
        : await this.#store.compareAndSet(key, found.version, text, 'forever')
    return made ? claim : undefined
  }

  /** Puts a tombstone in place of a claim, unless it is over already. */
  async #bury(wallet: WalletIdentity, { claim }: Pick<Claim, 'claim'>): Promise<void> {
    const found = await this.#claimOf(wallet)
    if (found?.claim?.claim !== claim) return
    const tombstone: Tombstone = { v: claimVersion, unlinkedAt: this.#store.now() }
    // If it fails, another caller did the same: nothing else can take the place of a claim.
    await this.#store.compareAndSet(walletKey(wallet), found.version, JSON.stringify(tombstone), 'forever')
  }

  async #load(userId: string): Promise<StoredUser | undefined> {
    return readUser(await this.#store.get(userKey(userId)))
  }

  /** Stores a user's record in place of what was read. Resolves with false if that has changed. */
  async #write(record: UserRecord, stored: StoredUser | undefined): Promise<boolean> {
    const [key, text] = [userKey(record.id), JSON.stringify(record)]
    if (stored === undefined) return await this.#store.create(key, text, 'forever')
    return text === stored.value || (await this.#store.compareAndSet(key, stored.version, text, 'forever'))
  }
}

/** A user's record as read. */
interface StoredUser extends VersionedValue {
  readonly record: UserRecord
}

/** What stands for a wallet, as read. */
interface FoundClaim {
  /** Undefined if it is a tombstone. */
  readonly claim: Claim | undefined
  readonly version: number
}

function readUser(stored: VersionedValue | undefined): StoredUser | undefined {
  return stored && { ...stored, record: parseRecord<UserRecord>('user', stored.value, newestUserVersion) }
}

function entryOf(record: UserRecord | undefined, { claim }: Pick<Claim, 'claim'>): WalletEntry | undefined {
  return record?.wallets?.find((entry) => entry.claim === claim)
}

function walletIn({ adapterId, subject, publicKeyHex, address, linkedAt }: WalletEntry): UserWallet {
  return { adapterId, subject, publicKeyHex, address, linkedAt }
}

/** The id of the user that a wallet is until it is unlinked or linked to another. */
function derivedUserId({ adapterId, subject }: WalletIdentity): string {
  return `usr_${hash('sha256', `${adapterId}:${subject}`, 'base64url').slice(0, 22)}`
}

/** An id for the user of a wallet that was unlinked: the one made of the wallet is, or can be, another user's. */
function randomUserId(): string {
  return `usr_${newId()}`
}

function userKey(id: string): string {
  return `user:${id}`
}

function walletKey({ adapterId, subject }: WalletIdentity): string {
  // Hashed, because a subject may be of any form.
  return `wallet:${hash('sha256', `wallet\n${adapterId}\n${subject}`, 'base64url')}`
}
