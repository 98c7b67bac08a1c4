/**
 * Fills a store in memory in a process of its own, which Node.js gives a small heap, with what the argument names, until it is full;
 * then asks it for a while. Prints how much was stored.
 */
import { makeMemoryStore } from '../../src/store/memory.ts'

const life = { ttlMs: 3_600_000 }
const store = makeMemoryStore()
const fillings: Readonly<Record<string, (i: number) => Promise<unknown>>> = {
  'long values': (i) => store.create(`key:${i}`, `${i}${'a'.repeat(60_000)}`, life),
  // Beyond Latin-1, so two bytes a character.
  'wide values': (i) => store.create(`key:${i}`, `${i}${'\u4e00'.repeat(600)}`, life),
  'short values': (i) => store.create(`key:${i}`, '', life),
  'short sets': (i) => store.addMember(`set:${i}`, 'm', life),
  'a long set': (i) => store.addMember('set', `member:${i}`, life),
}
const fill = fillings[process.argv[2] ?? '']
if (fill === undefined) throw new Error(`fill it with ${Object.keys(fillings).join(', ')}`)
let count = 0
try {
  for (; ; count += 100) await Promise.all(Array.from({ length: 100 }, (_, i) => fill(count + i)))
} catch (thrown) {
  for (let i = 0; i < 20_000; i++) await Promise.allSettled([store.get(`key:${i}`), fill(count + 100 + i)])
  console.log(JSON.stringify({ count, message: (thrown as Error).message }))
}
