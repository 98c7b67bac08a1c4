import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Life, ScannedValue, Store } from '../../store/store.ts'
import { assertRefused, race, soon, type TestRunner } from './runner.ts'

/** What {@link describeStoreContract} tests. */
export interface StoreContractOptions {
  /** The store's name in the names of the tests. */
  readonly name: string
  /**
   * Opens two handles of the same data, as two processes would have them; for a store that only one handle can reach,
   * the same handle twice. Called once for each test, which closes both.
   */
  readonly open: () => Promise<readonly [Store, Store]>
  /** Text that all keys begin with, ASCII without white space, at most 100 characters. Default `test:`. */
  readonly keyPrefix?: string
}

const long = { ttlMs: 60_000 } as const
const short: Life = { ttlMs: 30 }
/** Timers may fire a millisecond early, and a life may begin in the middle of a millisecond. */
const toleranceMs = 5
const afterShortMs = 30 + toleranceMs
/** A store that measures a distant clock may correct it at any time. */
const correctionMs = 100
const tenYearsMs = 10 * 365 * 86_400_000
/** Lives that are told apart however long a test takes. */
const hours = (count: number): Life => ({ ttlMs: count * 3_600_000 })

/**
 * Declares tests of everything that the contract of a {@link Store} says and that can be tested without its parts:
 * outages, restarts and several processes are for tests of your own. Takes a few seconds. Some of the values that it
 * writes live forever, so give it a store of its own.
 */
