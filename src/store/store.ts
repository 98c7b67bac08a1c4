/**
 * What Countersign asks of a store: a handful of atomic primitives over short-lived text values.
 *
 * A store knows nothing of nonces, orders or sessions. Each method is one atomic step, also between processes that share
 * the store. There is deliberately no way to read and then delete: single use is `take`, change is `compareAndSet`.
 *
 * Keys are ASCII of at most 200 characters without white space. A part in braces, such as `order:{id}`, keeps keys that
 * belong together on one node of a cluster. Values are text of at most 64 KiB.
 *
 * An expired value is absent for every method, from the millisecond its life ends on the store's own clock, whether or not
 * it was removed already.
 *
 * When the store does not answer within its time limit, a method rejects with a `CountersignError` of reason
 * STORE_UNAVAILABLE, and the step may or may not have happened. The store reconnects by itself.
 */
export interface Store {
  /** What kind of store this is and where, for people: no credentials in it. */
  readonly description: string
  /** Whether other processes see what this one stores: a file on a shared disk does not count. */
  readonly shared: boolean

  /** Reads a value and its version. */
  get(key: string): Promise<VersionedValue | undefined>

  /** Stores a value, version 1, unless the key has one: then it changes nothing and returns false. */
  create(key: string, value: string, life: Life): Promise<boolean>

  /** Removes a value and returns it. Of any number of concurrent calls, one gets the value. */
  take(key: string): Promise<string | undefined>

  /**
   * Replaces a value if its version still is `version`, adds one to the version, and sets its life anew. Returns false, and
   * changes nothing, if the key is absent or has another version.
   *
   * With `wake`, everyone who watches the key, in any process, is woken as a part of the same atomic step.
   */
  compareAndSet(key: string, version: number, value: string, life: Life, options?: { wake?: boolean }): Promise<boolean>

  /**
   * Calls `onWake` after every compare-and-set of the key with `wake`, by any process. Resolves once the watch is in force:
   * a later wake-up is not missed.
   *
   * A call is only a hint to read the key again. Several wake-ups may come as one call, and after a lost connection the
   * store calls `onWake` by itself, because it may have missed one. `onWake` must not throw.
   *
   * The returned function ends the watch; it may be called more than once.
   */
  watch(key: string, onWake: () => void): Promise<() => void>

  /** Adds a member to a set, or sets the life of one that is in it. Each member has a life of its own. */
  addMember(set: string, member: string, life: Life): Promise<void>

  /** Removes a member from a set. */
  removeMember(set: string, member: string): Promise<void>

  /** Lists the live members of a set, in no particular order. */
  members(set: string): Promise<string[]>

  /** Resolves when the store answers. */
  ping(): Promise<void>

  /** Ends all watches and connections. Later calls reject. May be called more than once. */
  close(): Promise<void>
}

/** A value as read, with the version that a compare-and-set has to name. */
export interface VersionedValue {
  readonly value: string
  readonly version: number
}

/**
 * How long a value lives: milliseconds, a whole number from 1 to 10 years; or for ever, said in words, because a zero that
 * came of rounding must never mean it. Anything else is a TypeError.
 */
export type Life = { readonly ttlMs: number } | 'forever'
