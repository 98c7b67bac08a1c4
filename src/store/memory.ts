import { getHeapStatistics } from 'node:v8'
import type { CountersignError } from '../errors.ts'
import { withTtl } from './life.ts'
import { MemorySteps } from './memory-steps.ts'
import type { Life, ScannedValue, Store, VersionedValue } from './store.ts'
import { storeClosed, storeUnavailable } from './unavailable.ts'
import { Watchers } from './watchers.ts'

/** Most that `addMember` names, as the contract has it. */
const maxSurplus = 10

/**
 * What values, members and sets take beside their text, at most, in bytes: objects, heads of texts, numbers, and 84 for a place in a Map,
 * whose table is copied into one of twice the size when it is full. A set is a Map of its own.
 */
const bytesOfEntry = 250
const bytesOfMember = 150
const bytesOfSet = 450
/** A text with any character beyond Latin-1 takes two bytes for each; others take half of it. */
const bytesOfCharacter = 2

/** The part of the heap's limit that Node.js keeps for new objects, by default. It is not for what stays. */
const bytesOfNewSpace = 96 * 2 ** 20
/** Share of the rest that the store takes at most: requests need some too, and garbage is not collected at once. */
const shareOfHeap = 0.5
/** What it takes of a heap that is smaller than any in which the service could be used, in bytes. */
const leastBytes = 2 ** 24
/** Most that the store takes of a large heap, in bytes. A Map has room for 16 million entries, and this is filled by fewer. */
const mostBytes = 2 ** 31

/** How many values and members one step of a sweep looks at, and how many values a scan does in one step. */
const perStep = 2000
/** From the end of one sweep to the next, in milliseconds. */
const sweepIntervalMs = 5000
/** From one step to the next, in milliseconds: a pause in which the event loop serves requests. */
const sweepPauseMs = 10
/** The same after a step that found nothing: to look at millions of values takes a while. */
const idlePauseMs = 50

/**
 * Makes a store in the memory of this process, which nobody else reaches and which ends with it.
 *
 * It takes up to `capacityBytes`, counted as what its texts take in two bytes a character; by default half of what Node.js gives its
 * heap (`--max-old-space-size`), and 2 GiB at most. From then on, steps that need more reject with STORE_UNAVAILABLE, until enough has
 * expired or was removed.
 */
export function makeMemoryStore({ capacityBytes = defaultCapacity() }: { capacityBytes?: number } = {}): Store {
  return new MemoryStore(capacityBytes)
}

function defaultCapacity(): number {
  const bytes = Math.floor((getHeapStatistics().heap_size_limit - bytesOfNewSpace) * shareOfHeap)
  return Math.max(leastBytes, Math.min(bytes, mostBytes))
}

/** A value that is stored. It is changed in its place, so that a Map is not told. */
class Entry {
  value: string
  version = 1
  /** Milliseconds since 1970; Infinity for one that lives forever. */
  expiresAt: number

  constructor(value: string, expiresAt: number) {
    this.value = value
    this.expiresAt = expiresAt
  }
}

/** When each member of a set expires, in milliseconds since 1970. */
type Members = Map<string, number>

