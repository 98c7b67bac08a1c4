import cluster, { type Worker } from 'node:cluster'
import type { MetricValues } from '../../metrics/summed-metrics.ts'
import { HandedConnections } from './handed-connections.ts'
import type { FromWorker, Serving, ToWorker, WorkerStart } from './messages.ts'

/** Time in ms after the end of a worker in which what it said last is read. */
const lastWordsMs = 50

/** A worker that could not start. The message is one line that says why. */
class WorkerStartError extends Error {
  override readonly name = 'WorkerStartError'
}

/** What a worker has said at its end. */
export interface WorkerEnd {
  /** Exit code or signal, as text for people. */
  readonly how: string
  /** What it could not close. */
  readonly cause: string | undefined
}

/** A worker, as the process sees it that started it. */
export class WorkerProcess {
  /** No other has it, nor had it. */
  readonly id: number
  /** Its number among the workers; see {@link WorkerStart}. */
  readonly number: number
  /** Resolves once it listens. Rejects with a {@link WorkerStartError}. */
  readonly ready: Promise<Serving>
  readonly ended: Promise<WorkerEnd>
  /** When it was ready, by performance.now; `undefined` before. */
  readyAt: number | undefined
  readonly #worker: Worker
  readonly #onMetrics: (metrics: MetricValues) => void
  readonly #drained = Promise.withResolvers<void>()
  #metricsAsked: PromiseWithResolvers<void> | undefined
  #cause: string | undefined
  /** What it is to be told after what it is to run; `undefined` once it knows that. */
  #untold: ToWorker[] | undefined = []

  /**
   * Starts one. `onMetrics` is told what it has counted, whenever it says so. `hasOthers` says whether there are workers to take
   * connections that it leaves.
   */
  constructor(
    start: WorkerStart,
    onMetrics: (worker: WorkerProcess, metrics: MetricValues) => void,
    hasOthers: (worker: WorkerProcess) => boolean,
  ) {
    const worker = cluster.fork()
    this.#worker = worker
    const connections = new HandedConnections(worker)
    let isReleased = false
    worker.once('disconnect', () => {
      isReleased = true
      connections.release(hasOthers(this))
    })
    this.#onMetrics = (metrics) => onMetrics(this, metrics)
    this.id = worker.id
    this.number = start.number
    const ready = Promise.withResolvers<Serving>()
    this.ready = ready.promise
    // Whoever waits for it gets the failure; for others, the end of the process is enough.
    this.ready.catch(() => {})
    // An IPC channel that breaks is the end of the worker, which is told of by itself.
    worker.on('error', () => {})
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'hello') this.#begin(start)
      else if (message.kind === 'ready') {
        this.readyAt = performance.now()
        ready.resolve(message.serving)
      } else if (message.kind === 'failed') ready.reject(new WorkerStartError(message.message))
      else this.#hear(message)
    })
    this.ended = new Promise((resolve) => {
      worker.once('exit', (code, signal) => {
        // Node tells of no disconnect if a connection was on its way, and node:cluster would go on handing it connections.
        setTimeout(() => {
          if (!isReleased) worker.process.emit('disconnect')
        }, lastWordsMs)
        const how = signal === null ? `exit code ${code}` : signal
        ready.reject(new WorkerStartError(`worker ${this.number} ended before it was ready (${how})`))
        this.#drained.resolve()
        this.#metricsAsked?.resolve()
        resolve({ how, cause: this.#cause })
      })
    })
  }

  /** Whether it listens, and lives as far as is known. */
  get takesConnections(): boolean {
    return this.readyAt !== undefined && this.#worker.isConnected()
  }

  /** Says something to it; as soon as it has been told what to run. */
  tell(message: ToWorker): void {
    if (this.#untold !== undefined) this.#untold.push(message)
    else if (this.#worker.isConnected()) this.#worker.send(message)
  }

  #begin(start: WorkerStart): void {
    const untold = this.#untold ?? []
    this.#untold = undefined
    for (const message of [{ kind: 'start', start } as const, ...untold]) this.tell(message)
  }

  /** Prepares the stop of its service. Resolves when that is done, or it has ended. */
  async drain(): Promise<void> {
    this.tell({ kind: 'drain' })
    await this.#drained.promise
  }

  /** Has it tell its metrics. Resolves when it has told them, has ended, or has not answered within `timeoutMs`. */
  async askMetrics(timeoutMs: number): Promise<void> {
    const asked = this.#metricsAsked ?? Promise.withResolvers<void>()
    this.#metricsAsked = asked
    this.tell({ kind: 'metrics' })
    const late = setTimeout(() => asked.resolve(), timeoutMs)
    await asked.promise
    clearTimeout(late)
    if (this.#metricsAsked === asked) this.#metricsAsked = undefined
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL')
  }

  /** Kills it if it has not ended within `ms` milliseconds. */
  async endWithin(ms: number): Promise<WorkerEnd> {
    const late = setTimeout(() => this.kill(), ms)
    const end = await this.ended
    clearTimeout(late)
    return end
  }

  #hear(message: FromWorker): void {
    if (message.kind === 'drained') this.#drained.resolve()
    else if (message.kind === 'metrics' || message.kind === 'closed') {
      if (message.metrics !== undefined) this.#onMetrics(message.metrics)
      if (message.kind === 'metrics') this.#metricsAsked?.resolve()
      else this.#end(message.cause)
    }
  }

  #end(cause: string | undefined): void {
    this.#cause = cause
    // Behind every connection that was handed to it before it stopped listening: it has given those back by then.
    this.tell({ kind: 'end' })
  }
}
