import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import type { Life, Store } from '../../src/store/store.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { healed } from './healed.ts'
import { startChild } from './sqlite-child.ts'
import { prepareRace, prizes, raceFor } from './sqlite-race.ts'

const folder = folderOfFile()

const long: Life = { ttlMs: 60_000 }
const unavailable = { status: 'rejected', reason: expect.objectContaining({ reason: 'STORE_UNAVAILABLE' }) }
const resolved = (value: unknown) => ({ status: 'fulfilled', value })

let files = 0
const newFile = (): string => join(folder, `store-${++files}.db`)

async function open(file: string): Promise<Store> {
  return closedLater(await openSqliteStore(file))
}

function closedLater(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}

/** Another connection to a file, as another process would have it. It does not wait for locks. */
function connect(file: string): DatabaseSync {
  const database = new DatabaseSync(file)
  onTestFinished(() => database.close())
  return database
}

function keysIn(database: DatabaseSync): unknown[] {
  return database
    .prepare('SELECT key FROM entries ORDER BY key')
    .all()
    .map(({ key }) => key)
}

/** Numbers of steps that are done in each turn of the event loop, until all are. */
async function perTurn(steps: readonly Promise<unknown>[]): Promise<number[]> {
  const counts: number[] = []
  let done = 0
  for (const step of steps) void step.then(() => done++)
  for (let before = 0; done < steps.length; before = done) {
    before = done
    await nextTurn()
    counts.push(done - before)
  }
  return counts
}

describe.each([
  ['in memory', () => openSqliteStore(':memory:')],
  ['in a file', () => openSqliteStore(newFile())],
])('steps of SQLite %s that are begun in one turn', (_, opened) => {
  it('take effect in the order in which they were begun, across all keys', async () => {
    const store = closedLater(await opened())
    expect(
      await Promise.all([
        store.get('a'),
        store.create('a', 'one', long),
        store.get('a'),
        store.addMember('set', 'm', long),
        store.compareAndSet('a', 1, 'two', long),
        store.members('set'),
        store.create('b', 'three', long),
        store.removeMember('set', 'm'),
        store.take('a'),
        store.create('a', 'four', long),
        store.members('set'),
        store.addMember('set', 'n', long, 1),
        store.addMember('set', 'o', long, 1),
        store.get('a'),
        store.take('b'),
        store.get('b'),
      ]),
    ).toEqual([
      undefined,
      true,
      { value: 'one', version: 1 },
      [],
      true,
      ['m'],
      true,
      undefined,
      'two',
      true,
      [],
      [],
      ['n'],
      { value: 'four', version: 1 },
      'three',
      undefined,
    ])
  })

  it('wait for its end, and then settle in far fewer turns than there are steps', async () => {
    const store = closedLater(await opened())
    // The turn in which the store was opened goes on with whatever is added.
    await new Promise((resolve) => setImmediate(resolve))
    const steps = Array.from({ length: 25 }, (_, i) => [
      store.create(`k${i}`, 'a', long),
      store.get(`k${i}`),
      store.addMember('set', `m${i}`, long, 100),
      store.take(`k${i}`),
    ]).flat()
    let done = 0
    for (const step of steps) void step.then(() => done++)
    await new Promise<void>((resolve) => process.nextTick(resolve))
    expect(done).toBe(0)
    expect((await perTurn(steps)).length).toBeLessThan(50)
  })

  it('wake the watchers when their change can be read', async () => {
    const store = closedLater(await opened())
    await store.create('a', 'one', long)
    const woken = Promise.withResolvers<unknown>()
    await store.watch('a', () => woken.resolve(store.get('a')))
    await Promise.all([store.compareAndSet('a', 1, 'two', long, { wake: true }), store.create('b', 'one', long)])
    expect(await woken.promise).toEqual({ value: 'two', version: 2 })
  })

  it('are done by a close that comes after them, and no later ones', async () => {
    const store = await opened()
    const steps = Array.from({ length: 300 }, (_, i) => store.create(`k${i}`, 'a', long))
    const found = store.get('k299')
    const closed = store.close()
    const late = store.get('k0')
    const [first, ...rest] = await Promise.allSettled([late, closed, found, ...steps])
    expect(first).toEqual(unavailable)
    expect(rest).toEqual([
      resolved(undefined),
      resolved({ value: 'a', version: 1 }),
      ...steps.map(() => resolved(true)),
    ])
  })

  it('leave turns to everything else, even 50,000 of them', async () => {
    const store = closedLater(await opened())
    const steps = Array.from({ length: 50_000 }, (_, i) => (i % 4 ? store.get('a') : store.create(`k${i}`, 'a', long)))
    const timers: number[] = []
    let done = 0
    const timer = setInterval(() => timers.push(done), 1)
    for (const step of steps) void step.then(() => done++)
    const counts = await perTurn(steps)
    clearInterval(timer)
    expect(Math.max(...counts)).toBeLessThanOrEqual(100)
    expect(timers.filter((count) => count > 0 && count < 50_000).length).toBeGreaterThan(10)
  }, 20_000)

  it('leave turns to everything else if each takes long', async () => {
    const store = closedLater(await opened())
    await Promise.all(Array.from({ length: 5000 }, (_, i) => store.addMember('set', `member ${i}`, long)))
    const counts = await perTurn(Array.from({ length: 60 }, () => store.members('set')))
    expect(Math.max(...counts)).toBeLessThan(20)
  }, 20_000)
})

