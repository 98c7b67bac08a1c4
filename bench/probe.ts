/**
 * Loaded into a server process before the server itself: tells the process that started it what the server has used.
 * Needs --expose-gc, so that memory is told without garbage.
 */

/** What a server process has used. */
export interface Usage {
  /** CPU time of all its threads so far, microseconds. */
  readonly cpuMicros: number
  /** Resident memory, bytes. */
  readonly rss: number
  /** Live objects in JavaScript's heap, bytes. */
  readonly heapUsed: number
}

/** What to tell: collecting garbage first takes CPU time, so it is asked for only where memory matters. */
export type UsageQuestion = 'cpu' | 'memory'

process.on('message', (question: UsageQuestion) => {
  const { user, system } = process.cpuUsage()
  if (question === 'memory') globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  process.send?.({ cpuMicros: user + system, rss, heapUsed } satisfies Usage)
})
// The server ends when it has nothing more to do.
process.channel?.unref()
