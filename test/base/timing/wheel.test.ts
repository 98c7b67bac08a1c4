import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { TimerWheel } from '../../../src/base/timing/turns.ts'

const tickMs = 100
const stepMs = 10

// A new context has what V8 exposes from now on.
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Lets the tasks that are due run. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('a wheel on a clock that only the test moves', () => {
  const begin = (): void => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  afterEach(() => void vi.useRealTimers())

  async function advance(ms: number): Promise<void> {
    vi.advanceTimersByTime(ms)
    await settle()
  }

  test('runs a task at the first tick that is not too early', async () => {
    begin()
    const wheel = new TimerWheel()
    await advance(30)
    const ran: string[] = []
    for (const ms of [0, 70, 71, 170]) wheel.set(ms, () => ran.push(`${ms}`))
    await advance(69)
    expect(ran).toEqual([])
    await advance(1)
    expect(ran).toEqual(['0', '70'])
    await advance(99)
    expect(ran).toHaveLength(2)
    await advance(1)
    expect(ran).toEqual(['0', '70', '71', '170'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('however many tasks wait, there is one timer, and none when all are cancelled', () => {
    begin()
    const wheel = new TimerWheel()
    const cancels = Array.from({ length: 10_000 }, (_, i) => wheel.set(i * 7, () => {}))
    expect(vi.getTimerCount()).toBe(1)
    for (const cancel of cancels) cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a task that is cancelled by another one of its tick does not run', async () => {
    begin()
    const wheel = new TimerWheel()
    const ran: string[] = []
    wheel.set(10, () => {
      ran.push('first')
      cancel()
    })
    const cancel = wheel.set(10, () => ran.push('second'))
    await advance(500)
    expect(ran).toEqual(['first'])
  })

  test('one function may be set twice for one tick', async () => {
    begin()
    const wheel = new TimerWheel()
    let ran = 0
    const task = (): void => void ran++
    wheel.set(10, task)
    wheel.set(10, task)
    await advance(100)
    expect(ran).toBe(2)
  })

  test('takes times longer than setTimeout does', async () => {
    begin()
    const wheel = new TimerWheel()
    let ran = 0
    wheel.set(2 ** 31 + 5000, () => ran++)
    await advance(2 ** 31)
    expect(ran).toBe(0)
    await advance(5100)
    expect(ran).toBe(1)
  })

  test('agrees with a list of times: never early, at most a tick late, never after being cancelled, and once', async () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ type: fc.constant('set' as const), ms: fc.nat(700) }) },
      { weight: 2, arbitrary: fc.record({ type: fc.constant('cancel' as const), which: fc.nat(30) }) },
      { weight: 4, arbitrary: fc.record({ type: fc.constant('pass' as const), ms: fc.nat(120) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        begin()
        try {
          const wheel = new TimerWheel()
          const timers: { dueAt: number; ranAt: number[]; cancelledAt: number; cancel: () => void }[] = []
          const check = (): void => {
            const now = performance.now()
            for (const { dueAt, ranAt, cancelledAt } of timers) {
              for (const at of ranAt) expect(at).toBeGreaterThanOrEqual(dueAt)
              for (const at of ranAt) expect(at).toBeLessThan(Math.min(dueAt + tickMs + stepMs, cancelledAt))
              if (Math.min(cancelledAt, now) >= dueAt + tickMs) expect(ranAt).toHaveLength(1)
              expect(ranAt.length).toBeLessThanOrEqual(1)
            }
          }
          const pass = async (ms: number): Promise<void> => {
            // Step by step, so that the time at which a task runs is known as exactly as a step is long.
            for (let i = 0; i < ms; i += stepMs) {
              await advance(Math.min(stepMs, ms - i))
              check()
            }
          }
          for (const next of steps) {
            if (next.type === 'pass') await pass(next.ms)
            else if (next.type === 'set') {
              const ranAt: number[] = []
              const cancel = wheel.set(next.ms, () => ranAt.push(performance.now()))
              timers.push({
                dueAt: performance.now() + next.ms,
                ranAt,
                cancelledAt: Number.POSITIVE_INFINITY,
                cancel,
              })
            } else {
              const timer = timers[next.which]
              timer?.cancel()
              if (timer !== undefined) timer.cancelledAt = Math.min(timer.cancelledAt, performance.now() + 0.001)
            }
            expect(vi.getTimerCount()).toBeLessThanOrEqual(1)
          }
          await pass(900)
          expect(vi.getTimerCount()).toBe(0)
        } finally {
          vi.useRealTimers()
        }
      }),
      { numRuns: 100 },
    )
  }, 60_000)
})

describe('a wheel on the real clock', () => {
  test('is never early and forgets no task, at any times', async () => {
    const wheel = new TimerWheel()
    const late = await Promise.all(
      Array.from({ length: 2000 }, (_, i) => {
        const ms = (i * 7919) % 600
        const dueAt = performance.now() + ms
        return new Promise<number>((resolve) => wheel.set(ms, () => resolve(performance.now() - dueAt)))
      }),
    )
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
    // The clock that only the test moves shows that a tick is the most. Here a busy machine can add seconds.
    expect(Math.max(...late)).toBeLessThan(10_000)
  })

  test('ten thousand tasks of one tick give the event loop back between slices', async () => {
    const wheel = new TimerWheel()
    let ran = 0
    let turns = 0
    for (let i = 0; i < 10_000; i++) wheel.set(50, () => ran++)
    for (; ran < 10_000; turns += ran > 0 ? 1 : 0) await new Promise((resolve) => setImmediate(resolve))
    expect(turns).toBeGreaterThanOrEqual(99)
  })

  test('a million timers that are set and cancelled leave nothing behind', () => {
    const wheel = new TimerWheel()
    const heapUsed = (): number => {
      collectGarbage()
      return process.memoryUsage().heapUsed
    }
    const kept = wheel.set(60_000, () => {})
    const setAndCancel = (count: number): void => {
      for (let i = 0; i < count; i++) wheel.set((i * 7919) % 60_000, () => {})()
    }
    setAndCancel(100_000)
    const before = heapUsed()
    setAndCancel(1_000_000)
    const grown = heapUsed() - before
    kept()
    // 100 bytes each would be 100 MB.
    expect(grown).toBeLessThan(10_000_000)
  })
})
