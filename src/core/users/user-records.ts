import { hash } from 'node:crypto'
import { parseRecord, type StoredRecord } from '../../base/record.ts'
import { newId } from '../../base/token.ts'
import type { Store, VersionedValue } from '../../store/store.ts'
import type { WalletIdentity } from '../wallet/proof.ts'
import type { HostUser, UserWallet } from './host.ts'
import type { Claim } from './wallet-claims.ts'

/** A user that the standalone host keeps: one for each wallet, unless its holder linked several. */
export interface WalletUser extends HostUser {
  readonly createdAt: number
  /** Address of the wallet that signed in last, with `syncAddressToUser`. */
  readonly address?: string
  /** Public key of the wallet that signed in last, lower-case hex, with `syncPublicKeyToUser`. */
  readonly publicKeyHex?: string
}

/** A wallet as its user's record has it. */
export interface WalletEntry extends UserWallet {
  /** Says which of the wallet's claims this entry is for. */
  readonly claim: string
  /** It is being unlinked, and is not the user's any more. */
  readonly leaving?: true
}

/** What is stored of a user. */
export interface UserRecord extends WalletUser, StoredRecord {
  readonly wallets: readonly WalletEntry[]
  /** The user is being deleted, or was: all that is left is this mark, which keeps a call in flight from storing the user again. */
  readonly deleting?: true
}

/**
 * Newest version of {@link UserRecord} that this release reads. It writes 3 for a user who is being deleted; 2 once the
 * wallet that the user's id was made of is unlinked or moved; and else 1.
 */
const newestVersion = 3

/** The version of a record of a user whose id a wallet must not lead to any more. */
export const withoutOwnWallet = 2

/** The version of a record of a user who is being deleted. */
export const beingDeleted = 3

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
  load(userId: string): Promise<StoredUser | undefined> {
    return this.#store.get(userKey(userId)).then(readUser)
  }

  /** Stores a user's record in place of what was read. Resolves with false if that has changed. */
  async write(record: UserRecord, stored: StoredUser | undefined): Promise<boolean> {
    const [key, text] = [userKey(record.id), JSON.stringify(record)]
    if (stored === undefined) return await this.#store.create(key, text, 'forever')
    return text === stored.value || (await this.#store.compareAndSet(key, stored.version, text, 'forever'))
  }

  /**
   * Puts the mark of a deleted user in place of a record, for `markMs` milliseconds. Resolves with false if the record has
   * changed.
   */
  async bury(stored: StoredUser, markMs: number): Promise<boolean> {
    const { id } = stored.record
    const mark: UserRecord = { v: beingDeleted, id, createdAt: 0, deleting: true, wallets: [] }
    return await this.#store.compareAndSet(userKey(id), stored.version, JSON.stringify(mark), { ttlMs: markMs })
  }

  /** Reads the records of all users. One can come twice. */
  async *all(scan: NonNullable<Store['scan']>): AsyncGenerator<UserRecord> {
    for await (const { value } of scan(userKey(''))) yield parseUser(value)
  }
}

/** Reads a record from what is stored. */
function readUser(stored: VersionedValue | undefined): StoredUser | undefined {
  return stored && { ...stored, record: parseUser(stored.value) }
}

function parseUser(text: string): UserRecord {
  return parseRecord<UserRecord>('user', text, newestVersion)
}

/** The entry of a record that is for a claim. */
export function entryOf(record: UserRecord | undefined, { claim }: Pick<Claim, 'claim'>): WalletEntry | undefined {
  return record?.wallets.find((entry) => entry.claim === claim)
}

/** The wallet of an entry. */
export function walletIn({ adapterId, subject, publicKeyHex, address, linkedAt }: WalletEntry): UserWallet {
  return { adapterId, subject, publicKeyHex, address, linkedAt }
}

/** What a record says of the user alone. */
export function userIn({ v: _version, wallets: _wallets, deleting: _deleting, ...user }: UserRecord): WalletUser {
  return user
}

/** The id of the user that a wallet is until it is unlinked or linked to another. */
export function derivedUserId({ adapterId, subject }: WalletIdentity): string {
  return `usr_${hash('sha256', `${adapterId}:${subject}`, 'base64url').slice(0, 22)}`
}

/** An id for the user of a wallet that was unlinked: the one made of the wallet is, or can be, another user's. */
export function randomUserId(): string {
  return `usr_${newId()}`
}

/** Where in the store the record of a user is. */
function userKey(id: string): string {
  return `user:${id}`
}
