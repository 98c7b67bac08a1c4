import type { Life, VersionedValue } from '../../src/store/store.ts'

/** A value that a {@link MapStore} holds. */
interface Entry extends VersionedValue {
  readonly endsAt: number
}

/** A step at a store, by the name of the method. */
export interface Step {
  readonly operation: 'get' | 'create' | 'take' | 'compareAndSet' | 'addMember' | 'removeMember' | 'members' | 'scan'
  // biome-ignore lint/suspicious/noExplicitAny: each operation has its own.
  readonly args: readonly any[]
}

/** A change of a value: what it was and is. */
export type OnWrite = (key: string, before: string | undefined, after: string | undefined) => void

/** A store that keeps the contract of `Store`, each method of which is done at once. */
export class MapStore {
  readonly #now: () => number
  readonly #onWrite: OnWrite
  #values = new Map<string, Entry>()
  #sets = new Map<string, Map<string, number>>()
  /** Called for each key that was changed with a wake-up. */
  onWake: (key: string) => void = () => {}

  constructor(now: () => number, onWrite: OnWrite) {
    this.#now = now
    this.#onWrite = onWrite
  }

  /** What a key holds now. */
  read(key: string): string | undefined {
    return this.#live(key)?.value
  }

  /** The members of a set, without expired ones. */
  membersOf(name: string): string[] {
    const now = this.#now()
    return [...(this.#sets.get(name) ?? [])].filter(([, endsAt]) => now < endsAt).map(([member]) => member)
  }

  /** All that is stored with keys of this beginning. */
  *found(beginning: string): Generator<{ readonly key: string; readonly value: string }> {
    for (const key of [...this.#values.keys()]) {
      const entry = key.startsWith(beginning) ? this.#live(key) : undefined
      if (entry !== undefined) yield { key, value: entry.value }
    }
  }

  /** A copy of all, for {@link restore}. */
  copy(): readonly [Map<string, Entry>, Map<string, Map<string, number>>] {
    return [new Map(this.#values), new Map([...this.#sets].map(([name, members]) => [name, new Map(members)]))]
  }

  restore([values, sets]: ReturnType<MapStore['copy']>): void {
    this.#values = new Map(values)
    this.#sets = new Map([...sets].map(([name, members]) => [name, new Map(members)]))
  }

  do({ operation, args }: Step): unknown {
    const [key] = args
    switch (operation) {
      case 'get': {
        const entry = this.#live(key)
        return entry && { value: entry.value, version: entry.version }
      }
      case 'create':
        if (this.#live(key) !== undefined) return false
        this.#put(key, undefined, { value: args[1], version: 1, endsAt: this.#endOf(args[2]) })
        return true
      case 'take': {
        const entry = this.#live(key)
        if (entry !== undefined) this.#put(key, entry.value, undefined)
        return entry?.value
      }
      case 'compareAndSet': {
        const [, version, value, life, options] = args
        const entry = this.#live(key)
        if (entry?.version !== version) return false
        this.#put(key, entry?.value, { value, version: version + 1, endsAt: this.#endOf(life) })
        if (options?.wake) this.onWake(key)
        return true
      }
      case 'addMember':
        return this.#addMember(key, args[1], args[2], args[3])
      case 'removeMember':
        this.#sets.get(key)?.delete(args[1])
        return undefined
      case 'members':
        return this.membersOf(key)
      case 'scan':
        return [...this.found(key)]
    }
  }

  #addMember(name: string, member: string, life: Life, most = Number.POSITIVE_INFINITY): string[] {
    const set = this.#sets.get(name) ?? new Map<string, number>()
    this.#sets.set(name, set)
    for (const [each, endsAt] of set) if (this.#now() >= endsAt) set.delete(each)
    set.delete(member)
    set.set(member, this.#endOf(life))
    const others = [...set].filter(([each]) => each !== member).sort(([, one], [, other]) => one - other)
    const beyond = (bound: number): string[] => others.slice(0, Math.max(0, set.size - bound)).map(([each]) => each)
    const [surplus, dropped] = [beyond(most), beyond(2 * most)]
    for (const each of dropped) set.delete(each)
    return surplus.slice(0, 10)
  }

  #live(key: string): Entry | undefined {
    const entry = this.#values.get(key)
    return entry !== undefined && this.#now() < entry.endsAt ? entry : undefined
  }

  #endOf(life: Life): number {
    return life === 'forever' ? Number.POSITIVE_INFINITY : this.#now() + life.ttlMs
  }

  #put(key: string, before: string | undefined, entry: Entry | undefined): void {
    if (entry === undefined) this.#values.delete(key)
    else this.#values.set(key, entry)
    this.#onWrite(key, before, entry?.value)
  }
}
