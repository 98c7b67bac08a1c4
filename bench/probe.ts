/**
 * Loaded into a server process before the server itself: tells the process that started it what the server has used.
 * Needs --expose-gc, so that memory is told without garbage.
 */

import cluster, { type Worker } from 'node:cluster'
import { writeSync } from 'node:fs'

/** What a server process has used. */
export interface Usage {
  /** CPU time of all its threads so far, microseconds. */
  readonly cpuMicros: number
  /** The part of it that the threads took which run JavaScript. The others compile it and collect garbage. */
  readonly scriptMicros: number
  /** Resident memory, bytes. */
  readonly rss: number
  /** Live objects in JavaScript's heap, bytes. */
  readonly heapUsed: number
  /** Since `turns` was asked last; 0 before. */
  readonly turns: LoopTurns
}

/** How long the event loop of a server was blocked at a time, to within 2 ms. */
export interface LoopTurns {
  /**
   * CPU time of the longest turn, ms. Unlike the time on the clock, it does not depend on what else the machine does.
   */
  readonly longestCpuMs: number
  /** Time of the longest turn on the clock, ms. */
  readonly longestMs: number
}

/**
 * What to tell: collecting garbage first takes CPU time, and measuring turns wakes the loop every millisecond, so they
 * are asked for only where they matter. `turns` begins to measure anew, `still` stops measuring them.
 */
export type UsageQuestion = 'cpu' | 'memory' | 'turns' | 'still'

let longestMs = 0
let longestCpuMicros = 0
let measuring = false

/**
 * Measures turns of the event loop from now on: the time between two looks at its timers. A loop that is kept from
 * sleeping would be measured exactly, but would take the core from another server.
 */
function measureTurns(): void {
  longestMs = 0
  longestCpuMicros = 0
  if (measuring) return
  measuring = true
  let at = performance.now()
  let cpu = cpuOfThread()
  const measure = (): void => {
    if (!measuring) return
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

function turnsSoFar(): LoopTurns {
  return { longestMs, longestCpuMs: longestCpuMicros / 1000 }
}

function cpuOfThread(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

// From here to the end of the process.
process.once('SIGTERM', measureTurns)
process.once('exit', () => writeSync(2, `${JSON.stringify({ text: 'turns', ...turnsSoFar() })}\n`))

function used(question: UsageQuestion): Usage {
  const { user, system } = process.cpuUsage()
  if (question === 'memory') globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  return { cpuMicros: user + system, scriptMicros: cpuOfThread(), rss, heapUsed, turns: turnsSoFar() }
}

/** A question to a worker, or its answer. The service's own messages to its workers are others. */
type Relayed = { readonly probe: UsageQuestion } | { readonly probed: Usage }

async function usedBy(worker: Worker, question: UsageQuestion): Promise<Usage> {
  const answer = Promise.withResolvers<Usage>()
  const hear = (message: Relayed): void => {
    if ('probed' in message) answer.resolve(message.probed)
  }
  worker.on('message', hear)
  worker.send({ probe: question } satisfies Relayed)
  const usage = await answer.promise
  worker.off('message', hear)
  return usage
}

/** What this process and the workers that it has started have used: the sum, and the longest turn of all. */
async function usedByAll(question: UsageQuestion): Promise<Usage> {
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
  const all = [used(question), ...(await Promise.all(workers.map((worker) => usedBy(worker, question))))]
  const sum = (of: (usage: Usage) => number): number => all.reduce((total, usage) => total + of(usage), 0)
  return {
    cpuMicros: sum(({ cpuMicros }) => cpuMicros),
    scriptMicros: sum(({ scriptMicros }) => scriptMicros),
    rss: sum(({ rss }) => rss),
    heapUsed: sum(({ heapUsed }) => heapUsed),
    turns: {
      longestCpuMs: Math.max(...all.map(({ turns }) => turns.longestCpuMs)),
      longestMs: Math.max(...all.map(({ turns }) => turns.longestMs)),
    },
  }
}

/** What a question also asks for, once it is answered. */
function follow(question: UsageQuestion): void {
  if (question === 'turns') measureTurns()
  if (question === 'still') measuring = false
}

if (cluster.isWorker) {
  process.on('message', (message: Relayed) => {
    if (!('probe' in message)) return
    process.send?.({ probed: used(message.probe) } satisfies Relayed)
    follow(message.probe)
  })
} else {
  process.on('message', (question: UsageQuestion) => {
    void usedByAll(question).then((usage) => {
      process.send?.(usage)
      follow(question)
    })
  })
  // The server ends when it has nothing more to do.
  process.channel?.unref()
}
