// A store of your own, in place of SQLite and Redis: here a plain Map, which one process has to itself and which is
// gone when that process ends. A store for a database of your own looks the same; its atomic steps are then the
// database's.
//   const service = await createCountersign({ store: new MapStore(), publicUrl: 'https://auth.example' })
//   map-store.test.ts runs the contract suite over it.
import { CountersignError, type Life, type Store, type VersionedValue } from 'countersign'

/** A value, or a set of members, each with the time when its life ends: epoch milliseconds, or Infinity. */
type Entry = VersionedValue & { readonly endsAt: number }
type Members = Map<string, number>

const maxTtlMs = 10 * 365 * 86_400_000
const maxValueBytes = 64 * 1024
const sweepEveryMs = 60_000

/**
 * Keeps everything in memory. No method awaits anything between reading and writing, and JavaScript runs one of them at
 * a time: that makes each of them one atomic step.
 */
export class MapStore implements Store {
  readonly description = 'a Map in memory'
  readonly shared = false
  readonly #values = new Map<string, Entry>()
  readonly #sets = new Map<string, Members>()
  readonly #watchers = new Map<string, Set<{ readonly onWake: () => void }>>()
  // Without it, what nobody reads again would stay forever.
  readonly #sweeper = setInterval(() => this.#sweep(), sweepEveryMs).unref()
  #closed = false

  now(): number {
    return Date.now()
  }

  async get(key: string): Promise<VersionedValue | undefined> {
    const entry = this.#read(key)
    return entry && { value: entry.value, version: entry.version }
  }

  async create(key: string, value: string, life: Life): Promise<boolean> {
    const endsAt = endOf(life)
    requireFits(value)
    if (this.#read(key) !== undefined) return false
    this.#values.set(key, { value, version: 1, endsAt })
    return true
  }

  async take(key: string): Promise<string | undefined> {
    const entry = this.#read(key)
    this.#values.delete(key)
    return entry?.value
  }

  async compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    { wake = false }: { wake?: boolean } = {},
  ): Promise<boolean> {
    const endsAt = endOf(life)
    requireFits(value)
    if (this.#read(key)?.version !== version) return false
    this.#values.set(key, { value, version: version + 1, endsAt })
    if (wake) {
      // In a later turn, because a watcher must not be called from within the change that woke it.
      for (const watcher of this.#watchers.get(key) ?? []) {
        setImmediate(() => {
          if (this.#watchers.get(key)?.has(watcher)) watcher.onWake()
        })
      }
    }
    return true
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    this.#requireOpen()
    // An object for each watch: the same function may watch twice.
    const watcher = { onWake }
    const watchers = this.#watchers.get(key) ?? new Set()
    this.#watchers.set(key, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key)
    }
  }

  async addMember(set: string, member: string, life: Life, most = Number.POSITIVE_INFINITY): Promise<string[]> {
    this.#requireOpen()
    const now = Date.now()
    const members = this.#sets.get(set) ?? new Map<string, number>()
    members.set(member, endOf(life))
    this.#sets.set(set, members)
    const live = [...members].filter(([, endsAt]) => now < endsAt)
    if (live.length <= most) return []
    const others = live.filter(([name]) => name !== member).sort(([, a], [, b]) => a - b)
    const soonest = others.map(([name]) => name)
    for (const name of soonest.slice(0, Math.max(0, live.length - 2 * most))) members.delete(name)
    return soonest.slice(0, Math.min(live.length - most, 10))
  }

  async removeMember(set: string, member: string): Promise<void> {
    this.#requireOpen()
    this.#sets.get(set)?.delete(member)
  }

  async members(set: string): Promise<string[]> {
    this.#requireOpen()
    const now = Date.now()
    return [...(this.#sets.get(set) ?? [])].filter(([, endsAt]) => now < endsAt).map(([member]) => member)
  }

  async ping(): Promise<void> {
    this.#requireOpen()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweeper)
    this.#watchers.clear()
  }

  /** What is kept under a key and has not expired. */
  #read(key: string): Entry | undefined {
    this.#requireOpen()
    const entry = this.#values.get(key)
    return entry !== undefined && Date.now() < entry.endsAt ? entry : undefined
  }

  #requireOpen(): void {
    if (this.#closed) throw new CountersignError('STORE_UNAVAILABLE', 'The store was closed')
  }

  #sweep(): void {
    const now = Date.now()
    for (const [key, { endsAt }] of this.#values) if (endsAt <= now) this.#values.delete(key)
    for (const [set, members] of this.#sets) {
      for (const [member, endsAt] of members) if (endsAt <= now) members.delete(member)
      if (members.size === 0) this.#sets.delete(set)
    }
  }
}

/** When a life that begins now ends. A life out of bounds is a TypeError: a time rounded to 0 must not mean forever. */
function endOf(life: Life): number {
  if (life === 'forever') return Number.POSITIVE_INFINITY
  const { ttlMs } = life
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > maxTtlMs) {
    throw new TypeError(`ttlMs must be a whole number from 1 to ${maxTtlMs}, but is ${ttlMs}`)
  }
  return Date.now() + ttlMs
}

/** A value that is too large is a RangeError: what grows without a bound must not pass for stored. */
function requireFits(value: string): void {
  if (Buffer.byteLength(value) > maxValueBytes) throw new RangeError(`a value has at most ${maxValueBytes} bytes`)
}
