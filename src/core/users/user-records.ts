import { hash } from 'node:crypto'
import { changeRecord, parseRecord, recordText, replaceFound } from '../../base/record.ts'
import { newId } from '../../base/token.ts'
import { refused } from '../../shared/errors.ts'
import type { Store, VersionedValue } from '../../store/store.ts'
import type { WalletIdentity } from '../wallet/wallet.ts'
import type { HeldWallet, HostUser } from './host.ts'

/** A user that the standalone host keeps: one for each wallet, unless its holder linked several. */
export interface WalletUser extends HostUser {
  readonly createdAt: number
  /** Address of the wallet that signed in last, with `syncAddressToUser`. */
  readonly address?: string
  /** Public key of the wallet that signed in last, lower-case hex, with `syncPublicKeyToUser`. */
  readonly publicKeyHex?: string
}

/** A wallet as its user's record has it. */
export interface WalletEntry extends HeldWallet {
  /** Says which of the wallet's claims this entry is for. */
  readonly claim: string
  /** Set while the wallet is being unlinked: it does not count as the user's any more. */
  readonly leaving?: true
}

/** What is stored of a user. */
export interface UserRecord extends WalletUser {
  /** Result of {@link firstWalletIn} once that wallet has been unlinked. */
  readonly firstWallet?: string
  readonly wallets: readonly WalletEntry[]
  /**
   * The user is being deleted, or was: all that is left is this mark, which keeps a call in flight from storing the
   * user again.
   */
  readonly deleting?: true
}

/** A user's record as read. */
export interface StoredUser extends VersionedValue {
  readonly record: UserRecord
}

/** The records of users in the store. */
export class UserRecords {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The record of a user, or `undefined`. */
  async load(userId: string): Promise<StoredUser | undefined> {
    const found = await this.#store.get(userKey(userId))
    return found === undefined && !isPlain(userId) ? await this.#moveOld(userId) : readUser(found)
  }

