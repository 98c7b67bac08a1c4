import { expect, vi } from 'vitest'

/**
 * Node's warnings of this process since the last test file: a timer with a negative time, a leak of listeners, a
 * deprecated interface. Those of experimental interfaces do not count: some are used on purpose. A program that a test
 * starts is a process of its own.
 */
const warnings: string[] = []

process.on('warning', ({ name, message, stack }) => {
  if (name !== 'ExperimentalWarning') warnings.push(`${name}: ${message}\n${stack ?? ''}`)
})

/** Time in ms for what is done after a test or a file: folders with thousands of packages are removed for minutes. */
export const endMs = 900_000

const ends: (() => unknown)[] = []

/** Calls a function after the last test of the file that is running. The file's modules may serve further files. */
export function atFileEnd(end: () => unknown): void {
  ends.unshift(end)
}

/** Starts something at its first use in a test file, and disposes of it after the file's last test. */
export function onePerFile<Started extends AsyncDisposable>(start: () => Promise<Started>): () => Promise<Started> {
  let running: Promise<Started> | undefined
  return () => {
    if (running !== undefined) return running
    const started = start()
    running = started
    atFileEnd(async () => {
      running = undefined
      await (await started)[Symbol.asyncDispose]()
    })
    return started
  }
}

/**
 * Disposes of all that a test file has started, and then throws the first fault of that; fails if Node warned of
 * something or a fake clock is left.
 */
export async function endFile(): Promise<void> {
  const isClockLeft = vi.isFakeTimers() || vi.isMockFunction(Date.now) || vi.isMockFunction(performance.now)
  vi.useRealTimers()
  vi.restoreAllMocks()
  const faults: unknown[] = []
  for (const end of ends.splice(0)) {
    try {
      await end()
    } catch (fault) {
      faults.push(fault)
    }
  }
  // Warnings are emitted a tick later.
  await new Promise((resolve) => setImmediate(resolve))
  const emitted = warnings.splice(0)
  if (faults.length > 0) throw faults[0]
  expect(emitted, 'warnings of Node in this file').toEqual([])
  expect(isClockLeft, 'the file leaves a fake clock behind').toBe(false)
}
