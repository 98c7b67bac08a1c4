import { randomBytes } from 'node:crypto'
import { CountersignError } from './errors.ts'
import { type Challenge, challengeMessage } from './message.ts'
import type { Store } from './store/store.ts'
import { newId } from './token.ts'

/** A stored nonce: the challenge and the exact text that the wallet is asked to sign. */
export interface NonceRecord extends Challenge {
  readonly nonceId: string
  readonly message: string
}

/**
 * A store for nonces of the application's own choice.
 *
 * It must be shared by all instances, or a nonce issued by one is unknown to the next. With `take`, single use rests on its
 * atomicity. Without, Countersign marks each nonce as used in its own store, which is atomic, before it deletes it here.
 */
export interface NonceStore {
  /** The value of a key, or nothing once it was deleted or its life is over. */
  get(key: string): Promise<string | null | undefined>
  /** Stores a value for `ttlSeconds`, a whole number of seconds from 1. */
  set(key: string, value: string, options: { ttlSeconds: number }): Promise<unknown>
  /** Removes a value. */
  delete(key: string): Promise<unknown>
  /** Removes a value and returns it, in one atomic step: of concurrent calls, one gets it. */
  take?(key: string): Promise<string | null | undefined>
}

/** What is asked of either kind of store here: removal is always by `take`. */
type SingleUseStore = Required<Omit<NonceStore, 'delete'>>

/** What issuing nonces needs to know. */
export interface NonceSettings {
  readonly appName: string
  readonly ttlSeconds: number
}

/**
 * How long an expired nonce is remembered, so that a user who took too long is told so. Where the application brings the
 * nonce store, its own time to live decides.
 */
const afterlifeMs = 60_000

/** Issues nonces and lets each be used once. */
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
    const record: NonceRecord = { nonceId: newId(), ...challenge, message: challengeMessage(appName, challenge) }
    await this.#store.set(keyOf(record.nonceId), JSON.stringify(record), { ttlSeconds })
    return record
  }

  /**
   * Uses a nonce up and returns its record; NONCE_NOT_FOUND or NONCE_EXPIRED when there is none to use.
   *
   * `check` sees the record first; what it throws leaves the nonce as it was, so that a caller from a foreign origin cannot
   * spend another's nonce. Of concurrent calls that pass it, one gets the record.
   */
  async consume(nonceId: string, check: (record: NonceRecord) => void): Promise<NonceRecord> {
    const key = keyOf(nonceId)
    const stored = await this.#store.get(key)
    const record = parseRecord(stored, nonceId)
    if (Date.now() >= record.expiresAt) {
      throw new CountersignError('NONCE_EXPIRED', 'The challenge has expired; ask for a new one')
    }
    check(record)
    // Only the atomic step decides who has it. It must hand out what was checked, or a replaced value would slip through.
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

/** Parses what the store gave. The application's own store may give anything back, another nonce's record included. */
function parseRecord(stored: string | null | undefined, nonceId: string): NonceRecord {
  if (stored === null || stored === undefined) throw nonceNotFound()
  const record = JSON.parse(stored) as NonceRecord
  if (record.nonceId !== nonceId || !Number.isSafeInteger(record.expiresAt)) throw nonceNotFound()
  return record
}

function builtIn(store: Pick<Store, 'create' | 'get' | 'take'>): SingleUseStore {
  return {
    get: async (key) => (await store.get(key))?.value,
    async set(key, value, { ttlSeconds }) {
      if (await store.create(key, value, { ttlMs: ttlSeconds * 1000 + afterlifeMs })) return
      throw new CountersignError('INTERNAL', 'A new nonce has the identifier of another one')
    },
    take: async (key) => await store.take(key),
  }
}

/** Gives the application's nonce store a `take`, and turns its failures into one that callers understand. */
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

/** Makes whatever a hook of the application throws a STORE_UNAVAILABLE, its cause kept for the log. */
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
