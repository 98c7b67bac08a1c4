/**
 * Loaded into a server process before the server itself: tells the soak what the process holds. Needs --expose-gc.
 *
 * `SOAK_PLANT` plants a leak into the server, to show that the soak sees it.
 */

import { subscribe } from 'node:diagnostics_channel'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { queryObjects } from 'node:v8'

/** What to tell. Both collect garbage first; `objects` walks the whole heap, and so is asked of idle servers only. */
export type ProbeQuestion = 'memory' | 'objects'

/** The memory of a server process, bytes, without garbage. */
export interface MemoryAnswer {
  /** Live objects in JavaScript's heap. */
  readonly heapUsed: number
  /** Resident memory. */
  readonly rss: number
  /** Memory outside of the heap that objects in it hold, buffers included. */
  readonly external: number
}

/** How many of each kind a server process holds. */
export interface ObjectsAnswer {
  /**
   * Objects in the heap by their class, subclasses included. Timers are counted if they are unreferenced, too, which
   * `process.getActiveResourcesInfo()` leaves out.
   */
  readonly objects: Readonly<Record<string, number>>
  /** What keeps the event loop alive, by kind. */
  readonly resources: Readonly<Record<string, number>>
}

// biome-ignore lint/suspicious/noExplicitAny: whatever makes instances can be asked for.
type Class = abstract new (...args: any[]) => object

const probeTimer = setTimeout(() => {}, 0)
clearTimeout(probeTimer)
const Timer = probeTimer.constructor as Class

const classes: Readonly<Record<string, Class>> = {
  timers: Timer,
  sockets: Socket,
  // Streams of HTTP/2 have no public class. Sockets are among them, too.
  'duplex streams': Duplex,
  requests: IncomingMessage,
  responses: ServerResponse,
  'abort signals': AbortSignal,
  promises: Promise,
  maps: Map,
  sets: Set,
}

function memory(): MemoryAnswer {
  globalThis.gc?.()
  const { heapUsed, rss, external } = process.memoryUsage()
  return { heapUsed, rss, external }
}

function objects(): ObjectsAnswer {
  globalThis.gc?.()
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const counts = Object.entries(classes).map(([name, type]) => [name, queryObjects(type, { format: 'count' })] as const)
  return { objects: Object.fromEntries(counts), resources }
}

function plant(kind: string): void {
  const held = new Map<number, object>()
  const leak = (): void => {
    if (kind === 'timer') setInterval(() => {}, 3_600_000).unref()
    else held.set(held.size, { at: performance.now() })
  }
  subscribe('http.server.request.start', leak)
  subscribe('http2.server.stream.start', leak)
}

if (process.env.SOAK_PLANT) plant(process.env.SOAK_PLANT)

process.on('message', ({ id, question }: { readonly id: number; readonly question: ProbeQuestion }) => {
  process.send?.({ id, answer: question === 'memory' ? memory() : objects() })
})
// The server ends when it has nothing more to do.
process.channel?.unref()