  /** Stores a record anew that is under the key of before, at which no scan finds it. */
  async #moveOld(userId: string): Promise<StoredUser | undefined> {
    // No store has taken a key with NUL.
    if (userId.includes('\0')) return undefined
    const old = readUser(await this.#store.get(plainKey(userId)))
    if (old === undefined || old.record.deleting) return old
    await this.#store.create(userKey(userId), old.value, 'forever')
    await this.#store.take(plainKey(userId))
    return readUser(await this.#store.get(userKey(userId)))
  }

  /** Stores a user's record in place of what was read. Resolves with false if that has changed. */
  async write(record: UserRecord, stored: StoredUser | undefined): Promise<boolean> {
    const value = recordText(record)
    if (value === stored?.value) return true
    return await replaceFound(this.#store, { key: userKey(record.id), found: stored, value, life: 'forever' })
  }

  /**
   * Puts the mark of a deleted user in place of a record, for `markMs` milliseconds. Resolves with false if the record
   * has changed.
   */
  async writeMark(stored: StoredUser, markMs: number): Promise<boolean> {
    const { id } = stored.record
    const mark: UserRecord = { id, createdAt: 0, deleting: true, wallets: [] }
    return await this.#store.compareAndSet(userKey(id), stored.version, recordText(mark), { ttlMs: markMs })
  }

  /** Reads the records of all users. One can come twice. */
  async *all(scan: NonNullable<Store['scan']>): AsyncGenerator<UserRecord> {
    for await (const { value } of scan(userKeys)) yield parseUser(value)
  }
}

/** Reads a record from what is stored. */
function readUser(stored: VersionedValue | undefined): StoredUser | undefined {
  return stored && { ...stored, record: parseUser(stored.value) }
}

function parseUser(text: string): UserRecord {
  return parseRecord<UserRecord>('user', text)
}

/** The entry of a record that is for a claim. */
export function entryOf(
  record: UserRecord | undefined,
  { claim }: Pick<WalletClaim, 'claim'>,
): WalletEntry | undefined {
  return record?.wallets.find((entry) => entry.claim === claim)
}

/** The wallet of an entry. */
export function walletIn({ adapterId, subject, publicKeyHex, address, linkedAt }: WalletEntry): HeldWallet {
  return { adapterId, subject, publicKeyHex, address, linkedAt }
}

/** What a record says of the user alone. */
export function userIn({
  wallets: _wallets,
  deleting: _deleting,
  firstWallet: _firstWallet,
  ...user
}: UserRecord): WalletUser {
  return user
}

/**
 * The wallet that a user's id follows from, as `{adapter_id}:{address}`, also once it is unlinked; `undefined` if it
 * was moved to another user, or there is none.
 */
export function firstWalletIn(record: UserRecord | undefined): string | undefined {
  const first = record?.wallets.find((entry) => derivedUserId(entry) === record.id)
  return first === undefined ? record?.firstWallet : `${first.adapterId}:${first.address}`
}

/** The id of the user that a wallet is until it is unlinked or linked to another. */
export function derivedUserId({ adapterId, subject }: WalletIdentity): string {
  return `usr_${hash('sha256', `${adapterId}:${subject}`, 'base64url').slice(0, 22)}`
}

/** An id for the user of a wallet that was unlinked: the one made of the wallet is, or can be, another user's. */
export function randomUserId(): string {
  return `usr_${newId()}`
}

/** What the keys of all users begin with. */
const userKeys = 'user:'

/** Whether an id can be part of a key unchanged, without being mistaken for a hash. */
function isPlain(id: string): boolean {
  return /^[!-}][!-~]{0,194}$/.test(id)
}

function plainKey(id: string): string {
  return userKeys + id
}

/** Where in the store the record of a user is. */
function userKey(id: string): string {
  // Keys are ASCII; an id that another back end has given may be of any form.
  return isPlain(id) ? plainKey(id) : `${userKeys}~${hash('sha256', `user\n${id}`, 'base64url')}`
}

/** What every record that stands for a wallet can say. Times are epoch milliseconds. */
interface WalletRecord {
  /** When an operator blocked the wallet; absent if it is not blocked. */
  readonly blockedAt?: number
}

/**
 * A wallet's claim: which user the wallet is for. Each claim has a random name, so none that is over is taken for a
 * later one.
 */
export interface WalletClaim extends WalletRecord {
  readonly userId: string
  readonly claim: string
  /** User that an operator moved the wallet away from, until what it left there is ended. */
  readonly movedFrom?: string
}

/** Takes the place of a claim after the wallet was unlinked, or if it was blocked and never had one. */
interface Tombstone extends WalletRecord {
  readonly unlinkedAt: number
}

/** What stands for a wallet, as read. */
export interface FoundClaim {
  /** Undefined if it is a tombstone. */
  readonly claim: WalletClaim | undefined
  /** When an operator blocked the wallet; undefined if it is not blocked. */
  readonly blockedAt: number | undefined
  readonly version: number
}

/**
 * The records that stand for wallets in the store: whose a wallet is, whether it was unlinked, and whether it is
 * blocked.
 */
export class WalletClaims {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** What stands for a wallet: its claim, or a tombstone; undefined if there never was either. */
  of(wallet: WalletIdentity): Promise<FoundClaim | undefined> {
    return this.#store.get(walletKey(wallet)).then(readClaim)
  }

  /** Whether an operator has blocked a wallet. */
  async isBlocked(wallet: WalletIdentity): Promise<boolean> {
    return (await this.of(wallet))?.blockedAt !== undefined
  }

  /** Rejects with LOGIN_REFUSED if an operator has blocked the wallet. */
  async requireNotBlocked(wallet: WalletIdentity): Promise<void> {
    if (await this.isBlocked(wallet)) throw refused('LOGIN_REFUSED')
  }

  /**
   * Claims a wallet for a user, in place of what was found. Resolves with undefined if another caller was faster.
   * Rejects with LOGIN_REFUSED if the wallet is blocked.
   */
  async make(wallet: WalletIdentity, found: FoundClaim | undefined, userId: string): Promise<WalletClaim | undefined> {
    if (found?.blockedAt !== undefined) throw refused('LOGIN_REFUSED')
    const claim: WalletClaim = { userId, claim: newId() }
    return (await this.#write(wallet, claim, found)) ? claim : undefined
  }

  /** Puts a tombstone in place of a claim, unless it is over already. A wallet that is blocked stays so. */
  async writeTombstone(wallet: WalletIdentity, { claim }: Pick<WalletClaim, 'claim'>): Promise<void> {
    await this.#change(walletKey(wallet), (found, unlinkedAt) =>
      'claim' in found && found.claim === claim ? { unlinkedAt, ...blockOf(found) } : undefined,
    )
  }

  /**
   * Puts a new tombstone in place of what was found, which was no claim: a call that has read that finds another
   * version. Resolves with false if another caller was faster. A wallet that is blocked stays so.
   */
  async touch(wallet: WalletIdentity, found: FoundClaim | undefined): Promise<boolean> {
    return await this.#write(wallet, { unlinkedAt: this.#store.now(), ...blockOf(found) }, found)
  }

