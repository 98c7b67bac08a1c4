/**
 * The contract of a store: a few atomic operations on short-lived text values and on sets of text. Implement it to keep
 * Countersign's state elsewhere; a store has no notion of nonces, orders or sessions.
 *
 * **Atomicity.** Each method is one atomic step, also between processes that share the store. Once its promise has
 * resolved, every later call by any of them sees its effect. There is deliberately no way to read a value and delete it
 * in a second step: `take` makes a value single-use, and `compareAndSet` makes a change.
 *
 * **Keys** are ASCII of at most 200 characters without white space. A part in braces, such as `order:{id}`, is for
 * stores that are spread over several servers: keys with the same part in braces belong on the same server. A key is
 * used either for a value or for a set, never for both.
 *
 * **Values** are Unicode text of at most 64 KiB in UTF-8. A store returns exactly what it was given, including empty
 * text, line breaks and NUL. It refuses a larger one: `create` and `compareAndSet` reject with a RangeError and change
 * nothing, so that no list grows until a call takes seconds. **Members** of a set are ASCII of at most 200 characters.
 * Callers keep the bounds of keys and members, so a store does not have to check them.
 *
 * **Expiry.** A value or member is expired from the millisecond in which its life ends on the store's own clock. From
 * then on it is absent for every method, even if the store has not removed it yet. Expiry does not wake watchers.
 *
 * **Failure.** A method rejects, and never throws synchronously. Every call has a time limit of a few seconds, which
 * the store sets: if it does not answer by then, the method rejects with a `CountersignError` of reason
 * STORE_UNAVAILABLE, and the step may or may not have happened. The store does not repeat such a step, because a second
 * `take` would find nothing, and it restores lost connections by itself. A `life` out of bounds rejects with a
 * TypeError and changes nothing.
 */
export interface Store {
  /** Kind and place of the store, as text for people. It must not contain credentials. */
  readonly description: string

  /**
   * Kind of the database, a constant word as OpenTelemetry's `db.system.name` has it: `sqlite`, `redis`, `postgresql`.
   * It names the store in traces. Default: other.
   */
  readonly kind?: string

  /**
   * Whether other processes that open the same store see what this one writes, and are woken by it. A file on a shared
   * disk does not count as shared.
   */
  readonly shared: boolean

  /**
   * The time on the clock that lives are counted on, in epoch milliseconds, as well as it is known without asking.
   * Processes that share a store decide by it what has expired, so that they agree although their own clocks differ. A
   * whole number. It is asked often, so it must be cheap. It may go back when it is corrected. Never throws. A store
   * whose clock is that of its process returns `Date.now()`.
   */
  now(): number

  /** Reads a value and its version. Resolves with undefined if the key is absent. */
  get(key: string): Promise<VersionedValue | undefined>

  /**
   * Stores a value, with version 1, if the key is absent. Otherwise resolves with false and changes nothing, not even
   * the life of the value that is there. Of any number of concurrent calls for an absent key, exactly one resolves with
   * true.
   */
  create(key: string, value: string, life: Life): Promise<boolean>

  /**
   * Removes a value and resolves with it, or with undefined if the key is absent. Of any number of concurrent calls,
   * exactly one gets the value.
   */
  take(key: string): Promise<string | undefined>

  /**
   * Replaces a value if its version is still `version`, adds 1 to the version, and starts the new life now, in place of
   * the old one. Resolves with false and changes nothing if the key is absent or has another version. Of any number of
   * concurrent calls with the same version, exactly one resolves with true.
   *
   * With `wake`, a change wakes every watcher of the key, in every process that shares the store, or, if the process
   * dies or cannot reach the store at that moment, the watcher's next heartbeat does: watchers read again at least
   * every 15 seconds. So the wake-up may follow the step, but only a failure loses it.
   */
  compareAndSet(key: string, version: number, value: string, life: Life, options?: { wake?: boolean }): Promise<boolean>

  /**
   * Calls `onWake` after each successful `compareAndSet` of the key with `wake`, by any process. The key may be absent.
   * Resolves once the watch is in force: every wake-up from then on leads to a call, save one lost to a failure.
   *
   * A call only says that the key should be read again. Several wake-ups may be merged into one call, but `onWake` must
   * be called after the last of them, when its change can be read, and not from within the `compareAndSet` that caused
   * it. After a lost connection the store calls `onWake` by itself, because it may have missed a wake-up. `onWake` does
   * not throw.
   *
   * The returned function ends this watch and no other. It may be called more than once; afterwards `onWake` is not
   * called.
   */
  watch(key: string, onWake: () => void): Promise<() => void>

  /**
   * Adds a member to a set, or starts the life of one that is in it anew, shorter or longer. Each member has a life of
   * its own. A set needs no creation: one without members is the same as one that never existed.
   *
   * `most`, a whole number from 1, bounds the set. If it now has more members than that, without expired ones, the
   * method resolves with those beyond `most` that expire soonest: soonest first, 10 at most, and never the member that
   * was just added. They stay in the set until they are removed, so that the caller can first end what they stand for.
   * Beyond twice `most`, those that expire soonest leave the set in the same atomic step, whether the method resolves
   * with them or not. Otherwise, and without `most`, it resolves with an empty list.
   */
  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]>

  /** Removes a member from a set. Does nothing if it is not in it. */
  removeMember(set: string, member: string): Promise<void>

  /** Lists the members of a set that have not expired, each once, in any order. */
  members(set: string): Promise<string[]>

  /**
   * Finds the values whose keys begin with this text, in any order, however many they are. A value that is there from
   * the first step to the last is found, maybe twice; one that comes, changes or goes in the meantime may be missing or
   * be found as it was. It reads the whole store, so no call of a client asks for it: it is for commands of operators.
   * A store may lack it; those commands cannot search it then.
   */
  scan?(beginning: string): AsyncIterable<ScannedValue>

  /**
   * Resolves if the store answers; rejects with STORE_UNAVAILABLE if it does not, or if what {@link now} returns may be
   * wrong by more than a second. A store can be full and still answer, so after a call has failed it is best to resolve
   * only once a write succeeds; not before, because this is asked often, and by any client.
   */
  ping(): Promise<void>

  /**
   * Ends all watches and connections of this handle; the data stays. Later calls of the other methods reject with
   * STORE_UNAVAILABLE. May be called more than once.
   */
  close(): Promise<void>
}

/** A value that `scan` found. */
export interface ScannedValue {
  readonly key: string
  readonly value: string
  /** How long it lives, counted from now. */
  readonly life: Life
}

/** A value as read, with the version to pass to `compareAndSet`. */
export interface VersionedValue {
  readonly value: string
  /** 1 when the value was created, and 1 more after each `compareAndSet`. */
  readonly version: number
}

/**
 * How long a value or member lives, counted from the call: `ttlMs` milliseconds, a whole number from 1 to
 * 315,360,000,000 (10 years of 365 days), or forever. Forever is a word of its own, so that a duration rounded to 0 can
 * never mean it.
 */
export type Life = { readonly ttlMs: number } | 'forever'
