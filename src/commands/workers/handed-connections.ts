import type { ChildProcess } from 'node:child_process'
import type { Worker } from 'node:cluster'

/** What is needed of node's own object behind a connection. */
interface Handle {
  close(): void
}

/** What is needed of the messages of node:cluster, which are not documented; a test sees them go. */
interface ClusterMessage {
  readonly cmd?: unknown
  /** `newconn` hands a connection to the worker, which answers whether it has taken it. */
  readonly act?: unknown
  /** Number of a message, and of the one that is answered. */
  readonly seq?: number
  readonly ack?: number
}

/**
 * Connections that are on their way to a worker, and that it has not taken yet. If it dies, node:cluster would keep them open for
 * ever, and their clients would wait.
 */
export class HandedConnections {
  readonly #process: ChildProcess
  readonly #handles = new Map<number, Handle>()

  constructor({ process: child }: Worker) {
    this.#process = child
    const send = child.send as (this: ChildProcess, message: ClusterMessage, ...rest: unknown[]) => boolean
    child.send = (message: ClusterMessage, ...rest: unknown[]): boolean => {
      const [handle] = rest
      if (message.act === 'newconn' && message.seq !== undefined) this.#handles.set(message.seq, handle as Handle)
      return send.call(child, message, ...rest)
    }
    child.on('internalMessage', ({ ack }: ClusterMessage) => {
      if (ack !== undefined) this.#handles.delete(ack)
    })
  }

  /**
   * The worker is dead. Answers in its place that it has not taken them, so that others get them; if there is no other, closes them.
   * It has read nothing of them: it answers before it reads.
   */
  release(hasOthers: boolean): void {
    for (const [seq, handle] of this.#handles) {
      if (hasOthers) {
        this.#process.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false } satisfies object)
      } else handle.close()
    }
    this.#handles.clear()
  }
}