  /**
   * Blocks a wallet, in place of what was found. Resolves with false if another caller was faster. A wallet that never
   * had a claim gets a tombstone, so that there is something to block.
   */
  async block(wallet: WalletIdentity, found: FoundClaim | undefined): Promise<boolean> {
    const now = this.#store.now()
    return await this.#write(wallet, { ...(found?.claim ?? { unlinkedAt: now }), blockedAt: now }, found)
  }

  /** Unblocks a wallet. Resolves with false if it is not blocked. */
  async unblock(wallet: WalletIdentity): Promise<boolean> {
    return await this.#change(walletKey(wallet), ({ blockedAt, ...unblocked }) =>
      blockedAt === undefined ? undefined : (unblocked as WalletClaim | Tombstone),
    )
  }

  /**
   * Gives a claimed wallet to another user, in one step. Resolves with the new claim, which remembers the user before
   * until {@link endMove}; with undefined if another caller was faster. A wallet that is blocked stays so.
   */
  async move(
    wallet: WalletIdentity,
    found: FoundClaim & { readonly claim: WalletClaim },
    userId: string,
  ): Promise<WalletClaim | undefined> {
    const claim: WalletClaim = { userId, claim: newId(), movedFrom: found.claim.userId, ...blockOf(found) }
    return (await this.#write(wallet, claim, found)) ? claim : undefined
  }

  /** Forgets which user the wallet of a claim was moved away from. Does nothing if the claim is over. */
  async endMove(wallet: WalletIdentity, { claim }: Pick<WalletClaim, 'claim'>): Promise<void> {
    await this.#change(walletKey(wallet), (found) => {
      if (!('claim' in found) || found.claim !== claim || found.movedFrom === undefined) return undefined
      const { movedFrom: _movedFrom, ...settled } = found
      return settled
    })
  }

  /**
   * Puts tombstones in place of all claims that name a user, who is deleted, and forgets that wallets were moved away
   * from that user. Reads what stands for every wallet.
   */
  async buryAllOf(userId: string, scan: NonNullable<Store['scan']>): Promise<void> {
    for await (const { key, value } of scan(walletKeys)) {
      if (without(userId, parseWallet(value), 0) === undefined) continue
      await this.#change(key, (found, now) => without(userId, found, now))
    }
  }

  /** Changes what stands for a wallet, if anything does. `change` returns `undefined` to change nothing. */
  async #change(
    key: string,
    change: (found: WalletClaim | Tombstone, now: number) => WalletClaim | Tombstone | undefined,
  ): Promise<boolean> {
    const stored = await changeRecord(this.#store, key, parseWallet, (found, now) => {
      const changed = found && change(found, now)
      return changed && { value: recordText(changed), life: 'forever' as const }
    })
    return stored !== undefined
  }

  /** Stores a record in place of what was found. Resolves with false if that has changed. */
  async #write(
    wallet: WalletIdentity,
    record: WalletClaim | Tombstone,
    found: FoundClaim | undefined,
  ): Promise<boolean> {
    const value = recordText(record)
    return await replaceFound(this.#store, { key: walletKey(wallet), found, value, life: 'forever' })
  }
}

/** Reads what stands for a wallet from what is stored. */
function readClaim(stored: VersionedValue | undefined): FoundClaim | undefined {
  if (stored === undefined) return undefined
  const record = parseWallet(stored.value)
  return { claim: 'userId' in record ? record : undefined, blockedAt: record.blockedAt, version: stored.version }
}

/** When a wallet was blocked; empty if it is not. */
export function blockOf({ blockedAt }: { readonly blockedAt?: number | undefined } = {}): WalletRecord {
  return blockedAt === undefined ? {} : { blockedAt }
}

/** A wallet's record without a user; `undefined` if the record does not name that user. */
function without(userId: string, record: WalletClaim | Tombstone, now: number): WalletClaim | Tombstone | undefined {
  if (!('userId' in record)) return undefined
  if (record.userId === userId) return { unlinkedAt: now, ...blockOf(record) }
  const { movedFrom, ...claim } = record
  return movedFrom === userId ? claim : undefined
}

function parseWallet(text: string): WalletClaim | Tombstone {
  return parseRecord<WalletClaim | Tombstone>('claim of a wallet', text)
}

/** What the keys of all wallets begin with. */
const walletKeys = 'wallet:'

/** Where in the store the record that stands for a wallet is. */
function walletKey({ adapterId, subject }: WalletIdentity): string {
  // Hashed, because a subject may be of any form.
  return `${walletKeys}${hash('sha256', `wallet\n${adapterId}\n${subject}`, 'base64url')}`
}
