/**
 * Loaded into a server process before the server itself: tells the process that started it what the server has used.
 * Needs --expose-gc, so that memory is told without garbage.
 */
import { writeSync } from 'node:fs'

/** What a server process has used. */
export interface Usage {
  /** CPU time of all its threads so far, microseconds. */
  readonly cpuMicros: number
  /** Live objects in JavaScript's heap, bytes. */
  readonly heapUsed: number
}

/** How long the event loop of a server was blocked at a time while it stopped, to within 2 ms. */
export interface LoopTurns {
  /**
   * CPU time of the longest turn, ms. Unlike the time on the clock, it does not depend on what else the machine does.
   */
  readonly longestCpuMs: number
  /** Time of the longest turn on the clock, ms. */
  readonly longestMs: number
}

/** What to measure. `memory` collects garbage first, which takes CPU time. */
export type UsageQuestion = 'cpu' | 'memory'

let longestMs = 0
let longestCpuMicros = 0

/**
 * Measures turns of the event loop from now on: the time between two looks at its timers. A loop that is kept from
 * sleeping would be measured exactly, but would take the core from another server.
 */
function measureTurns(): void {
  let at = performance.now()
  let cpu = cpuOfThread()
  const measure = (): void => {
    const now = performance.now()
    const cpuNow = cpuOfThread()
    longestMs = Math.max(longestMs, now - at)
    longestCpuMicros = Math.max(longestCpuMicros, cpuNow - cpu)
    at = now
    cpu = cpuNow
    // Without holding up the end of the process.
    setTimeout(measure, 1).unref()
  }
  measure()
}

function cpuOfThread(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

// From here to the end of the process.
process.once('SIGTERM', measureTurns)
process.once('exit', () =>
  writeSync(2, `${JSON.stringify({ text: 'turns', longestMs, longestCpuMs: longestCpuMicros / 1000 })}\n`),
)

function used(question: UsageQuestion): Usage {
  const { user, system } = process.cpuUsage()
  if (question === 'memory') globalThis.gc?.()
  return { cpuMicros: user + system, heapUsed: process.memoryUsage().heapUsed }
}

process.on('message', (question: UsageQuestion) => {
  process.send?.(used(question))
})
// The server ends when it has nothing more to do.
process.channel?.unref()
