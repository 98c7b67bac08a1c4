import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { Batches } from '../../../src/store/postgres/batches.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Batches whose statements wait until they are let go; what each then sends, if it still begins. */
function heldBatches() {
  const sent: unknown[][] = []
  const held: (() => void)[] = []
  const batches = new Batches<{ key: string }>({
    run: async (columns, isOver) => {
      await new Promise<void>((resolve) => held.push(resolve))
      if (isOver()) return []
      const [keys = []] = columns()
      sent.push(keys)
      return keys.map((key) => ({ key: String(key) }))
    },
    failureOf: (cause) => cause as Error,
  })
  return { batches, sent, held }
}

test('a step that was reported as failed is not in its statement, should that begin later', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { batches, sent, held } = heldBatches()
  const first: Promise<unknown>[] = []
  for (const key of ['a', 'b', 'c', 'd']) {
    first.push(batches.do([key]))
    await turn()
  }
  // With four statements under way, further steps wait and go out together.
  const early = batches.do(['early'])
  const failed = expect(early).rejects.toThrow('no answer within 2500 ms')
  await vi.advanceTimersByTimeAsync(1500)
  const late = batches.do(['late'])
  held[0]?.()
  await expect(first[0]).resolves.toEqual({ key: 'a' })
  await vi.waitUntil(() => held.length === 5)
  const others = Promise.allSettled(first)
  await vi.advanceTimersByTimeAsync(1200)
  await failed
  held[4]?.()
  await expect(late).resolves.toEqual({ key: 'late' })
  for (const letGo of held) letGo()
  await others
  expect(sent).toEqual([['a'], ['late']])
})

test('a statement whose steps were all reported as failed does not begin', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { batches, sent, held } = heldBatches()
  const failed = expect(batches.do(['only'])).rejects.toThrow('no answer within 2500 ms')
  await turn()
  await vi.advanceTimersByTimeAsync(2600)
  await failed
  held[0]?.()
  await turn()
  expect(sent).toEqual([])
})
