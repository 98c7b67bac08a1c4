import type { Observer } from '../base/observer.ts'
import type { Tracing } from '../base/tracing.ts'
import type { ScannedValue, Store } from './store.ts'

/** The methods of a store that are calls to it. */
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

/** What {@link mapStore} changes. */
export interface StoreMapping {
  /** Text that begins every key. Default: none. */
  readonly keyBeginning?: string
  /** Takes each step once, and resolves or rejects as it does. A scan is no step. Default: takes it. */
  readonly around?: Around
}

export type Around = <Result>(operation: StoreOperation, step: () => Promise<Result>) => Promise<Result>

/** A store over another one, with other keys or with something done around each step. Closing it closes that store. */
export function mapStore(store: Store, mapping: StoreMapping): Store {
  const { keyBeginning: beginning = '', around = (_, step) => step() } = mapping
  const key = (text: string): string => beginning + text
  const scan = store.scan?.bind(store)
  return {
    description: store.description,
    ...(store.kind !== undefined && { kind: store.kind }),
    shared: store.shared,
    now: () => store.now(),
    get: (name) => around('get', () => store.get(key(name))),
    create: (name, value, life) => around('create', () => store.create(key(name), value, life)),
    take: (name) => around('take', () => store.take(key(name))),
    compareAndSet: (name, version, value, life, options) =>
      around('compareAndSet', () => store.compareAndSet(key(name), version, value, life, options)),
    watch: (name, onWake) => around('watch', () => store.watch(key(name), onWake)),
    addMember: (set, member, life, most) => around('addMember', () => store.addMember(key(set), member, life, most)),
    removeMember: (set, member) => around('removeMember', () => store.removeMember(key(set), member)),
    members: (set) => around('members', () => store.members(key(set))),
    ...(scan && { scan: (text) => withoutBeginning(scan(key(text)), beginning) }),
    ping: () => around('ping', () => store.ping()),
    close: () => store.close(),
  }
}

async function* withoutBeginning(found: AsyncIterable<ScannedValue>, beginning: string): AsyncGenerator<ScannedValue> {
  for await (const each of found) yield { ...each, key: each.key.slice(beginning.length) }
}

/**
 * The key prefix unless another is set. In a store whose handles do not share a name space, it adds nothing to the
 * keys.
 */
export const defaultKeyPrefix = 'countersign'

/**
 * A key prefix. Without a colon, which ends it, no key under one prefix is also a key under another; without braces,
 * which place a key in a cluster, and with its bound, every key stays within the contract of a store.
 */
export const keyPrefixPattern = /^[A-Za-z0-9._-]{1,64}$/

/** What a key prefix must be, for error messages. */
export const keyPrefixForm = '1 to 64 letters, digits, dots, underscores and hyphens'

/** Prefix of keys in an application's own store: nothing with the default prefix. */
export function keyBeginning(keyPrefix: string): string {
  return keyPrefix === defaultKeyPrefix ? '' : `${keyPrefix}:`
}

/** A store whose keys begin with a prefix; with the default one, the store itself. Closing it closes the store. */
export function withKeyPrefix(store: Store, keyPrefix: string): Store {
  const beginning = keyBeginning(keyPrefix)
  return beginning === '' ? store : mapStore(store, { keyBeginning: beginning })
}

/** A step of a store that is over. */
export interface StoreReport {
  readonly operation: StoreOperation
  /** What the step rejected with. Absent if it resolved. */
  readonly failure?: unknown
  /** Time from the call to its end, milliseconds. */
  readonly durationMs: number
}

/** A store that reports each step to an observer. Closing it closes the store. */
export function observedStore(store: Store, observe: Observer<StoreReport>): Store {
  return mapStore(store, {
    async around(operation, step) {
      // Before the call, because a store may do its work in it.
      const startedAt = performance.now()
      try {
        const result = await step()
        observe({ operation, durationMs: performance.now() - startedAt })
        return result
      } catch (failure) {
        observe({ operation, failure, durationMs: performance.now() - startedAt })
        throw failure
      }
    },
  })
}

/** A store each step of which is a step of the call that takes it. Closing it closes the store. */
export function tracedStore(store: Store, tracing: Tracing): Store {
  const system = store.kind ?? 'other'
  return mapStore(store, { around: (operation, step) => tracing.step({ kind: 'store', system, operation }, step) })
}
