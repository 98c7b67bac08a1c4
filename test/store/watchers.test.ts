import { expect, test } from 'vitest'
import { Watchers } from '../../src/store/watchers.ts'

/** Lets what is due happen. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('calls those who watch the key, in a later turn, and once for several wake-ups', async () => {
  const watchers = new Watchers()
  const calls: string[] = []
  const onWake = (): void => void calls.push('both')
  watchers.add('a', () => calls.push('a'))
  watchers.add('b', () => calls.push('b'))
  watchers.add('a', onWake)
  watchers.add('b', onWake)
  watchers.wake('a')
  watchers.wake('a')
  watchers.wake('nobody watches')
  await Promise.resolve()
  expect(calls).toEqual([])
  await settle()
  expect(calls).toEqual(['a', 'both'])
  watchers.wake('a')
  watchers.wake('b')
  await settle()
  expect(calls).toEqual(['a', 'both', 'a', 'both', 'b', 'both'])
})

test('one that was removed is not called, even if its call was due', async () => {
  const watchers = new Watchers()
  const calls: string[] = []
  const remove = watchers.add('a', () => calls.push('removed'))
  watchers.add('a', () => calls.push('stays'))
  watchers.wake('a')
  remove()
  remove()
  await settle()
  expect(calls).toEqual(['stays'])
})

test('once all are removed, none is called and no key is kept', async () => {
  const watchers = new Watchers()
  const calls: string[] = []
  const remove = watchers.add('a', () => calls.push('a'))
  watchers.add('b', () => calls.push('b'))
  watchers.wake('a')
  watchers.wake('b')
  watchers.clear()
  await settle()
  expect(calls).toEqual([])
  expect([watchers.has('a'), watchers.has('b')]).toEqual([false, false])
  watchers.add('a', () => calls.push('new'))
  remove()
  expect(watchers.has('a')).toBe(true)
})
