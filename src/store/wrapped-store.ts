import type { Life, Store } from './store.ts'

/** The methods of a store that ask it for something. */
export type StoreOperation = (typeof storeOperations)[number]

/** All of them. */
export const storeOperations = [
  'get',
  'create',
  'take',
  'compareAndSet',
  'watch',
  'addMember',
  'removeMember',
  'members',
  'ping',
] as const satisfies readonly (keyof Store)[]

/** What is done around each step of a store. It takes the step once, and resolves or rejects as that does. */
export type Around = <Result>(operation: StoreOperation, step: () => Promise<Result>) => Promise<Result>

/** A store that does something around each of its steps. Closing it closes the store. It has no `scan`, which no call asks for. */
export function wrappedStore(store: Store, around: Around): Store {
  return new WrappedStore(store, around)
}

class WrappedStore implements Store {
  readonly #store: Store
  readonly #around: Around

  constructor(store: Store, around: Around) {
    this.#store = store
    this.#around = around
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
    return this.#around('get', () => this.#store.get(key))
  }

  create(key: string, value: string, life: Life) {
    return this.#around('create', () => this.#store.create(key, value, life))
  }

  take(key: string) {
    return this.#around('take', () => this.#store.take(key))
  }

  compareAndSet(key: string, version: number, value: string, life: Life, options?: { wake?: boolean }) {
    return this.#around('compareAndSet', () => this.#store.compareAndSet(key, version, value, life, options))
  }

  watch(key: string, onWake: () => void) {
    return this.#around('watch', () => this.#store.watch(key, onWake))
  }

  addMember(set: string, member: string, life: Life, most?: number) {
    return this.#around('addMember', () => this.#store.addMember(set, member, life, most))
  }

  removeMember(set: string, member: string) {
    return this.#around('removeMember', () => this.#store.removeMember(set, member))
  }

  members(set: string) {
    return this.#around('members', () => this.#store.members(set))
  }

  ping() {
    return this.#around('ping', () => this.#store.ping())
  }

  close() {
    return this.#store.close()
  }
}