describe('steps of a SQLite file that are begun in one turn', () => {
  it('fail alone: neither what comes before nor what comes after fails with one', async () => {
    const store = await open(newFile())
    const settled = await Promise.allSettled([
      store.get('a'),
      store.create('a', 'one', long),
      store.create(Symbol() as unknown as string, 'one', long),
      store.addMember('set', 'whole', long, 5),
      store.addMember('set', 'half', long, Number.NaN),
      store.compareAndSet('a', 1, 'two', long),
      store.members(Symbol() as unknown as string),
      store.take('b'),
      store.get('a'),
      store.members('set'),
    ])
    expect(settled).toEqual([
      resolved(undefined),
      resolved(true),
      unavailable,
      resolved([]),
      unavailable,
      resolved(true),
      unavailable,
      resolved(undefined),
      resolved({ value: 'two', version: 2 }),
      resolved(['whole']),
    ])
  })

  it('that is alone and fails in its middle changes nothing', async () => {
    const store = await open(newFile())
    await expect(store.addMember('set', 'half', long, Number.NaN)).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
    })
    expect(await store.members('set')).toEqual([])
  })
})

describe('the writes of a turn in a file', () => {
  it('are one transaction', async () => {
    const file = newFile()
    const store = await open(file)
    const walSize = () => statSync(`${file}-wal`).size
    const before = walSize()
    await Promise.all(Array.from({ length: 100 }, (_, i) => store.create(`k${i}`, 'a', long)))
    // Each transaction writes three pages or more: those of the table and of its two indexes.
    expect(walSize() - before).toBeLessThan(150 * 4096)
  })

  it('all fail if their commit fails, and wake no watcher; reads are answered by what is stored', async () => {
    const file = newFile()
    const store = await open(file)
    await store.create('old', 'one', long)
    await store.create('taken', 'one', long)
    const database = connect(file)
    // Seen at the commit only, as a disk that is full is.
    database.exec(`
      CREATE TABLE parents (id INTEGER PRIMARY KEY);
      CREATE TABLE children (parent REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);
      CREATE TRIGGER orphan AFTER INSERT ON entries WHEN new.key = 'poison' BEGIN INSERT INTO children VALUES (1); END;
    `)
    let wakes = 0
    await store.watch('old', () => wakes++)
    const settled = await Promise.allSettled([
      store.create('a', 'one', long),
      store.compareAndSet('old', 1, 'two', long, { wake: true }),
      store.get('old'),
      store.take('taken'),
      store.addMember('set', 'm', long, 1),
      store.create('poison', 'one', long),
      store.get('a'),
      store.members('set'),
    ])
    const read = resolved({ value: 'one', version: 1 })
    expect(settled).toEqual([
      unavailable,
      unavailable,
      read,
      unavailable,
      unavailable,
      unavailable,
      resolved(undefined),
      resolved([]),
    ])
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect(wakes).toBe(0)
    expect(keysIn(database)).toEqual(['old', 'taken'])
    expect(await store.create('a', 'one', long)).toBe(true)
    expect(await store.compareAndSet('old', 1, 'two', long)).toBe(true)
  })

  it('wait for the lock of another process together, and leave reads unharmed', async () => {
    const file = newFile()
    const store = await open(file)
    await store.create('old', 'one', long)
    const locker = connect(file)
    locker.exec('BEGIN IMMEDIATE')
    const writes = Array.from({ length: 1000 }, (_, i) => store.create(`k${i}`, 'a', long))
    const reads = [store.get('old'), store.get('k0')]
    const settled = await Promise.allSettled(writes)
    expect(settled).toEqual(writes.map(() => unavailable))
    expect(await Promise.all(reads)).toEqual([{ value: 'one', version: 1 }, undefined])
    locker.exec('ROLLBACK')
    expect(await store.create('k0', 'a', long)).toBe(true)
  }, 5000)

  it('go on when the lock of another process is gone within a second, and reads do not wait for it', async () => {
    const file = newFile()
    const store = await open(file)
    const unlock = await lockByChild(file)
    const writes = Promise.all(Array.from({ length: 300 }, (_, i) => store.create(`k${i}`, 'a', long)))
    expect(await firstOf(writes, store.get('k0'))).toBe('the second')
    await unlock()
    expect(new Set(await writes)).toEqual(new Set([true]))
  })

  it('fail at once after a second of waiting, until the lock of another process is gone', async () => {
    const file = newFile()
    const store = await open(file)
    await store.create('old', 'one', long)
    const unlock = await lockByChild(file)
    const writes = Promise.allSettled(Array.from({ length: 20 }, (_, i) => store.create(`k${i}`, 'a', long)))
    // The event loop runs, and reads are answered, while they wait.
    for (let turn = 0; turn < 20; turn++) {
      const waited = new Promise((resolve) => setTimeout(resolve, 5)).then(() => store.get('old'))
      expect(await firstOf(writes, waited)).toBe('the second')
    }
    expect(await writes).toEqual(Array.from({ length: 20 }, () => unavailable))
    for (let count = 0; count < 20; count++) {
      const write = store.take('old').catch((error: unknown) => error)
      expect(await firstOf(write, new Promise((resolve) => setTimeout(resolve, 500)))).toBe('the first')
      expect(await write).toMatchObject({ reason: 'STORE_UNAVAILABLE' })
      await expect(store.ping()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
      expect(await store.get('old')).toEqual({ value: 'one', version: 1 })
    }
    await unlock()
    expect(await healed(store, () => store.take('old'))).toBe('one')
    await store.ping()
  })

  it('that another process keeps waiting fail when the store is closed', async () => {
    const file = newFile()
    const store = await open(file)
    const unlock = await lockByChild(file)
    const write = Promise.allSettled([store.create('a', 'one', long)])
    expect(await firstOf(write, store.get('a'))).toBe('the second')
    await store.close()
    expect(await write).toEqual([unavailable])
    await unlock()
  })

  it('lock the file for their slice only', async () => {
    const file = newFile()
    const store = await open(file)
    const other = connect(file)
    const steps = Array.from({ length: 2000 }, (_, i) => store.create(`k${i}`, 'a', long))
    let done = false
    const all = Promise.all(steps).then(() => {
      done = true
    })
    let writes = 0
    for (; !done; writes++) {
      other.exec('BEGIN IMMEDIATE; COMMIT')
      await nextTurn()
    }
    await all
    expect(writes).toBeGreaterThanOrEqual(20)
  })

  it('are there after their process was killed as soon as one of them had resolved', async () => {
    for (let round = 0; round < 4; round++) {
      await Promise.all(
        Array.from({ length: 4 }, async (_, i) => {
          const file = newFile()
          const child = startChild('write-and-die', file, String(1 + round * 40 + i))
          const [, signal] = await once(child, 'exit')
          expect(signal).toBe('SIGKILL')
          const [said] = readFileSync(`${file}.said`, 'utf8').split('\n')
          const database = connect(file)
          expect(keysIn(database)).toContain(said)
        }),
      )
    }
  }, 60_000)

  it('of two processes that race for the same values win each of them once', async () => {
    const count = 1000
    const all = Array.from({ length: count }, (_, i) => prizes.map((prize) => `${prize}:${i}`))
      .flat()
      .sort()
    // On a busy machine, one of them may come too late to win anything: then they have not raced.
    let bothHaveWon = false
    for (let race = 0; race < 10 && !bothHaveWon; race++) {
      const [mine, theirs] = await raceWithChild(count)
      expect([...mine, ...theirs].sort()).toEqual(all)
      bothHaveWon = mine.length > 0 && theirs.length > 0
    }
    expect(bothHaveWon).toBe(true)
  }, 60_000)
})

/** Lets another process lock a file. The returned function ends that. */
async function lockByChild(file: string): Promise<() => Promise<void>> {
  const child = startChild('lock', file)
  onTestFinished(() => void child.kill())
  expect(await child.nextLine()).toBe('locked')
  return async () => {
    child.stdin.write('go\n')
    expect(await child.nextLine()).toBe('free')
  }
}

/** Which of two promises settles first. */
function firstOf(first: Promise<unknown>, second: Promise<unknown>): Promise<string> {
  return Promise.race([first.then(() => 'the first'), second.then(() => 'the second')])
}

/** What this process and another one won of the same file. */
async function raceWithChild(count: number): Promise<readonly [readonly string[], readonly string[]]> {
  const file = newFile()
  const store = await open(file)
  await prepareRace(store, count)
  const child = startChild('race', file, String(count))
  await child.nextLine()
  child.stdin.write('go\n')
  await child.nextLine()
  const mine = await raceFor(store, count)
  return [mine, JSON.parse(await child.nextLine())]
}
