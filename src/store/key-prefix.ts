import type { Life, ScannedValue, Store } from './store.ts'

/** The key prefix unless another is set. In a store whose handles do not share a name space, it adds nothing to the keys. */
export const defaultKeyPrefix = 'countersign'

/**
 * A key prefix. Without a colon, which ends it, no key under one prefix is also a key under another; without braces, which
 * place a key in a cluster, and with its bound, every key stays within the contract of a store.
 */
export const keyPrefixPattern = /^[A-Za-z0-9._-]{1,64}$/

/** What a key prefix must be, for error messages. */
export const keyPrefixForm = '1 to 64 letters, digits, dots, underscores and hyphens'

/** What keys begin with in a store of one's own: nothing with the default prefix. */
export function keyBeginning(keyPrefix: string): string {
  return keyPrefix === defaultKeyPrefix ? '' : `${keyPrefix}:`
}

/** A store whose keys begin with a prefix; with the default one, the store itself. Closing it closes the store. */
export function withKeyPrefix(store: Store, keyPrefix: string): Store {
  const beginning = keyBeginning(keyPrefix)
  return beginning === '' ? store : new PrefixedStore(store, beginning)
}

class PrefixedStore implements Store {
  readonly scan?: NonNullable<Store['scan']>
  readonly #store: Store
  readonly #beginning: string

  constructor(store: Store, beginning: string) {
    this.#store = store
    this.#beginning = beginning
    const scan = store.scan?.bind(store)
    if (scan !== undefined) this.scan = (text) => this.#withoutBeginning(scan(beginning + text))
  }

  get description() {
    return this.#store.description
  }

  get shared() {
    return this.#store.shared
  }

  now() {
    return this.#store.now()
  }

  get(key: string) {
    return this.#store.get(this.#beginning + key)
  }

  create(key: string, value: string, life: Life) {
    return this.#store.create(this.#beginning + key, value, life)
  }

  take(key: string) {
    return this.#store.take(this.#beginning + key)
  }

  compareAndSet(key: string, version: number, value: string, life: Life, options?: { wake?: boolean }) {
    return this.#store.compareAndSet(this.#beginning + key, version, value, life, options)
  }

  watch(key: string, onWake: () => void) {
    return this.#store.watch(this.#beginning + key, onWake)
  }

  addMember(set: string, member: string, life: Life, most?: number) {
    return this.#store.addMember(this.#beginning + set, member, life, most)
  }

  removeMember(set: string, member: string) {
    return this.#store.removeMember(this.#beginning + set, member)
  }

  members(set: string) {
    return this.#store.members(this.#beginning + set)
  }

  async *#withoutBeginning(found: AsyncIterable<ScannedValue>): AsyncGenerator<ScannedValue> {
    for await (const { key, value } of found) yield { key: key.slice(this.#beginning.length), value }
  }

  ping() {
    return this.#store.ping()
  }

  close() {
    return this.#store.close()
  }
}
