import { hash } from 'node:crypto'
import { mismatchReason, parseRecord, type RecordOrigin, recordText } from '../../base/record.ts'
import type { RequestContext } from '../../base/request.ts'
import { applicationStepMs, applicationSteps } from '../../base/timing/time-limit.ts'
import { newId, randomText } from '../../base/token.ts'
import type { LiveCount } from '../../limits/concurrency.ts'
import { given, pick } from '../../shared/defined-fields.ts'
import { CountersignError, internalError, refused } from '../../shared/errors.ts'
import type { Store } from '../../store/store.ts'
import type { LinkLines } from '../challenge-text.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { FormNamed } from '../wallet/sign-in-form.ts'
import type { WalletNamed } from '../wallet/wallet.ts'
import { makeChallenge, type PlainChallenge, requireLive } from './sign-in-challenge.ts'

/** A stored nonce: the challenge and the exact text for the wallet to sign. */
export interface NonceRecord extends PlainChallenge {
  readonly nonceId: string
  /** The user that a wallet is added to. Absent from a nonce for signing in. */
  readonly userId?: string
  /** What the request for a form named of the account. Absent from a nonce whose text the service writes. */
  readonly named?: FormNamed
  /** What any other request named of the wallet. Absent if it named nothing. */
  readonly askedFor?: WalletNamed
}

/**
 * A store for nonces that the application brings.
 *
 * All instances must share it; otherwise a nonce issued by one is unknown to the others. If it has `take`, that must be
 * atomic: it makes nonces single-use. If it does not, Countersign marks each nonce as used in its own store,
 * atomically, before it deletes it here. If a step fails or takes longer than five seconds, the call fails with
 * STORE_UNAVAILABLE.
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

/** Methods of the store that nonces need. */
export type NonceKeeper = Pick<Store, 'now' | 'create' | 'get' | 'take'>

/** Operations on nonces. Each value is taken once. */
type SingleUseStore = Required<Pick<NonceStore, 'get' | 'set' | 'take'>>

/** Parts of {@link Nonces}. */
export interface NoncesParts {
  readonly appName: string
  readonly ttlSeconds: number
  /** Keeps the nonces, and says the time. */
  readonly store: NonceKeeper
  /** A nonce store that the application brings, which keeps them in place of `store`. */
  readonly custom?: NonceStore | undefined
  /** Counts the nonces that are stored, and refuses those beyond its ceiling. Without it, there is no ceiling. */
  readonly live?: LiveCount | undefined
}

/**
 * Time in ms for which an expired nonce is kept, so that a user who took too long gets NONCE_EXPIRED. The application's
 * own nonce store keeps it until its `ttlSeconds` have passed.
 */
const afterlifeMs = 60_000

/** Random bytes of a nonce: 256 bits. */
const nonceBytes = 32

/** Issues nonces, each for a single use. */
export class Nonces {
  readonly #appName: string
  readonly #ttlSeconds: number
  readonly #store: SingleUseStore
  readonly #now: () => number
  readonly #live: LiveCount | undefined

  constructor({ appName, ttlSeconds, store, custom, live }: NoncesParts) {
    this.#appName = appName
    this.#ttlSeconds = ttlSeconds
    this.#now = () => store.now()
    this.#live = live
    this.#store = custom === undefined ? builtIn(store) : singleUse(custom, store)
  }

  /** Refuses a client that expects another application name than the service's own, with APP_NAME_MISMATCH. */
  requireAppName(expected: string | undefined): void {
    const own = this.#appName
    if (expected === undefined || expected === own) return
    throw refused('APP_NAME_MISMATCH', { metadata: { app_name: own, setting: 'COUNTERSIGN_APP_NAME' } })
  }