export function describeStoreContract({ describe, test }: TestRunner, options: StoreContractOptions): void {
  const { name, open, keyPrefix = 'test:' } = options
  const newKey = (): string => `${keyPrefix}${randomUUID()}`
  /** Creates a value `a` with a long life, and returns its key. */
  const keyOf = async (store: Store): Promise<string> => {
    const key = newKey()
    assert.equal(await store.create(key, 'a', long), true)
    return key
  }

  const check = (fact: string, run: (store: Store, other: Store) => Promise<void>): void => {
    test(fact, async () => {
      const [store, other] = await open()
      try {
        await run(store, other)
      } finally {
        await Promise.all([store.close(), other.close()])
      }
    })
  }

  /** Asserts that a change of a key by one handle wakes a watcher of another one. */
  const assertWakes = async (watching: Store, writer: Store, key: string, version = 1): Promise<void> => {
    const woken = Promise.withResolvers<void>()
    const unwatch = await watching.watch(key, woken.resolve)
    assert.equal(await writer.compareAndSet(key, version, 'b', long, { wake: true }), true)
    await soon(woken.promise, `a watcher missed the change of version ${version}`)
    unwatch()
  }

  /**
   * Wake-ups reach a handle in the order of the changes: once one that comes last has arrived, so have all before it.
   */
  const fence = async (store: Store, other: Store): Promise<void> => {
    for (const handle of new Set([store, other])) await assertWakes(handle, other, await keyOf(store))
  }

  describe(`${name} keeps the contract of a store:`, () => {
    describe('now', () => {
      check('is epoch milliseconds, whole, on the clock that lives are counted on', async (store) => {
        const key = newKey()
        const before = store.now()
        assert.ok(Number.isSafeInteger(before), `${before} is not a whole number`)
        assert.ok(Math.abs(before - Date.now()) < 86_400_000, `${before} is not the time in epoch milliseconds`)
        await store.create(key, 'a', { ttlMs: 300 })
        while ((await store.get(key)) !== undefined) await sleep(10)
        const livedMs = store.now() - before
        assert.ok(livedMs >= 300 - correctionMs, `a life of 300 ms ended after ${livedMs} ms`)
      })
    })

    describe('get', () => {
      check('finds nothing under a key without a value', async (store) => {
        await assertAbsent(store, newKey())
      })

      check('reads the value and its version', async (store, other) => {
        const key = await keyOf(store)
        await assertHolds(other, key, 'a', 1)
      })

      for (const [kind, value] of [
        ['empty text', ''],
        ['text that looks like a number', '0012'],
        ['text with colons', '1:2:3'],
        ['control characters and NUL', '\0\r\n\t\u007f\0'],
        ['characters beyond ASCII', 'grüße 你好 😀 \u202e\ufeff\u2028'],
        ['64 KiB', 'x'.repeat(65_536)],
        ['64 KiB of four-byte characters', '😀'.repeat(16_384)],
      ] as const) {
        check(`returns exactly ${kind}`, async (store, other) => {
          const key = newKey()
          await store.create(key, value, long)
          await assertHolds(other, key, value, 1)
          const next = `${[...value].slice(1).join('')}!`
          assert.equal(await other.compareAndSet(key, 1, next, long), true)
          assert.equal(await store.take(key), next)
        })
      }

      check('accepts a key of 200 characters with braces', async (store, other) => {
        const key = `${keyPrefix}{${randomUUID()}}:`.padEnd(200, '~')
        assert.equal(await store.create(key, 'a', long), true)
        await assertHolds(other, key, 'a', 1)
      })
    })

    describe('create', () => {
      check('changes nothing and resolves with false if the key has a value', async (store, other) => {
        const key = newKey()
        assert.equal(await store.create(key, 'first', long), true)
        assert.equal(await other.create(key, 'second', 'forever'), false)
        await assertHolds(store, key, 'first', 1)
      })

      check('does not prolong the life of a value that is there', async (store) => {
        const key = newKey()
        await store.create(key, 'first', { ttlMs: 300 })
        assert.equal(await store.create(key, 'second', long), false)
        await sleep(300 + toleranceMs)
        await assertAbsent(store, key)
      })

      check('lets one of 200 concurrent calls win', async (store, other) => {
        const key = newKey()
        const created = await race(200, (i) => (i % 2 ? store : other).create(key, String(i), long))
        await assertHolds(store, key, onlyWinner(created), 1)
      })
    })

    describe('take', () => {
      check('returns the value and removes it', async (store, other) => {
        const key = await keyOf(store)
        assert.equal(await other.take(key), 'a')
        assert.equal(await store.take(key), undefined)
        await assertAbsent(store, key)
        assert.equal(await store.create(key, 'b', long), true)
      })

      check('gives the value to one of 200 concurrent calls', async (store, other) => {
        const key = await keyOf(store)
        const taken = await race(200, (i) => (i % 2 ? store : other).take(key))
        assert.deepEqual(
          taken.filter((value) => value !== undefined),
          ['a'],
        )
      })
    })

    describe('compareAndSet', () => {
      check('replaces the value and adds 1 to the version', async (store, other) => {
        const key = await keyOf(store)
        assert.equal(await other.compareAndSet(key, 1, 'b', long), true)
        assert.equal(await store.compareAndSet(key, 2, 'c', long), true)
        await assertHolds(store, key, 'c', 3)
      })

      check('counts on beyond a single digit', async (store) => {
        const key = await keyOf(store)
        for (let version = 1; version < 120; version++) {
          assert.equal(await store.compareAndSet(key, version, `v${version + 1}`, long), true)
        }
        await assertHolds(store, key, 'v120', 120)
      })

      for (const version of [0, 2, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        check(`changes nothing and resolves with false if version 1 is called ${version}`, async (store) => {
          const key = await keyOf(store)
          assert.equal(await store.compareAndSet(key, version, 'b', short), false)
          await sleep(afterShortMs)
          await assertHolds(store, key, 'a', 1)
        })
      }

      check('changes nothing and resolves with false if the key is absent', async (store) => {
        const key = newKey()
        assert.equal(await store.compareAndSet(key, 1, 'b', long), false)
        assert.equal(await store.compareAndSet(key, 0, 'b', long), false)
        await assertAbsent(store, key)
      })

      check('gives the value a new life, shorter or longer', async (store) => {
        const [ended, shortened, prolonged, kept] = [newKey(), newKey(), newKey(), newKey()]
        await store.create(ended, 'a', 'forever')
        await store.create(shortened, 'a', long)
        await store.create(prolonged, 'a', { ttlMs: 300 })
        await store.create(kept, 'a', { ttlMs: 300 })
        assert.equal(await store.compareAndSet(ended, 1, 'b', short), true)
        assert.equal(await store.compareAndSet(shortened, 1, 'b', short), true)
        assert.equal(await store.compareAndSet(prolonged, 1, 'b', long), true)
        assert.equal(await store.compareAndSet(kept, 1, 'b', 'forever'), true)
        await sleep(300 + toleranceMs)
        await assertAbsent(store, ended)
        await assertAbsent(store, shortened)
        await assertHolds(store, prolonged, 'b', 2)
        await assertHolds(store, kept, 'b', 2)
      })

      check('lets one of 200 concurrent calls with the same version win', async (store, other) => {
        const key = await keyOf(store)
        const set = await race(200, (i) => (i % 2 ? store : other).compareAndSet(key, 1, String(i), long))
        await assertHolds(store, key, onlyWinner(set), 2)
      })

      check('and take exclude each other', async (store, other) => {
        for (let round = 0; round < 50; round++) {
          const key = await keyOf(store)
          const [taken, set] = await Promise.all([store.take(key), other.compareAndSet(key, 1, 'b', long)])
          assert.equal(taken, set ? 'b' : 'a')
          await assertAbsent(store, key)
        }
      })
    })

    describe('an expired value', () => {
      check('is absent for get, take and compareAndSet, and its key is free', async (store) => {
        const [read, taken, set, free] = [newKey(), newKey(), newKey(), newKey()]
        for (const key of [read, taken, set, free]) await store.create(key, 'a', short)
        await sleep(afterShortMs)
        await assertAbsent(store, read)
        assert.equal(await store.take(taken), undefined)
        assert.equal(await store.compareAndSet(set, 1, 'b', long), false)
        await assertAbsent(store, set)
        assert.equal(await store.create(free, 'b', long), true)
        await assertHolds(store, free, 'b', 1)
      })

      check('does not take with it a value with a long life or one that lives forever', async (store) => {
        const [minute, tenYears, forever] = [newKey(), newKey(), newKey()]
        await store.create(newKey(), 'a', short)
        await store.create(minute, 'a', long)
        await store.create(tenYears, 'a', { ttlMs: tenYearsMs })
        await store.create(forever, 'a', 'forever')
        await sleep(afterShortMs)
        for (const key of [minute, tenYears, forever]) await assertHolds(store, key, 'a', 1)
      })
    })

    describe('a life', () => {
      const outOfBounds = [0, -1, -0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, tenYearsMs + 1, '1000', undefined]

      for (const ttlMs of outOfBounds) {
        const shown = Object.is(ttlMs, -0) ? '-0' : typeof ttlMs === 'string' ? JSON.stringify(ttlMs) : String(ttlMs)
        check(`of ${shown} milliseconds is a TypeError and changes nothing`, async (store) => {
          const [key, set] = [newKey(), newKey()]
          const life = { ttlMs } as Life
          await assert.rejects(store.create(key, 'a', life), TypeError)
          await assertAbsent(store, key)
          await store.create(key, 'a', long)
          await assert.rejects(store.compareAndSet(key, 1, 'b', life), TypeError)
          await assertHolds(store, key, 'a', 1)
          await assert.rejects(store.addMember(set, 'm', life), TypeError)
          await assert.rejects(store.addMember(set, 'm', life, 1), TypeError)
          assert.deepEqual(await store.members(set), [])
        })
      }

      for (const life of ['', 'Forever', null, 60_000]) {
        check(`written as ${JSON.stringify(life)} is a TypeError`, async (store) => {
          await assert.rejects(store.create(newKey(), 'a', life as unknown as Life), TypeError)
        })
      }
    })

    describe('a value', () => {
      for (const [kind, value] of [
        ['64 KiB and a byte', 'x'.repeat(65_537)],
        ['64 KiB of four-byte characters and a byte', `${'😀'.repeat(16_384)}x`],
      ] as const) {
        check(`of ${kind} is a RangeError, changes nothing and wakes no watcher`, async (store, other) => {
          const [key, absent] = [await keyOf(store), newKey()]
          let calls = 0
          const unwatch = await other.watch(key, () => calls++)
          await assert.rejects(store.create(absent, value, long), RangeError)
          await assertAbsent(other, absent)
          await assert.rejects(store.compareAndSet(key, 1, value, short, { wake: true }), RangeError)
          await sleep(afterShortMs)
          await assertHolds(other, key, 'a', 1)
          await fence(store, other)
          assert.equal(calls, 0)
          unwatch()
        })
      }
    })

    describe('watch', () => {
      check('calls after a compareAndSet with wake, by any handle', async (store, other) => {
        for (const writer of [store, other]) await assertWakes(store, writer, await keyOf(store))
      })

      check('calls for no compareAndSet without wake, none that fails, and no other change', async (store, other) => {
        const key = newKey()
        let calls = 0
        const unwatch = await store.watch(key, () => calls++)
        await other.create(key, 'a', long)
        await other.compareAndSet(key, 1, 'b', long)
        await other.compareAndSet(key, 2, 'c', long, { wake: false })
        await other.compareAndSet(key, 1, 'd', long, { wake: true })
        await other.take(key)
        await other.compareAndSet(key, 3, 'e', long, { wake: true })
        await fence(store, other)
        assert.equal(calls, 0)
        unwatch()
      })

      check('calls after the change can be read, and not from within the call that made it', async (store) => {
        const key = await keyOf(store)
        const read = Promise.withResolvers<void>()
        let returned = false
        const unwatch = await store.watch(key, () => {
          if (returned) read.resolve(assertHolds(store, key, 'b', 2))
          else read.reject(new Error('the watcher was called from within compareAndSet'))
        })
        const set = store.compareAndSet(key, 1, 'b', long, { wake: true })
        returned = true
        // Together, because the watcher may have been called long before the step is over.
        await Promise.all([set, soon(read.promise, 'the watcher was not called')])
        unwatch()
      })

      check('calls every watcher of the key, also if two are the same function', async (store, other) => {
        const key = await keyOf(store)
        const calls: string[] = []
        const again = (): void => void calls.push('again')
        const unwatches = await Promise.all([
          store.watch(key, again),
          store.watch(key, again),
          other.watch(key, () => void calls.push('other')),
        ])
        await store.compareAndSet(key, 1, 'b', long, { wake: true })
        await fence(store, other)
        assert.deepEqual(calls.sort(), ['again', 'again', 'other'])
        for (const unwatch of unwatches) unwatch()
      })

      check('is ended by its own function, which may be called twice and ends no other watch', async (store, other) => {
        const key = await keyOf(store)
        const calls: string[] = []
        const first = await store.watch(key, () => void calls.push('first'))
        const second = await store.watch(key, () => void calls.push('second'))
        first()
        first()
        await store.compareAndSet(key, 1, 'b', long, { wake: true })
        await fence(store, other)
        assert.deepEqual(calls, ['second'])
        second()
        const third = await store.watch(key, () => void calls.push('third'))
        first()
        second()
        await store.compareAndSet(key, 2, 'c', long, { wake: true })
        await fence(store, other)
        assert.deepEqual(calls, ['second', 'third'])
        third()
        await store.compareAndSet(key, 3, 'd', long, { wake: true })
        await fence(store, other)
        assert.deepEqual(calls, ['second', 'third'])
      })

      check('wakes, of 1,000 watchers of different keys, only those whose key changed', async (store, other) => {
        const keys = Array.from({ length: 1000 }, newKey)
        const called = new Set<string>()
        const unwatches = await Promise.all(keys.map((key) => store.watch(key, () => called.add(key))))
        await Promise.all(keys.map((key) => store.create(key, 'a', long)))
        const changed = keys.filter((_, i) => i % 2 === 0)
        await Promise.all(changed.map((key) => other.compareAndSet(key, 1, 'b', long, { wake: true })))
        await fence(store, other)
        assert.deepEqual([...called].sort(), changed.sort())
        for (const unwatch of unwatches) unwatch()
      })

      check('misses nothing once it has resolved, whatever watches begin and end around it', async (store, other) => {
        const key = await keyOf(store)
        const around: Promise<() => void>[] = []
        for (let version = 1; version <= 200; version++) {
          // Others come and go, sometimes leaving none but this one, sometimes in the middle of its beginning.
          if (version % 3 !== 0) around.push(store.watch(key, () => undefined))
          if (version % 2 === 0) for (const watch of around.splice(0)) void watch.then((unwatch) => unwatch())
          await assertWakes(store, other, key, version)
        }
        for (const watch of around) (await watch)()
      })

      check('lets a reader that reads at every call see the last of many changes', async (store, other) => {
        const key = await keyOf(store)
        const last = Promise.withResolvers<void>()
        const unwatch = await store.watch(key, () => {
          store.get(key).then((entry) => entry?.version === 301 && last.resolve(), last.reject)
        })
        for (let version = 1; version <= 300; version++) {
          await other.compareAndSet(key, version, 'b', long, { wake: true })
        }
        await soon(last.promise, 'the watcher was not called after the last change')
        unwatch()
      })
    })

    describe('a set', () => {
      check('lists its members, each once, and none if it has none', async (store, other) => {
        const set = newKey()
        assert.deepEqual(await store.members(set), [])
        await store.addMember(set, 'b', long)
        await other.addMember(set, 'a', 'forever')
        await other.addMember(set, 'b', 'forever')
        assert.deepEqual((await store.members(set)).sort(), ['a', 'b'])
      })

      check('loses a member that is removed, and no other', async (store, other) => {
        const set = newKey()
        await store.addMember(set, 'a', long)
        await store.addMember(set, 'b', 'forever')
        await other.removeMember(set, 'b')
        await other.removeMember(set, 'never there')
        assert.deepEqual(await store.members(set), ['a'])
        await other.removeMember(set, 'a')
        assert.deepEqual(await store.members(set), [])
      })

      check('gives each member a life of its own, which begins anew when it is added again', async (store) => {
        const set = newKey()
        await store.addMember(set, 'short', short)
        await store.addMember(set, 'prolonged', short)
        await store.addMember(set, 'prolonged', long)
        await store.addMember(set, 'shortened', 'forever')
        await store.addMember(set, 'shortened', short)
        await store.addMember(set, 'forever', 'forever')
        await sleep(afterShortMs)
        assert.deepEqual((await store.members(set)).sort(), ['forever', 'prolonged'])
        await store.removeMember(set, 'forever')
        assert.deepEqual(await store.members(set), ['prolonged'])
      })

      check('takes a member back whose life was over', async (store) => {
        const set = newKey()
        await store.addMember(set, 'a', short)
        await sleep(afterShortMs)
        await store.addMember(set, 'a', long)
        assert.deepEqual(await store.members(set), ['a'])
      })

      check('names and keeps, soonest first, those beyond the most that expire soonest', async (store, other) => {
        const set = newKey()
        assert.deepEqual(await store.addMember(set, 'second', hours(2), 3), [])
        assert.deepEqual(await other.addMember(set, 'forever', 'forever', 3), [])
        assert.deepEqual(await store.addMember(set, 'third', hours(3), 3), [])
        assert.deepEqual(await other.addMember(set, 'first', hours(1), 4), [])
        assert.deepEqual(await store.addMember(set, 'fourth', hours(4), 3), ['first', 'second'])
        // Added again, it expires later than another.
        assert.deepEqual(await other.addMember(set, 'first', hours(5), 3), ['second', 'third'])
        assert.deepEqual((await store.members(set)).sort(), ['first', 'forever', 'fourth', 'second', 'third'])
        await store.removeMember(set, 'second')
        assert.deepEqual(await store.addMember(set, 'fifth', hours(6), 4), ['third'])
      })

      check('names no more than ten members, and none without a most', async (store) => {
        const set = newKey()
        for (let i = 0; i < 15; i++) assert.deepEqual(await store.addMember(set, `m${i}`, hours(1 + i)), [])
        const soonest = Array.from({ length: 10 }, (_, i) => `m${i}`)
        assert.deepEqual(await store.addMember(set, 'm15', hours(16), 8), soonest.slice(0, 8))
        for (let i = 16; i < 40; i++) await store.addMember(set, `m${i}`, hours(1 + i))
        assert.deepEqual(await store.addMember(set, 'm40', hours(50), 21), soonest)
        assert.equal((await store.members(set)).length, 41)
      })

      check('never names or drops the member that is added, however soon it expires', async (store) => {
        const set = newKey()
        await store.addMember(set, 'later', hours(2), 1)
        assert.deepEqual(await store.addMember(set, 'soon', hours(1), 1), ['later'])
        await store.addMember(set, 'last', hours(3))
        assert.deepEqual(await store.addMember(set, 'soon', hours(1), 1), ['later', 'last'])
        assert.deepEqual((await store.members(set)).sort(), ['last', 'soon'])
      })

      check('counts no expired member as one beyond the most', async (store) => {
        const set = newKey()
        await store.addMember(set, 'over', short, 1)
        await sleep(afterShortMs)
        assert.deepEqual(await store.addMember(set, 'a', long, 1), [])
      })

      check('drops beyond twice the most those that expire soonest, and no other', async (store, other) => {
        const set = newKey()
        for (let i = 0; i < 30; i++) await store.addMember(set, `m${i}`, hours(1 + ((i * 7) % 30)))
        const soonest = Array.from({ length: 30 }, (_, rank) => `m${(rank * 13) % 30}`)
        assert.deepEqual(await other.addMember(set, 'added', hours(40), 8), soonest.slice(0, 10))
        assert.deepEqual((await store.members(set)).sort(), [...soonest.slice(15), 'added'].sort())
      })

      check('counts a set of hundreds exactly, whatever is added, removed or expired', async (store, other) => {
        const set = newKey()
        for (let i = 0; i < 150; i++) assert.deepEqual(await store.addMember(set, `m${i}`, hours(1 + i), 150), [])
        await other.addMember(set, 'without a most', hours(200))
        assert.deepEqual(await store.addMember(set, 'one', hours(201), 150), ['m0', 'm1'])
        for (const member of ['m0', 'm1', 'm2', 'm0']) await other.removeMember(set, member)
        assert.deepEqual(await store.addMember(set, 'two', hours(202), 150), [])
        assert.deepEqual(await store.addMember(set, 'two', hours(203), 150), [])
        assert.deepEqual(await other.addMember(set, 'soon', short, 151), [])
        await sleep(afterShortMs)
        assert.deepEqual(await store.addMember(set, 'three', hours(204), 151), [])
        assert.deepEqual(await store.addMember(set, 'soon', hours(300), 151), ['m3'])
        await store.addMember(set, 'm4', short)
        await sleep(afterShortMs)
        await store.removeMember(set, 'm4')
        assert.deepEqual(await other.addMember(set, 'four', hours(205), 151), ['m3'])
      })

      check('has no more than twice the most of 200 members that are added at once', async (store, other) => {
        const set = newKey()
        const named = await race(200, (i) => (i % 2 ? store : other).addMember(set, `m${i}`, hours(1 + i), 5))
        assert.equal((await store.members(set)).length, 10)
        assert.ok(named.every((each) => each.length <= 10))
      })

      check('keeps members apart from values of the same name and from other sets', async (store) => {
        const [set, another] = [newKey(), newKey()]
        await store.addMember(set, another, long)
        assert.deepEqual(await store.members(another), [])
        await assertAbsent(store, another)
      })

      check('loses none of 200 members that are added at once', async (store, other) => {
        const set = newKey()
        await race(200, (i) => (i % 2 ? store : other).addMember(set, `m${i}`, long))
        assert.equal(new Set(await store.members(set)).size, 200)
      })
    })

    check('scan, if it has it, finds the values whose keys begin with a text, and no other', async (store, other) => {
      if (store.scan === undefined) return
      const beginning = newKey()
      const keys = [`${beginning}*`, ...Array.from({ length: 450 }, (_, i) => `${beginning}*:{${i}}`)]
      await Promise.all(
        keys.map((key, i) => (i % 2 ? store : other).create(key, `value ${key}`, i % 3 ? long : 'forever')),
      )
      await store.create(`${beginning}?`, 'another', long)
      await store.create(`${beginning}*:expired`, 'over', short)
      await store.addMember(`${beginning}*:set`, 'm', long)
      await sleep(afterShortMs + correctionMs)
      const found = new Map<string, ScannedValue>()
      for await (const each of store.scan(`${beginning}*`)) found.set(each.key, each)
      assert.deepEqual([...found.keys()].sort(), [...keys].sort())
      for (const [i, key] of keys.entries()) {
        const { value, life } = found.get(key) as ScannedValue
        assert.equal(value, `value ${key}`)
        if (life === 'forever' || i % 3 === 0) assert.equal(life, i % 3 ? long : 'forever')
        else assert.ok(life.ttlMs > long.ttlMs / 2 && life.ttlMs <= long.ttlMs, `${key} lives ${life.ttlMs} ms`)
      }
    })

    check('it has a description and says whether it is shared', async (store) => {
      assert.match(store.description, /\S/)
      assert.equal(typeof store.shared, 'boolean')
    })

    check('ping resolves', async (store) => {
      await store.ping()
    })

    describe('close', () => {
      check('may be called twice; later calls reject, and watches are over', async (closed, writer) => {
        const key = await keyOf(writer)
        let calls = 0
        const unwatch = await closed.watch(key, () => calls++)
        await closed.close()
        await closed.close()
        if (writer !== closed) {
          await writer.compareAndSet(key, 1, 'b', long, { wake: true })
          await fence(writer, writer)
        }
        assert.equal(calls, 0)
        unwatch()
        await assertRefused(closed.get(key), 'STORE_UNAVAILABLE')
        await assertRefused(closed.create(key, 'a', long), 'STORE_UNAVAILABLE')
        await assertRefused(closed.take(key), 'STORE_UNAVAILABLE')
        await assertRefused(closed.compareAndSet(key, 1, 'a', long), 'STORE_UNAVAILABLE')
        await assertRefused(
          closed.watch(key, () => undefined),
          'STORE_UNAVAILABLE',
        )
        await assertRefused(closed.addMember(key, 'a', long), 'STORE_UNAVAILABLE')
        await assertRefused(closed.removeMember(key, 'a'), 'STORE_UNAVAILABLE')
        await assertRefused(closed.members(key), 'STORE_UNAVAILABLE')
        await assertRefused(closed.ping(), 'STORE_UNAVAILABLE')
      })
    })
  })
}

async function assertHolds(store: Store, key: string, value: string, version: number): Promise<void> {
  const entry = await store.get(key)
  // Copied, because a database may return rows without a prototype.
  assert.deepEqual(entry && { ...entry }, { value, version })
}

async function assertAbsent(store: Store, key: string): Promise<void> {
  assert.equal(await store.get(key), undefined)
}

/** The number, as text, of the one call that won. */
function onlyWinner(won: readonly boolean[]): string {
  const winners = won.flatMap((each, i) => (each ? [String(i)] : []))
  assert.equal(winners.length, 1, `${winners.length} calls won instead of one`)
  return winners[0] as string
}
