import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Sleep, Turns } from '../../../src/base/timing/turns.ts'

/** Keeps the processor busy. */
function work(ms: number): void {
  const endsAt = performance.now() + ms
  while (performance.now() < endsAt);
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits until so many tasks have run. Returns the most that ran between two turns of the event loop. */
async function mostAtOnce(ran: () => number, all: number): Promise<number> {
  let most = 0
  while (ran() < all) {
    const before = ran()
    await nextTurn()
    most = Math.max(most, ran() - before)
  }
  return most
}

test('tasks run in order, and none within the turn in which it was added', async () => {
  const turns = new Turns()
  const ran: number[] = []
  for (let i = 0; i < 1000; i++) turns.add(() => ran.push(i))
  await Promise.resolve()
  await new Promise(process.nextTick)
  expect(ran).toEqual([])
  await mostAtOnce(() => ran.length, 1000)
  expect(ran).toEqual(Array.from({ length: 1000 }, (_, i) => i))
})

test('slow tasks give the event loop back about every 5 ms', async () => {
  const turns = new Turns()
  let ran = 0
  for (let i = 0; i < 100; i++) {
    turns.add(() => {
      work(2)
      ran++
    })
  }
  // The third task ends after 6 ms. On a busy machine it is fewer.
  expect(await mostAtOnce(() => ran, 100)).toBeLessThanOrEqual(3)
})

test('what a task sets off counts as its time: promise reactions, however many follow each other', async () => {
  const turns = new Turns()
  let ran = 0
  for (let i = 0; i < 100; i++) {
    turns.add(async () => {
      for (let step = 0; step < 10; step++) await undefined
      work(2)
      ran++
    })
  }
  expect(await mostAtOnce(() => ran, 100)).toBeLessThanOrEqual(3)
})

test('quick tasks give the event loop back after a hundred', async () => {
  const turns = new Turns()
  let ran = 0
  for (let i = 0; i < 10_000; i++) turns.add(() => ran++)
  const most = await mostAtOnce(() => ran, 10_000)
  expect(most).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(100)
})

test('a socket, a timer and a tick get their turn while tasks wait', async () => {
  const turns = new Turns()
  let ran = 0
  for (let i = 0; i < 200; i++) {
    turns.add(() => {
      work(1)
      ran++
    })
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(ran).toBeLessThan(200)
  await mostAtOnce(() => ran, 200)
})

test('a task that is due already is not added again, and one that runs can add itself', async () => {
  const turns = new Turns()
  let ran = 0
  const task = (): void => {
    ran++
    if (ran < 3) turns.add(task)
  }
  turns.add(task)
  turns.add(task)
  await mostAtOnce(() => ran, 3)
  for (let i = 0; i < 5; i++) await nextTurn()
  expect(ran).toBe(3)
  turns.add(task)
  await mostAtOnce(() => ran, 4)
})

test('a deleted task does not run, even if a task of the same slice deletes it', async () => {
  const turns = new Turns()
  const ran: string[] = []
  const last = (): void => void ran.push('last')
  turns.add(() => {
    ran.push('first')
    turns.delete(last)
  })
  turns.add(last)
  turns.add(() => ran.push('other'))
  await mostAtOnce(() => ran.length, 2)
  for (let i = 0; i < 5; i++) await nextTurn()
  expect(ran).toEqual(['first', 'other'])
})

test('however items are added and deleted, those that are left run once and in order', async () => {
  const step = fc.oneof(
    fc.record({ type: fc.constant('add' as const), key: fc.nat(20) }),
    fc.record({ type: fc.constant('delete' as const), key: fc.nat(20) }),
    fc.record({ type: fc.constant('turn' as const) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const turns = new Turns()
      const ran: number[] = []
      const tasks = Array.from({ length: 21 }, (_, key) => () => void ran.push(key))
      const expected: number[] = []
      let due: number[] = []
      for (const next of steps) {
        if (next.type === 'turn') {
          // All that is due fits into one slice, which ends within two turns.
          expected.push(...due)
          due = []
          await nextTurn()
          await nextTurn()
        } else if (next.type === 'delete') {
          turns.delete(tasks[next.key]!)
          due = due.filter((key) => key !== next.key)
        } else {
          turns.add(tasks[next.key]!)
          if (!due.includes(next.key)) due.push(next.key)
        }
      }
      expected.push(...due)
      for (let i = 0; i < 3; i++) await nextTurn()
      expect(ran).toEqual(expected)
    }),
  )
})

test('a wait lasts its time, or until it is ended', async () => {
  const startedAt = performance.now()
  const [whole, ended] = [new Sleep(), new Sleep()]
  ended.end()
  const ends: string[] = []
  const waits = [whole.atMost(20.5).then(() => ends.push('whole')), ended.atMost(60_000).then(() => ends.push('ended'))]
  ended.end()
  ended.end()
  await Promise.all(waits)
  expect(ends).toEqual(['ended', 'whole'])
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(19)
})

test('ten thousand waits that are over at once give the event loop back between slices', async () => {
  let over = 0
  for (let i = 0; i < 10_000; i++) void new Sleep().atMost(20).then(() => over++)
  while (over === 0) await nextTurn()
  expect(await mostAtOnce(() => over, 10_000)).toBeLessThanOrEqual(100)
})