class MemoryStore implements Store {
  readonly description = 'memory'
  readonly shared = false
  readonly #capacityBytes: number
  readonly #entries = new Map<string, Entry>()
  readonly #sets = new Map<string, Members>()
  readonly #watchers = new Watchers()
  readonly #steps = new MemorySteps(storeClosed)
  /** What all takes, bytes. */
  #bytes = 0
  /** What the last step needed that found no room, bytes; 0 if none did, or a ping found room for it since. */
  #lackedBytes = 0
  #isClosed = false
  readonly #sweep = this.#walk()
  #sweepTimer: NodeJS.Timeout

  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
    this.#sweepTimer = this.#sweepIn(sweepIntervalMs)
  }

  now(): number {
    return Date.now()
  }

  get(key: string): Promise<VersionedValue | undefined> {
    return this.#steps.add(() => this.#read(key))
  }

  create(key: string, value: string, life: Life): Promise<boolean> {
    return withTtl(life, (ttlMs) =>
      this.#steps.add(() => {
        const now = Date.now()
        const before = this.#entries.get(key)
        if (before !== undefined && before.expiresAt > now) return false
        // What has expired makes room, so it goes first.
        if (before !== undefined) this.#remove(key, before)
        this.#takeRoom(bytesOfValue(key, value))
        this.#entries.set(key, new Entry(value, expiryOf(ttlMs, now)))
        return true
      }),
    )
  }

  take(key: string): Promise<string | undefined> {
    return this.#steps.add(() => {
      const entry = this.#liveAt(key, Date.now())
      if (entry === undefined) return undefined
      this.#remove(key, entry)
      return entry.value
    })
  }

  compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    const wake = options.wake === true
    return withTtl(life, (ttlMs) =>
      this.#steps.add(() => {
        const now = Date.now()
        const entry = this.#liveAt(key, now)
        if (entry?.version !== version) return false
        this.#takeRoom(bytesOfValue(key, value) - bytesOfValue(key, entry.value))
        entry.value = value
        entry.version++
        entry.expiresAt = expiryOf(ttlMs, now)
        if (wake) this.#watchers.wake(key)
        return true
      }),
    )
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    if (this.#isClosed) throw storeClosed()
    return this.#watchers.add(key, onWake)
  }

  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    return withTtl(life, (ttlMs) =>
      this.#steps.add(() => {
        const now = Date.now()
        const known = this.#sets.get(set)
        const isNew = known?.has(member) !== true
        this.#takeRoom((isNew ? bytesOfText(member, bytesOfMember) : 0) + (known ? 0 : bytesOfText(set, bytesOfSet)))
        const members: Members = known ?? new Map()
        if (known === undefined) this.#sets.set(set, members)
        members.set(member, expiryOf(ttlMs, now))
        // With those that have expired there are as many or more.
        return most === undefined || members.size <= most
          ? []
          : this.#surplusOf({ set, members, added: member, most, now })
      }),
    )
  }

  removeMember(set: string, member: string): Promise<void> {
    return this.#steps.add(() => {
      const members = this.#sets.get(set)
      if (members !== undefined) this.#removeFrom(set, members, [member])
    })
  }

  members(set: string): Promise<string[]> {
    return this.#steps.add(() => {
      const now = Date.now()
      return [...(this.#sets.get(set) ?? [])].filter(([, expiresAt]) => expiresAt > now).map(([member]) => member)
    })
  }

  async *scan(beginning: string): AsyncGenerator<ScannedValue> {
    let looked = 0
    for (const [key, entry] of this.#entries) {
      if (looked++ % perStep === 0) await this.#steps.add(() => {})
      // What was removed in the meantime is not there any more, and what has changed is as it is now.
      const isThere = this.#entries.get(key) === entry && entry.expiresAt > Date.now()
      if (isThere && key.startsWith(beginning)) yield { key, value: entry.value }
    }
  }

  ping(): Promise<void> {
    return this.#steps.add(() => {
      if (this.#lackedBytes > 0 && this.#bytes + this.#lackedBytes > this.#capacityBytes) throw storeFull()
      this.#lackedBytes = 0
    })
  }

  /** Does what was begun before. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#sweepTimer)
    this.#watchers.clear()
    this.#steps.finish()
    this.#entries.clear()
    this.#sets.clear()
  }

  #read(key: string): VersionedValue | undefined {
    const entry = this.#liveAt(key, Date.now())
    return entry && { value: entry.value, version: entry.version }
  }

  #liveAt(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && entry.expiresAt > now ? entry : undefined
  }

  #remove(key: string, entry: Entry): void {
    this.#entries.delete(key)
    this.#bytes -= bytesOfValue(key, entry.value)
  }

  #removeFrom(set: string, members: Members, removed: readonly string[]): void {
    for (const member of removed) {
      if (members.delete(member)) this.#bytes -= bytesOfText(member, bytesOfMember)
    }
    if (members.size > 0) return
    this.#sets.delete(set)
    this.#bytes -= bytesOfText(set, bytesOfSet)
  }

  /** Counts what a step is going to store, or throws. */
  #takeRoom(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > this.#capacityBytes) {
      this.#lackedBytes = bytes
      throw storeFull()
    }
    this.#bytes += bytes
  }

  /** The members beyond `most`, without the one that was just added; drops those beyond twice as many. */
  #surplusOf({ set, members, added, most, now }: GrownSet): string[] {
    const live = [...members].filter(([, expiresAt]) => expiresAt > now)
    if (live.length <= most) return []
    const others = live.filter(([member]) => member !== added).sort(([, a], [, b]) => a - b)
    const soonest = others.map(([member]) => member)
    if (live.length > 2 * most) this.#removeFrom(set, members, soonest.slice(0, live.length - 2 * most))
    return soonest.slice(0, Math.min(live.length - most, maxSurplus))
  }

  #sweepIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#sweepTimer = this.#sweepIn(this.#sweep.next().value)
    }, delayMs).unref()
  }

  /**
   * Goes through all values and sets again and again and removes what has expired. After each step it yields the time until the next
   * one, in milliseconds. An iterator of a Map goes on with what is there, whatever was added or removed in the meantime.
   */
  *#walk(): Generator<number, never> {
    let looked = 0
    let removed = 0
    const isStepOver = (): boolean => looked >= perStep
    const pause = (): number => {
      const pauseMs = removed > 0 ? sweepPauseMs : idlePauseMs
      looked = 0
      removed = 0
      return pauseMs
    }
    for (;;) {
      for (const [key, entry] of this.#entries) {
        looked++
        if (entry.expiresAt <= Date.now()) {
          this.#remove(key, entry)
          removed++
        }
        if (isStepOver()) yield pause()
      }
      for (const [set, members] of this.#sets) {
        looked += members.size
        const now = Date.now()
        const expired = [...members].filter(([, expiresAt]) => expiresAt <= now).map(([member]) => member)
        if (expired.length > 0) this.#removeFrom(set, members, expired)
        removed += expired.length
        if (isStepOver()) yield pause()
      }
      pause()
      yield sweepIntervalMs
    }
  }
}

interface GrownSet {
  readonly set: string
  readonly members: Members
  readonly added: string
  readonly most: number
  readonly now: number
}

function expiryOf(ttlMs: number | undefined, now: number): number {
  return ttlMs === undefined ? Number.POSITIVE_INFINITY : now + ttlMs
}

function bytesOfValue(key: string, value: string): number {
  return bytesOfEntry + bytesOfCharacter * (key.length + value.length)
}

function bytesOfText(text: string, beside: number): number {
  return beside + bytesOfCharacter * text.length
}

function storeFull(): CountersignError {
  return storeUnavailable('The store is full', new Error('the store in memory is full'))
}
