import type { Logger } from '../base/log.ts'
import { CountersignError } from '../shared/errors.ts'
import type { RedisTls } from './redis/tls.ts'
import type { Life, ScannedValue, Store } from './store.ts'

/** Time in ms after which a caller may try again when the store does not answer. */
export const retryAfterMs = 1000

/** Settings of a store in addition to its URL. */
export interface StoreOptions {
  /** Receiver of what the operator should know, such as an eviction policy that can drop sessions. Default: none. */
  readonly log?: Logger
  /**
   * Text that all keys begin with, so that several services can share the store without sharing what they keep: 1 to 64
   * letters, digits, dots, underscores and hyphens. In Redis it begins the channels too. Default countersign; in
   * SQLite, keys have no prefix by default.
   */
  readonly keyPrefix?: string
  /**
   * What TLS is to use with `rediss`: certificate authority, client certificate, server name. Default: that of
   * Node.js.
   */
  readonly redisTls?: RedisTls
}

/** The store cannot be opened. The message is one line for the operator: what is wrong and what to change. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError'
  /** What is wrong, without a full stop. */
  readonly problem: string
  /** What to change; `undefined` if `problem` says it. */
  readonly advice: string | undefined

  constructor(problem: string, { advice, cause }: { readonly advice?: string; readonly cause?: unknown } = {}) {
    super(advice === undefined ? problem : `${problem}. ${advice}`, { cause })
    this.problem = problem
    this.advice = advice
  }
}

/** Why a call of a store failed. */
export function causeOf(failure: unknown): unknown {
  return failure instanceof CountersignError ? failure.cause : failure
}

/** Longest life that is not forever, in milliseconds: 10 years of 365 days. */
const maxTtlMs = 10 * 365 * 24 * 60 * 60 * 1000

/**
 * Checks a life and returns its milliseconds, or undefined if it is forever.
 *
 * @throws TypeError unless the life is 'forever' or a whole number of milliseconds from 1 to 10 years of 365 days.
 */
function ttlMsOf(life: Life): number | undefined {
  if (life === 'forever') return undefined
  const { ttlMs } = life
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > maxTtlMs) {
    throw new TypeError(`ttlMs must be a whole number of milliseconds from 1 to ${maxTtlMs}, but is ${ttlMs}`)
  }
  return ttlMs
}

/** The life that is left of a value that a scan has found; `undefined` is forever. */
export function lifeOf(ttlMs: number | undefined): Life {
  return ttlMs === undefined ? 'forever' : { ttlMs: Math.max(1, Math.ceil(ttlMs)) }
}

interface OrderedScan {
  readonly beginning: string
  /** Most values that a step reads. */
  readonly valuesPerStep: number
  /** Reads the first values from one key on and before another, in the order of their keys. */
  readonly step: (from: string, end: string) => Promise<readonly ScannedValue[]>
}

/** A scan of a store that has its keys in order. */
export async function* scanInOrder({ beginning, valuesPerStep, step }: OrderedScan): AsyncGenerator<ScannedValue> {
  // Keys are printable ASCII: DEL comes after every character that one can have, and U+0001 before.
  const end = `${beginning}\x7f`
  for (let from = beginning; ; ) {
    const found = await step(from, end)
    yield* found
    const last = found[valuesPerStep - 1]
    if (last === undefined) return
    from = `${last.key}\x01`
  }
}

/** Largest value in bytes of UTF-8. */
const maxValueBytes = 64 * 1024

/**
 * Does a step with a life in milliseconds, or rejects if the life is out of bounds: the methods of a store never throw.
 */
export async function withTtl<T>(life: Life, step: (ttlMs: number | undefined) => Promise<T>): Promise<T> {
  return step(ttlMsOf(life))
}

/** As {@link withTtl}, for a step that stores a value. Rejects with a RangeError if the value is too large. */
export async function withValue<T>(
  value: string,
  life: Life,
  step: (ttlMs: number | undefined) => Promise<T>,
): Promise<T> {
  const bytes = Buffer.byteLength(value)
  if (bytes > maxValueBytes) throw new RangeError(`a value has at most ${maxValueBytes} bytes, but this has ${bytes}`)
  return step(ttlMsOf(life))
}

/** Life of what an exercise that breaks off leaves behind. */
const exerciseLife: Life = { ttlMs: 10_000 }

/** About as long as a stored session or order. */
const exerciseValue = 'x'.repeat(2000)

/**
 * Makes each kind of call once, so that a store which is full, read-only or forbids some of them shows it. Rejects as
 * the first call that fails. Wakes no watcher and leaves nothing behind.
 *
 * @param name a key that is not used otherwise, with room for a few more characters.
 */
export async function exerciseStore(store: Store, name: string): Promise<void> {
  const set = `${name}:set`
  await store.create(name, exerciseValue, exerciseLife)
  await store.get(name)
  await store.compareAndSet(name, 1, exerciseValue, exerciseLife, { wake: true })
  await store.take(name)
  await store.addMember(set, 'member', exerciseLife, 1)
  await store.members(set)
  await store.removeMember(set, 'member')
}
