import type { Life, Store } from './store.ts'

/** Life of what an exercise that breaks off leaves behind. */
const life: Life = { ttlMs: 10_000 }

/** About as long as a stored session or order. */
const value = 'x'.repeat(2000)

/**
 * Makes each kind of call once, so that a store which is full, read-only or forbids some of them shows it. Rejects as
 * the first call that fails. Wakes nobody and leaves nothing behind.
 *
 * @param name a key that nobody else uses, with room for a few more characters.
 */
export async function exerciseStore(store: Store, name: string): Promise<void> {
  const set = `${name}:set`
  await store.create(name, value, life)
  await store.get(name)
  await store.compareAndSet(name, 1, value, life, { wake: true })
  await store.take(name)
  await store.addMember(set, 'member', life, 1)
  await store.members(set)
  await store.removeMember(set, 'member')
}
