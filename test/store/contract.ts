import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Life, Store } from '../../src/store/store.ts'
import { storeCommands } from './model.ts'

const LONG: Life = { ttlMs: 60_000 }
const SHORT: Life = { ttlMs: 30 }
// A timer may fire a millisecond early, and a life may begin in the middle of one.
const AFTER_SHORT_MS = 30 + 5

/**
 * Writes down the contract of a store as tests, over two handles of the same data (or one handle, if there can be but one).
 * All keys begin with the prefix; some values live for ever.
 */
export function describeStoreContract(
  name: string,
  openHandles: () => Promise<readonly [Store, Store]>,
  prefix = 'test:',
): void {
  const newKey = () => `${prefix}${randomUUID()}`

  describe(`${name} keeps the contract of a store:`, () => {
    let store: Store
    let other: Store

    beforeAll(async () => {
      ;[store, other] = await openHandles()
    })
    afterAll(() => Promise.all([store.close(), other.close()]))

    describe('get', () => {
      it('finds nothing under a key without a value', async () => {
        expect(await store.get(newKey())).toBeUndefined()
      })

      it('reads the value and its version', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        expect(await other.get(key)).toEqual({ value: 'a', version: 1 })
      })

      it.each([
        ['empty text', ''],
        ['text that looks like a number', '0012'],
        ['text with colons', '1:2:3'],
        ['control characters and NUL', '\0\r\n\t\u007f\0'],
        ['characters beyond ASCII', 'grüße 你好 😀 \u202e\ufeff\u2028'],
        ['64 KiB', 'x'.repeat(65_536)],
        ['64 KiB of four-byte characters', '😀'.repeat(16_384)],
      ])('gives back exactly %s', async (_, value) => {
        const key = newKey()
        await store.create(key, value, LONG)
        expect(await other.get(key)).toEqual({ value, version: 1 })
        expect(await other.compareAndSet(key, 1, `${value}!`.slice(-65_536), LONG)).toBe(true)
        expect(await store.take(key)).toBe(`${value}!`.slice(-65_536))
      })

      it('takes a key of 200 characters with braces', async () => {
        const key = `${prefix}{${randomUUID()}}:`.padEnd(200, '~')
        expect(await store.create(key, 'a', LONG)).toBe(true)
        expect(await other.get(key)).toEqual({ value: 'a', version: 1 })
      })
    })

    describe('create', () => {
      it('changes nothing, and says so, when the key has a value', async () => {
        const key = newKey()
        expect(await store.create(key, 'first', LONG)).toBe(true)
        expect(await other.create(key, 'second', 'forever')).toBe(false)
        expect(await store.get(key)).toEqual({ value: 'first', version: 1 })
      })

      it('does not prolong the life of a value that is there', async () => {
        const key = newKey()
        await store.create(key, 'first', { ttlMs: 300 })
        expect(await store.create(key, 'second', LONG)).toBe(false)
        await sleep(300 + 5)
        expect(await store.get(key)).toBeUndefined()
      })

      it('lets one of 200 concurrent calls win', async () => {
        const key = newKey()
        const created = await race(200, (i) => (i % 2 ? store : other).create(key, String(i), LONG))
        const winners = created.flatMap((won, i) => (won ? [String(i)] : []))
        expect(winners).toHaveLength(1)
        expect(await store.get(key)).toEqual({ value: winners[0], version: 1 })
      })
    })

    describe('take', () => {
      it('returns the value and removes it', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        expect(await other.take(key)).toBe('a')
        expect(await store.take(key)).toBeUndefined()
        expect(await store.get(key)).toBeUndefined()
        expect(await store.create(key, 'b', LONG)).toBe(true)
      })

      it('gives the value to one of 200 concurrent calls', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const taken = await race(200, (i) => (i % 2 ? store : other).take(key))
        expect(taken.filter((value) => value !== undefined)).toEqual(['a'])
      })
    })

    describe('compareAndSet', () => {
      it('replaces the value and adds one to the version', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        expect(await other.compareAndSet(key, 1, 'b', LONG)).toBe(true)
        expect(await store.compareAndSet(key, 2, 'c', LONG)).toBe(true)
        expect(await store.get(key)).toEqual({ value: 'c', version: 3 })
      })

      it('counts on beyond a single digit', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        for (let version = 1; version < 120; version++) {
          expect(await store.compareAndSet(key, version, `v${version + 1}`, LONG)).toBe(true)
        }
        expect(await store.get(key)).toEqual({ value: 'v120', version: 120 })
      })

      it.each([0, 2, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
        'changes nothing, and says so, when version 1 is called %d',
        async (version) => {
          const key = newKey()
          await store.create(key, 'a', LONG)
          expect(await store.compareAndSet(key, version, 'b', SHORT)).toBe(false)
          await sleep(AFTER_SHORT_MS)
          expect(await store.get(key)).toEqual({ value: 'a', version: 1 })
        },
      )

      it('changes nothing, and says so, when the key is absent', async () => {
        const key = newKey()
        expect(await store.compareAndSet(key, 1, 'b', LONG)).toBe(false)
        expect(await store.compareAndSet(key, 0, 'b', LONG)).toBe(false)
        expect(await store.get(key)).toBeUndefined()
      })

      it('gives the value a new life, shorter or longer', async () => {
        const [ended, shortened, prolonged, kept] = [newKey(), newKey(), newKey(), newKey()]
        await store.create(ended, 'a', 'forever')
        await store.create(shortened, 'a', LONG)
        await store.create(prolonged, 'a', { ttlMs: 300 })
        await store.create(kept, 'a', { ttlMs: 300 })
        expect(await store.compareAndSet(ended, 1, 'b', SHORT)).toBe(true)
        expect(await store.compareAndSet(shortened, 1, 'b', SHORT)).toBe(true)
        expect(await store.compareAndSet(prolonged, 1, 'b', LONG)).toBe(true)
        expect(await store.compareAndSet(kept, 1, 'b', 'forever')).toBe(true)
        await sleep(300 + 5)
        expect(await store.get(ended)).toBeUndefined()
        expect(await store.get(shortened)).toBeUndefined()
        expect(await store.get(prolonged)).toEqual({ value: 'b', version: 2 })
        expect(await store.get(kept)).toEqual({ value: 'b', version: 2 })
      })

      it('lets one of 200 concurrent calls on the same version win', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const set = await race(200, (i) => (i % 2 ? store : other).compareAndSet(key, 1, String(i), LONG))
        const winners = set.flatMap((won, i) => (won ? [String(i)] : []))
        expect(winners).toHaveLength(1)
        expect(await store.get(key)).toEqual({ value: winners[0], version: 2 })
      })

      it('and take exclude each other', async () => {
        for (let round = 0; round < 50; round++) {
          const key = newKey()
          await store.create(key, 'a', LONG)
          const [taken, set] = await Promise.all([store.take(key), other.compareAndSet(key, 1, 'b', LONG)])
          expect(taken).toBe(set ? 'b' : 'a')
          expect(await store.get(key)).toBeUndefined()
        }
      })
    })

    describe('an expired value', () => {
      it('is absent for get, take and compareAndSet, and leaves its key free', async () => {
        const keys = [newKey(), newKey(), newKey(), newKey()] as const
        for (const key of keys) await store.create(key, 'a', SHORT)
        await sleep(AFTER_SHORT_MS)
        expect(await store.get(keys[0])).toBeUndefined()
        expect(await store.take(keys[1])).toBeUndefined()
        expect(await store.compareAndSet(keys[2], 1, 'b', LONG)).toBe(false)
        expect(await store.get(keys[2])).toBeUndefined()
        expect(await store.create(keys[3], 'b', LONG)).toBe(true)
        expect(await store.get(keys[3])).toEqual({ value: 'b', version: 1 })
      })

      it('is not what a value with a long life, or one that lives for ever, becomes meanwhile', async () => {
        const [long, tenYears, forever] = [newKey(), newKey(), newKey()]
        await store.create(long, 'a', LONG)
        await store.create(tenYears, 'a', { ttlMs: 10 * 365 * 86_400_000 })
        await store.create(forever, 'a', 'forever')
        await sleep(AFTER_SHORT_MS)
        for (const key of [long, tenYears, forever]) expect(await store.get(key)).toEqual({ value: 'a', version: 1 })
      })
    })

    describe('a life', () => {
      const badLives = [
        0,
        -1,
        -0,
        1.5,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        10 * 365 * 86_400_000 + 1,
        '1000',
        undefined,
      ]

      it.each(badLives)('of %s milliseconds is a TypeError and changes nothing', async (ttlMs) => {
        const [key, set] = [newKey(), newKey()]
        const life = { ttlMs } as Life
        await expect(store.create(key, 'a', life)).rejects.toThrow(TypeError)
        expect(await store.get(key)).toBeUndefined()
        await store.create(key, 'a', LONG)
        await expect(store.compareAndSet(key, 1, 'b', life)).rejects.toThrow(TypeError)
        expect(await store.get(key)).toEqual({ value: 'a', version: 1 })
        await expect(store.addMember(set, 'm', life)).rejects.toThrow(TypeError)
        expect(await store.members(set)).toEqual([])
      })

      it.each(['', 'Forever', null, 60_000])('written as %j is a TypeError', async (life) => {
        await expect(store.create(newKey(), 'a', life as unknown as Life)).rejects.toThrow(TypeError)
      })
    })

    describe('watch', () => {
      it('calls after a compare-and-set with wake, by any handle', async () => {
        for (const writer of [store, other]) {
          const key = newKey()
          await store.create(key, 'a', LONG)
          const woken = Promise.withResolvers<void>()
          const unwatch = await store.watch(key, woken.resolve)
          await writer.compareAndSet(key, 1, 'b', LONG, { wake: true })
          await woken.promise
          unwatch()
        }
      })

      it('does not call for a compare-and-set without wake, for one that fails, or for another change', async () => {
        const key = newKey()
        let calls = 0
        const unwatch = await store.watch(key, () => calls++)
        await other.create(key, 'a', LONG)
        await other.compareAndSet(key, 1, 'b', LONG)
        await other.compareAndSet(key, 2, 'c', LONG, { wake: false })
        await other.compareAndSet(key, 1, 'd', LONG, { wake: true })
        await other.take(key)
        await other.compareAndSet(key, 3, 'e', LONG, { wake: true })
        await fence()
        expect(calls).toBe(0)
        unwatch()
      })

      it('calls only after the change is there to read, and not from within the call that made it', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const read = Promise.withResolvers<unknown>()
        let returned = false
        const unwatch = await store.watch(key, () => read.resolve(returned && store.get(key)))
        const set = store.compareAndSet(key, 1, 'b', LONG, { wake: true })
        returned = true
        await set
        expect(await read.promise).toEqual({ value: 'b', version: 2 })
        unwatch()
      })

      it('calls every watcher of the key, also when two are the same function', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const calls: string[] = []
        const again = () => calls.push('again')
        const unwatches = await Promise.all([
          store.watch(key, again),
          store.watch(key, again),
          other.watch(key, () => calls.push('other')),
        ])
        await store.compareAndSet(key, 1, 'b', LONG, { wake: true })
        await fence()
        expect(calls.sort()).toEqual(['again', 'again', 'other'])
        for (const unwatch of unwatches) unwatch()
      })

      it('calls no more once it was ended, which may be done twice and ends no other watch', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const calls: string[] = []
        const first = await store.watch(key, () => calls.push('first'))
        const second = await store.watch(key, () => calls.push('second'))
        first()
        first()
        await store.compareAndSet(key, 1, 'b', LONG, { wake: true })
        await fence()
        expect(calls).toEqual(['second'])
        second()
        const third = await store.watch(key, () => calls.push('third'))
        first()
        second()
        await store.compareAndSet(key, 2, 'c', LONG, { wake: true })
        await fence()
        expect(calls).toEqual(['second', 'third'])
        third()
        await store.compareAndSet(key, 3, 'd', LONG, { wake: true })
        await fence()
        expect(calls).toEqual(['second', 'third'])
      })

      it('wakes, of 1,000 watchers of different keys, only those whose key changed', async () => {
        const keys = Array.from({ length: 1000 }, newKey)
        const calls = new Map<string, number>()
        const unwatches = await Promise.all(
          keys.map((key) => store.watch(key, () => calls.set(key, (calls.get(key) ?? 0) + 1))),
        )
        await Promise.all(keys.map((key) => store.create(key, 'a', LONG)))
        const changed = keys.filter((_, i) => i % 2 === 0)
        await Promise.all(changed.map((key) => other.compareAndSet(key, 1, 'b', LONG, { wake: true })))
        await fence()
        expect([...calls.keys()].sort()).toEqual(changed.sort())
        for (const unwatch of unwatches) unwatch()
      })

      it('misses nothing after it resolved, however watches of the same key begin and end around it', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const around: Promise<() => void>[] = []
        for (let version = 1; version <= 200; version++) {
          // Others come and go, sometimes leaving none but this one, sometimes in the middle of its beginning.
          if (version % 3 !== 0) around.push(store.watch(key, () => undefined))
          if (version % 2 === 0) for (const watch of around.splice(0)) void watch.then((unwatch) => unwatch())
          const woken = Promise.withResolvers<void>()
          const unwatch = await store.watch(key, woken.resolve)
          expect(await other.compareAndSet(key, version, 'b', LONG, { wake: true })).toBe(true)
          await woken.promise
          unwatch()
        }
        for (const watch of around) (await watch)()
      })

      it('lets a reader that reads at every call see the last of many changes', async () => {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const last = Promise.withResolvers<void>()
        const unwatch = await store.watch(key, () => {
          void store.get(key).then((entry) => entry?.version === 301 && last.resolve())
        })
        for (let version = 1; version <= 300; version++) {
          await other.compareAndSet(key, version, 'b', LONG, { wake: true })
        }
        await last.promise
        unwatch()
      })
    })

    describe('a set', () => {
      it('lists its members, each once, and none when it has none', async () => {
        const set = newKey()
        expect(await store.members(set)).toEqual([])
        await store.addMember(set, 'b', LONG)
        await other.addMember(set, 'a', 'forever')
        await other.addMember(set, 'b', 'forever')
        expect((await store.members(set)).sort()).toEqual(['a', 'b'])
      })

      it('loses a member that is removed, and only that', async () => {
        const set = newKey()
        await store.addMember(set, 'a', LONG)
        await store.addMember(set, 'b', 'forever')
        await other.removeMember(set, 'b')
        await other.removeMember(set, 'never there')
        expect(await store.members(set)).toEqual(['a'])
        await other.removeMember(set, 'a')
        expect(await store.members(set)).toEqual([])
      })

      it('gives each member a life of its own, set anew by adding it again', async () => {
        const set = newKey()
        await store.addMember(set, 'short', SHORT)
        await store.addMember(set, 'prolonged', SHORT)
        await store.addMember(set, 'prolonged', LONG)
        await store.addMember(set, 'shortened', 'forever')
        await store.addMember(set, 'shortened', SHORT)
        await store.addMember(set, 'forever', 'forever')
        await sleep(AFTER_SHORT_MS)
        expect((await store.members(set)).sort()).toEqual(['forever', 'prolonged'])
        await store.removeMember(set, 'forever')
        expect(await store.members(set)).toEqual(['prolonged'])
      })

      it('takes back a member whose life was over', async () => {
        const set = newKey()
        await store.addMember(set, 'a', SHORT)
        await sleep(AFTER_SHORT_MS)
        await store.addMember(set, 'a', LONG)
        expect(await store.members(set)).toEqual(['a'])
      })

      it('keeps members apart from values of the same name and from other sets', async () => {
        const [set, another] = [newKey(), newKey()]
        await store.addMember(set, another, LONG)
        expect(await store.members(another)).toEqual([])
        expect(await store.get(another)).toBeUndefined()
      })

      it('loses none of 200 members added at once', async () => {
        const set = newKey()
        await race(200, (i) => (i % 2 ? store : other).addMember(set, `m${i}`, LONG))
        expect(new Set(await store.members(set)).size).toBe(200)
      })
    })

    it('does as a plain map with versions does, whatever the order of calls', async () => {
      await fc.assert(
        fc.asyncProperty(fc.commands(storeCommands, { maxCommands: 40 }), (commands) =>
          fc.asyncModelRun(
            () => ({ model: { values: new Map(), sets: new Map() }, real: { store, other, id: `${newKey()}:` } }),
            commands,
          ),
        ),
        { numRuns: 40 },
      )
    })

    it('ping resolves', async () => {
      await store.ping()
    })

    describe('close', () => {
      it('may be called twice; later calls reject, and watches are over', async () => {
        const [closed, writer] = await openHandles()
        const key = newKey()
        await writer.create(key, 'a', LONG)
        let calls = 0
        const unwatch = await closed.watch(key, () => calls++)
        await closed.close()
        await closed.close()
        if (writer !== closed) await writer.compareAndSet(key, 1, 'b', LONG, { wake: true })
        await fence()
        expect(calls).toBe(0)
        unwatch()
        const unavailable = { reason: 'STORE_UNAVAILABLE' }
        await expect(closed.get(key)).rejects.toMatchObject(unavailable)
        await expect(closed.create(key, 'a', LONG)).rejects.toMatchObject(unavailable)
        await expect(closed.take(key)).rejects.toMatchObject(unavailable)
        await expect(closed.compareAndSet(key, 1, 'a', LONG)).rejects.toMatchObject(unavailable)
        await expect(closed.watch(key, () => undefined)).rejects.toMatchObject(unavailable)
        await expect(closed.addMember(key, 'a', LONG)).rejects.toMatchObject(unavailable)
        await expect(closed.removeMember(key, 'a')).rejects.toMatchObject(unavailable)
        await expect(closed.members(key)).rejects.toMatchObject(unavailable)
        await expect(closed.ping()).rejects.toMatchObject(unavailable)
        await writer.close()
      })
    })

    // Wake-ups reach a handle in the order of the changes, so one that comes last has let all before it pass.
    async function fence(): Promise<void> {
      for (const handle of new Set([store, other])) {
        const key = newKey()
        await store.create(key, 'a', LONG)
        const woken = Promise.withResolvers<void>()
        const unwatch = await handle.watch(key, woken.resolve)
        await other.compareAndSet(key, 1, 'b', LONG, { wake: true })
        await woken.promise
        unwatch()
      }
    }
  })
}

function race<T>(count: number, call: (i: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => call(i)))
}
