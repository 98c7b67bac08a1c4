import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { Batches } from '../../../src/store/postgres/batches.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Batches whose statements wait until they are let go; what each then sends. */
function heldBatches() {
  const sent: unknown[][] = []
  const held: (() => void)[] = []
  const signals: AbortSignal[] = []
  const batches = new Batches<{ key: string }>({
    run: async (columns, isOver) => {
      signals.push(isOver)
      await new Promise<void>((resolve) => held.push(resolve))
      const [keys = []] = columns()
      sent.push(keys)
      return keys.map((key) => ({ key: String(key) }))
    },
    mostAtOnce: 1,
  })
  return { batches, sent, held, signals }
}

test('a step that was reported as failed is not in its statement, should that begin later', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { batches, sent, held } = heldBatches()
  const first = batches.do(['first'])
  await turn()
  const early = batches.do(['early'])
  const failed = expect(early).rejects.toThrow('no answer within 2500 ms')
  await vi.advanceTimersByTimeAsync(1500)
  const late = batches.do(['late'])
  held[0]?.()
  await expect(first).resolves.toEqual({ key: 'first' })
  await vi.waitUntil(() => held.length === 2)
  await vi.advanceTimersByTimeAsync(1200)
  await failed
  held[1]?.()
  await expect(late).resolves.toEqual({ key: 'late' })
  expect(sent).toEqual([['first'], ['late']])
})

test('a statement whose steps were all reported as failed is given up', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { batches, signals } = heldBatches()
  const failed = expect(batches.do(['only'])).rejects.toThrow('no answer within 2500 ms')
  await turn()
  await vi.advanceTimersByTimeAsync(2600)
  await failed
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})
