import { randomBytes } from 'node:crypto'
import { type Challenge, challengeMessage } from '../challenge.ts'
import { CountersignError, internalError } from '../errors.ts'
import { parseRecord, type StoredRecord } from '../record.ts'
import type { Store } from '../store/store.ts'
import { newId } from '../token.ts'

/** A stored nonce: the challenge and the exact text for the wallet to sign. */
export interface NonceRecord extends Challenge, StoredRecord {
  readonly nonceId: string
  readonly message: string
}

/**
 * A store for nonces that the application brings.
 *
 * All instances must share it; otherwise a nonce issued by one is unknown to the others. If it has `take`, that must be
 * atomic: it makes nonces single-use. If it does not, Countersign marks each nonce as used in its own store,
 * atomically, before it deletes it here.
 */
export interface NonceStore {
  /** The value of a key; `null` or `undefined` if there is none, or if it was deleted or has expired. */
  get(key: string): Promise<string | null | undefined>
  /** Stores a value for `ttlSeconds`, a whole number of seconds from 1. */
  set(key: string, value: string, options: { ttlSeconds: number }): Promise<unknown>
  /** Removes a value. */
  delete(key: string): Promise<unknown>
  /** Removes a value and returns it, in one atomic step: of concurrent calls, one gets it. */
  take?(key: string): Promise<string | null | undefined>
}

/** The operations that are used here. A value is removed by `take` only. */
type SingleUseStore = Required<Omit<NonceStore, 'delete'>>

/** Settings of nonces. */
export interface NonceSettings {
  readonly appName: string
  readonly ttlSeconds: number
}

/**
 * Time in ms for which an expired nonce is kept, so that a user who took too long gets NONCE_EXPIRED. The application's
 * own nonce store keeps it until its `ttlSeconds` have passed.
 */
const afterlifeMs = 60_000

/** Newest version of {@link NonceRecord} that this release reads, and the one that it writes. */
const nonceVersion = 1

/** Issues nonces, each for a single use. */
export class Nonces {
  readonly #settings: NonceSettings
  readonly #store: SingleUseStore

  constructor(settings: NonceSettings, store: Pick<Store, 'create' | 'get' | 'take'>, custom?: NonceStore) {
    this.#settings = settings
    this.#store = custom === undefined ? builtIn(store) : singleUse(custom, store)
  }

  /** Makes and stores the challenge of a new nonce for an origin. */
  async issue(origin: string): Promise<NonceRecord> {
    const { appName, ttlSeconds } = this.#settings
    const issuedAt = Date.now()
    const challenge: Challenge = {
      action: 'auth.login',
      challengeId: 'login',
      nonce: randomBytes(32).toString('base64url'),
      origin,
      issuedAt,
      expiresAt: issuedAt + ttlSeconds * 1000,
    }
    const record: NonceRecord = {
      v: nonceVersion,
      nonceId: newId(),
      ...challenge,
      message: challengeMessage(appName, challenge),
    }
    await this.#store.set(keyOf(record.nonceId), JSON.stringify(record), { ttlSeconds })
    return record
  }

  /**
   * Consumes a nonce and returns its record. NONCE_NOT_FOUND if there is none, NONCE_EXPIRED if it has expired.
   *
   * `check` gets the record first. If it throws, the nonce is not consumed, so that a caller from a foreign origin
   * cannot spend somebody else's nonce. Of concurrent calls that pass it, one gets the record.
   */
  async consume(nonceId: string, check: (record: NonceRecord) => void): Promise<NonceRecord> {
    const key = keyOf(nonceId)
    const stored = await this.#store.get(key)
    const record = readNonce(stored, nonceId)
    if (Date.now() >= record.expiresAt) {
      throw new CountersignError('NONCE_EXPIRED', 'The challenge has expired; ask for a new one')
    }
    check(record)
    // `take` makes the nonce single-use. If it returns anything but the record just checked, someone replaced it in
    // between: refuse.
    if ((await this.#store.take(key)) !== stored) throw nonceNotFound()
    return record
  }
}

function keyOf(nonceId: string): string {
  return `nonce:${nonceId}`
}

function nonceNotFound(): CountersignError {
  return new CountersignError('NONCE_NOT_FOUND', 'The nonce is unknown or was used already; ask for a new challenge')
}

/** Reads what the store returned. The application's own store may return anything, even another nonce's record. */
function readNonce(stored: string | null | undefined, nonceId: string): NonceRecord {
  if (stored === null || stored === undefined) throw nonceNotFound()
  const record = parseRecord<NonceRecord>('nonce', stored, nonceVersion)
  if (record.nonceId !== nonceId || !Number.isSafeInteger(record.expiresAt)) throw nonceNotFound()
  return record
}

function builtIn(store: Pick<Store, 'create' | 'get' | 'take'>): SingleUseStore {
  return {
    get: async (key) => (await store.get(key))?.value,
    async set(key, value, { ttlSeconds }) {
      if (await store.create(key, value, { ttlMs: ttlSeconds * 1000 + afterlifeMs })) return
      throw internalError(new Error('a new nonce has the identifier of another one'))
    },
    take: async (key) => await store.take(key),
  }
}

/** Adds `take` to the application's nonce store, and turns its failures into STORE_UNAVAILABLE. */
function singleUse(custom: NonceStore, store: Pick<Store, 'create'>): SingleUseStore {
  const take = async (key: string): Promise<string | null | undefined> => {
    if (custom.take !== undefined) return await custom.take(key)
    const value = await custom.get(key)
    if (value === null || value === undefined) return undefined
    const { expiresAt } = JSON.parse(value) as NonceRecord
    const ttlMs = Math.max(1, expiresAt - Date.now()) + afterlifeMs
    if (!(await store.create(`used-${key}`, '', { ttlMs }))) return undefined
    await custom.delete(key)
    return value
  }
  return {
    get: guarded((key: string) => custom.get(key)),
    set: guarded((key: string, value: string, options: { ttlSeconds: number }) => custom.set(key, value, options)),
    take: guarded(take),
  }
}

/** Turns what a hook of the application throws into STORE_UNAVAILABLE, with the cause for the log. */
function guarded<Args extends unknown[], Result>(
  call: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    try {
      return await call(...args)
    } catch (cause) {
      if (cause instanceof CountersignError) throw cause
      throw new CountersignError('STORE_UNAVAILABLE', 'The nonce store does not answer; try again shortly', {
        retryAfterMs: 1000,
        cause,
      })
    }
  }
}