  /**
   * Makes and stores the challenge of a new nonce for an origin: for signing in or, with `link`, for adding a wallet to
   * that user. The texts of `link` must be plain lines (see `isPlainLine`). `named` and `askedFor` are kept with it.
   * SERVER_BUSY if there are too many live nonces; `ip` is the caller's, for the log. The returned message is what
   * `make` makes of the challenge for the caller's wallet, by default the stored one; if it throws, nothing is stored.
   */
  async issue(
    origin: string,
    {
      link,
      named,
      askedFor = {},
      ip,
      make = ({ message }) => message,
    }: {
      readonly link?: LinkLines
      readonly named?: FormNamed
      readonly askedFor?: WalletNamed
      readonly ip?: string | undefined
      readonly make?: (challenge: NonceRecord) => string
    } = {},
  ): Promise<NonceRecord> {
    const ttlSeconds = this.#ttlSeconds
    const issuedAt = this.#now()
    const kept = pick(askedFor, ['adapterId', 'address', 'chainId'])
    const nonce = randomText(nonceBytes)
    const challenge = makeChallenge({ nonce, appName: this.#appName, origin, ttlSeconds, now: issuedAt, link })
    const record: NonceRecord = {
      ...given({ userId: link?.userId, named }),
      ...(Object.keys(kept).length === 0 ? {} : { askedFor: kept }),
      nonceId: idFor({ ...challenge, userId: link?.userId }),
      ...challenge,
    }
    const message = make(record)
    this.#live?.add(endOf(record), issuedAt, ip)
    await this.#store.set(keyOf(record.nonceId, link?.userId), recordText(record), { ttlSeconds })
    return message === record.message ? record : { ...record, message }
  }

  /**
   * Consumes a nonce and returns its record. NONCE_NOT_FOUND if there is none that this service made for an origin that
   * is trusted now, NONCE_EXPIRED if it has expired, ORIGIN_MISMATCH if the request comes from another origin.
   *
   * A nonce that is refused stays unused: a caller from a foreign origin cannot spend another caller's nonce, nor a
   * service one of another that shares the store. A nonce whose id fits the call is taken at once; any other, such as
   * one of an earlier release, is looked at first, and what is taken must be the record that was checked. Taking makes
   * it single-use: of concurrent calls, one gets it.
   *
   * With `userId`, only a nonce for adding a wallet to that user is found; without it, only one for signing in. Any
   * other is NONCE_NOT_FOUND and stays unused.
   */
  async consume(
    nonceId: string,
    {
      request,
      origins,
      userId,
    }: { readonly request: RequestContext; readonly origins: OriginPolicy; readonly userId?: string },
  ): Promise<NonceRecord> {
    const check = (found: string | null | undefined): NonceRecord => {
      if (found === undefined || found === null) throw nonceNotFound()
      const record = readNonce(found, nonceId, userId)
      const mismatch = mismatchReason(record, this.#appName, origins)
      if (mismatch !== undefined) throw nonceNotFound(mismatch)
      requireLive(record, this.#now())
      origins.requireSame(request, record.origin, 'nonce')
      return record
    }
    const key = keyOf(nonceId, userId)
    const fits = this.#fits(nonceId, request, origins, userId)
    const looked = fits ? undefined : await this.#store.get(key)
    if (!fits) check(looked)
    const taken = await this.#store.take(key)
    if (!fits && taken !== looked) throw nonceNotFound()
    // The store may have taken seconds to answer.
    const record = check(taken)
    this.#live?.remove(endOf(record), request.ip)
    return record
  }

  /**
   * Whether an id says that its nonce is live and for this call, which saves a look at it before it is taken, a
   * twentieth of a sign-in. An id that was made up says so, too, but is the key of nothing.
   */
  #fits(nonceId: string, { origin }: RequestContext, origins: OriginPolicy, userId: string | undefined): boolean {
    if (origin === undefined || !origins.accepts(origin)) return false
    const expiresAt = Number.parseInt(nonceId.slice(randomLength + digestLength), 36)
    const purpose = { appName: this.#appName, origin, userId, expiresAt }
    return this.#now() < expiresAt && nonceId === idFor(purpose, nonceId.slice(0, randomLength))
  }
}

/** Takes the nonces for adding a wallet to a user out of a store. Reads all nonces of this kind. */
export async function forgetLinkNonces(store: Store & Required<Pick<Store, 'scan'>>, userId: string): Promise<void> {
  for await (const { key, value } of store.scan(keyOf('', userId))) {
    if (parseRecord<NonceRecord>('nonce', value).userId === userId) await store.take(key)
  }
}

/** When a nonce that is not used leaves the store. */
function endOf({ expiresAt }: NonceRecord): number {
  return expiresAt + afterlifeMs
}

/** What a nonce is for. */
interface Purpose extends RecordOrigin {
  readonly userId: string | undefined
  readonly expiresAt: number
}

/**
 * Lengths of the first two parts of an id. The digest has 48 bits: what is taken is checked in any case, and a chance in
 * 2^48 that a call from another trusted origin spends a nonce is small enough. A longer one makes slower rows.
 */
const randomLength = 22
const digestLength = 8

/** The id of a nonce: a random part, a digest of that and of what the nonce is for, and when it expires. */
function idFor({ appName, origin, userId, expiresAt }: Purpose, random = newId()): string {
  const purpose = JSON.stringify([random, appName, origin, expiresAt, ...(userId === undefined ? [] : [userId])])
  return random + hash('sha256', purpose, 'base64url').slice(0, digestLength) + expiresAt.toString(36)
}

/** The two kinds of nonces have keys of their own, so that neither is found in place of the other. */
function keyOf(nonceId: string, userId: string | undefined): string {
  return userId === undefined ? `nonce:${nonceId}` : `link-nonce:${nonceId}`
}

function nonceNotFound(cause?: Error): CountersignError {
  return refused('NONCE_NOT_FOUND', { cause })
}

/** Reads what the store returned. The application's own store may return anything, even another nonce's record. */
function readNonce(stored: string, nonceId: string, userId: string | undefined): NonceRecord {
  const record = parseRecord<NonceRecord>('nonce', stored)
  if (record.nonceId !== nonceId || !Number.isSafeInteger(record.expiresAt)) throw nonceNotFound()
  if (record.userId !== userId) throw nonceNotFound()
  return record
}

function builtIn(store: NonceKeeper): SingleUseStore {
  return {
    get: async (key) => (await store.get(key))?.value,
    async set(key, value, { ttlSeconds }) {
      if (await store.create(key, value, { ttlMs: ttlSeconds * 1000 + afterlifeMs })) return
      throw internalError(new Error('a new nonce has the identifier of another one'))
    },
    take: (key) => store.take(key),
  }
}

/** Adds `take` to the application's nonce store, and turns its failures into STORE_UNAVAILABLE. */
function singleUse(custom: NonceStore, store: NonceKeeper): SingleUseStore {
  const take = async (key: string): Promise<string | null | undefined> => {
    if (custom.take !== undefined) return await custom.take(key)
    const value = await custom.get(key)
    if (value === null || value === undefined) return undefined
    const { expiresAt } = JSON.parse(value) as NonceRecord
    const ttlMs = Math.max(1, expiresAt - store.now()) + afterlifeMs
    if (!(await store.create(`used-${key}`, '', { ttlMs }))) return undefined
    await custom.delete(key)
    return value
  }
  return {
    get: guarded(async (key: string) => await custom.get(key)),
    set: guarded(
      async (key: string, value: string, options: { ttlSeconds: number }) => await custom.set(key, value, options),
    ),
    take: guarded(take),
  }
}

/** The application's nonce store, with a prefix before each key. */
export function withKeysBeginning(beginning: string, store: NonceStore): NonceStore {
  if (beginning === '') return store
  const { take } = store
  return {
    get: (key) => store.get(beginning + key),
    set: (key, value, options) => store.set(beginning + key, value, options),
    delete: (key) => store.delete(beginning + key),
    ...(take === undefined ? {} : { take: (key: string) => take.call(store, beginning + key) }),
  }
}

/**
 * Turns a step of the application's nonce store that fails, or takes too long, into STORE_UNAVAILABLE, with the cause
 * for the log.
 */
function guarded<Args extends unknown[], Result>(
  call: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    try {
      return await applicationSteps.within(
        call(...args),
        () => new Error(`the nonce store did not answer within ${applicationStepMs / 1000} seconds`),
      )
    } catch (cause) {
      if (cause instanceof CountersignError) throw cause
      throw new CountersignError('STORE_UNAVAILABLE', 'The nonce store does not answer; try again shortly', {
        retryAfterMs: 1000,
        cause,
      })
    }
  }
}
