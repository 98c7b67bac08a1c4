import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Life, Store, VersionedValue } from '../../src/store/store.ts'

/** What a store should hold, as far as the calls of one run go. */
export interface Model {
  readonly values: Map<string, VersionedValue>
  /** Each member of each set, with its life in milliseconds. */
  readonly sets: Map<string, Map<string, number>>
}

/** Two handles of one store, and what the keys of one run begin with. */
export interface Real {
  readonly store: Store
  readonly other: Store
  readonly id: string
}

type Command = fc.AsyncCommand<Model, Real>

const brief: Life = { ttlMs: 1 }
// By then a brief life is over on any clock.
const afterBriefMs = 4

/** Calls of all methods on a few keys, with lives that end at once or not during the test. */
export const storeCommands: fc.Arbitrary<Command>[] = commandsOver(
  fc.constantFrom('k1', 'k2', 'k3'),
  fc.constantFrom('m1', 'm2', 'm3'),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom<Life>('forever', { ttlMs: 60_000 }, brief),
  fc.boolean(),
)

function commandsOver(
  key: fc.Arbitrary<string>,
  member: fc.Arbitrary<string>,
  value: fc.Arbitrary<string>,
  life: fc.Arbitrary<Life>,
  viaOther: fc.Arbitrary<boolean>,
): fc.Arbitrary<Command>[] {
  return [
    fc.tuple(key, viaOther).map(([k, via]) =>
      command(`get ${k}`, via, async (model, store, id) => {
        expect(await store.get(id + k)).toEqual(model.values.get(k))
      }),
    ),
    fc.tuple(key, value, life, viaOther).map(([k, text, lasts, via]) =>
      command(`create ${k} ${JSON.stringify([text, lasts])}`, via, async (model, store, id) => {
        const free = !model.values.has(k)
        expect(await store.create(id + k, text, lasts)).toBe(free)
        if (free) await put(model, k, { value: text, version: 1 }, lasts)
      }),
    ),
    fc.tuple(key, viaOther).map(([k, via]) =>
      command(`take ${k}`, via, async (model, store, id) => {
        expect(await store.take(id + k)).toBe(model.values.get(k)?.value)
        model.values.delete(k)
      }),
    ),
    fc.tuple(key, fc.constantFrom(0, 0, 0, -1, 1), value, life, viaOther).map(([k, off, text, lasts, via]) =>
      command(`compareAndSet ${k} ${JSON.stringify([off, text, lasts])}`, via, async (model, store, id) => {
        const current = model.values.get(k)
        const fits = current !== undefined && off === 0
        const version = current?.version ?? 1
        expect(await store.compareAndSet(id + k, version + off, text, lasts, { wake: via })).toBe(fits)
        if (fits) await put(model, k, { value: text, version: version + 1 }, lasts)
      }),
    ),
    fc.tuple(key, member, life, fc.constantFrom(undefined, 1, 2), viaOther).map(([k, m, lasts, most, via]) =>
      command(`addMember ${k} ${m} ${JSON.stringify([lasts, most])}`, via, async (model, store, id) => {
        const named = await store.addMember(`${id}set:${k}`, m, lasts, most)
        const set = model.sets.get(k) ?? new Map<string, number>()
        model.sets.set(k, set.set(m, lasts === 'forever' ? Number.POSITIVE_INFINITY : lasts.ttlMs))
        const others = [...set].filter(([name]) => name !== m).sort(([, a], [, b]) => a - b)
        const beyond = (bound: number) => others.slice(0, Math.max(0, set.size - bound))
        // Lives that are equal in the model began one after the other, and the model does not know in which order.
        const lives = (names: string[]) => names.map((name) => set.get(name))
        expect(new Set(named).size).toBe(named.length)
        expect(lives(named)).toEqual(beyond(most ?? Number.POSITIVE_INFINITY).map(([, ttlMs]) => ttlMs))
        const kept = await store.members(`${id}set:${k}`)
        const dropped = [...set.keys()].filter((name) => !kept.includes(name) && (name !== m || lasts !== brief))
        expect(lives(dropped).sort()).toEqual(beyond(2 * (most ?? Number.POSITIVE_INFINITY)).map(([, ttlMs]) => ttlMs))
        for (const name of dropped) set.delete(name)
        if (lasts === brief) {
          set.delete(m)
          await sleep(afterBriefMs)
        }
      }),
    ),
    fc.tuple(key, member, viaOther).map(([k, m, via]) =>
      command(`removeMember ${k} ${m}`, via, async (model, store, id) => {
        await store.removeMember(`${id}set:${k}`, m)
        model.sets.get(k)?.delete(m)
      }),
    ),
    fc.tuple(key, viaOther).map(([k, via]) =>
      command(`members ${k}`, via, async (model, store, id) => {
        expect((await store.members(`${id}set:${k}`)).sort()).toEqual([...(model.sets.get(k)?.keys() ?? [])].sort())
      }),
    ),
  ]
}

async function put(model: Model, key: string, entry: VersionedValue, life: Life): Promise<void> {
  if (life !== brief) {
    model.values.set(key, entry)
    return
  }
  model.values.delete(key)
  await sleep(afterBriefMs)
}

function command(
  name: string,
  viaOther: boolean,
  run: (model: Model, store: Store, id: string) => Promise<void>,
): Command {
  return {
    check: () => true,
    run: (model, { store, other, id }) => run(model, viaOther ? other : store, id),
    toString: () => (viaOther ? `${name} via the other handle` : name),
  }
}
