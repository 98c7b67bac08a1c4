import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { parseRecord, recordText } from '../base/record.ts'
import type { KeyPurpose, Keyring } from '../base/token.ts'
import type { Life, Store } from '../store/store.ts'

/** A record as read. */
export interface ReadRecord<T> {
  readonly record: T
  /** Version of the stored value, for a compare-and-set. */
  readonly version: number
  /** Whether a secret other than the first sealed it. */
  readonly isOld: boolean
}

/** A stored value that a compare-and-set replaces. */
type Versioned = Pick<ReadRecord<unknown>, 'version'>

/** A record to store, and for how long. */
export interface RecordToStore {
  readonly kind: string
  readonly id: string
  readonly record: object
  readonly life: Life
}

/** A record that none of the service's secrets opens. */
export class UnknownSecretError extends Error {
  override readonly name = 'UnknownSecretError'
}

/** Largest text of a record in bytes. A store takes 64 KiB, and sealed text is longer by a third. */
const maxBytes = 44 * 1024

const ivBytes = 12
const tagBytes = 16

/**
 * Records whose ids can be secrets: a code, a refresh token. The store has the SHA-256 of the id as the key, and a
 * value that only the id and a secret of the service open (AES-256-GCM). Reading the store gives none of them, and
 * writing to it makes none up, nor puts one in another's place.
 */
export class SealedRecords {
  readonly #store: Store
  readonly #keyring: Keyring

  constructor(store: Store, keyring: Keyring) {
    this.#store = store
    this.#keyring = keyring
  }

  /**
   * The record of a kind with an id, or `undefined`: also if it was sealed with a secret that is no longer among those
   * of the service, which ends what was issued under it.
   */
  async find<T extends object>(kind: string, id: string): Promise<ReadRecord<T> | undefined> {
    return await this.read<T>(kind, id).catch((error: unknown) => {
      if (error instanceof UnknownSecretError) return undefined
      throw error
    })
  }

  /** As {@link find}, but rejects with an {@link UnknownSecretError}. */
  async read<T extends object>(kind: string, id: string): Promise<ReadRecord<T> | undefined> {
    const stored = await this.#store.get(keyOf(kind, id))
    if (stored === undefined) return undefined
    const { text, isOld } = this.#open(kind, id, stored.value)
    return { record: parseRecord<T>(kind, text), version: stored.version, isOld }
  }

  /**
   * Stores a record in place of the one found, or of a record that no secret opens. Resolves with false, without a
   * change, if the stored record has changed meanwhile.
   */
  async put(found: Versioned | undefined, next: RecordToStore): Promise<boolean> {
    if (found !== undefined) return await this.replace(found, next)
    if (await this.create(next)) return true
    const { kind, id } = next
    const stored = await this.#store.get(keyOf(kind, id))
    if (stored === undefined || (await this.find(kind, id)) !== undefined) return false
    return await this.replace(stored, next)
  }

  /** Stores a new record. Resolves with false, without a change, if there is one of this kind and id. */
  async create({ kind, id, record, life }: RecordToStore): Promise<boolean> {
    return await this.#store.create(keyOf(kind, id), this.#seal(kind, id, record), life)
  }

  /** Replaces a record that was read. Resolves with false, without a change, if it has changed or is gone. */
  async replace({ version }: Versioned, { kind, id, record, life }: RecordToStore): Promise<boolean> {
    return await this.#store.compareAndSet(keyOf(kind, id), version, this.#seal(kind, id, record), life)
  }

  /** Removes a record. Resolves with whether there was one. */
  async remove(kind: string, id: string): Promise<boolean> {
    return (await this.#store.take(keyOf(kind, id))) !== undefined
  }

  #seal(kind: string, id: string, record: object): string {
    const text = recordText(record)
    if (Buffer.byteLength(text) > maxBytes)
      throw new RangeError(`a record of kind ${kind} is larger than ${maxBytes} bytes`)
    const iv = randomBytes(ivBytes)
    const [key] = this.#keyring.derive(purpose, [kind, id])
    const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
    const sealed = [iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat(sealed).toString('base64url')
  }

  #open(kind: string, id: string, value: string): { text: string; isOld: boolean } {
    const bytes = Buffer.from(value, 'base64url')
    const iv = bytes.subarray(0, ivBytes)
    const sealed = bytes.subarray(ivBytes, -tagBytes)
    const tag = bytes.subarray(-tagBytes)
    for (const [index, key] of this.#keyring.derive(purpose, [kind, id]).entries()) {
      const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes }).setAuthTag(tag)
      const text = decipher.update(sealed)
      try {
        return { text: Buffer.concat([text, decipher.final()]).toString('utf8'), isOld: index > 0 }
      } catch {
        // Another of the secrets sealed it.
      }
    }
    throw new UnknownSecretError(`a stored record of kind ${kind} opens with none of the secrets of this service`)
  }
}

const purpose: KeyPurpose = 'oidc record'

function keyOf(kind: string, id: string): string {
  return `oidc:${kind}:${hash('sha256', id, 'base64url')}`
}
