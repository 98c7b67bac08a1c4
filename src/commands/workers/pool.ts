import cluster, { type Worker } from 'node:cluster'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from '../../base/log.ts'
import { oneAtATime } from '../../base/timing/slots.ts'
import { MetricsServer } from '../../http/metrics-server.ts'
import { type MetricValues, SummedMetrics } from '../../observe/metrics/summed-metrics.ts'
import type { Settings } from '../../service/config.ts'
import type { Countersign } from '../../service/countersign.ts'
import type { FromWorker, Serving, ToWorker, WorkerStart } from './worker.ts'

/** What workers are started with. */
export interface WorkersStart extends Omit<WorkerStart, 'number' | 'quiet'> {
  /** Number of workers. */
  readonly count: number
  /** All settings, checked. */
  readonly settings: Settings
  readonly logger: Logger
}

/** Time in ms that requests in progress have when a service closes, unless the caller says otherwise. */
const graceMs = 10_000

/**
 * Time in ms beyond the drain and the requests in progress after which a worker that has not ended hangs, and is
 * killed.
 */
const hangMs = 10_000

/**
 * Time in ms that a worker has to tell its metrics; then those count that it told before. Prometheus waits for 10 s.
 */
const metricsMs = 4_000

/**
 * Pause in ms before a worker is replaced that has crashed: the second and each further time in a row twice as long.
 */
const pauses = { firstMs: 250, mostMs: 30_000 }

/** A worker that has served for this time, in ms, has not crashed "in a row" with the one before it. */
const soundMs = 60_000

/** Time in ms after the end of a worker in which its last messages are read. */
const lastMessagesMs = 50

/**
 * Number of processes that are to serve the port. Throws a `TypeError` if the store is for one process. With auto, that
 * does not depend on the machine: settings that start on one start on all.
 */
export function workerCount({ workers, store }: Settings): number {
  if (workers === 1) return 1
  if (typeof store === 'string' && store.startsWith('sqlite:')) {
    const reason =
      store === 'sqlite::memory:'
        ? 'in memory, each worker would have a store of its own'
        : 'with an SQLite file, what one worker stores would wake no watcher at another'
    throw new TypeError(
      `workers (COUNTERSIGN_WORKERS) must be 1, not ${workers}, unless store (COUNTERSIGN_STORE) is Redis: ${reason}`,
    )
  }
  return workers === 'auto' ? availableParallelism() : workers
}

/** The place of one worker. */
interface Slot {
  readonly number: number
  worker: WorkerProcess | undefined
  /** Crashes in a row. */
  crashes: number
}

/**
 * Several processes that serve one port together, and are one service to everything outside. This process serves
 * nothing.
 */
export class WorkerPool implements Pick<Countersign, 'publicUrl' | 'description' | 'drain' | 'close'> {
  readonly #start: WorkersStart
  readonly #logger: Logger
  readonly #slots: readonly Slot[]
  readonly #running = new Set<WorkerProcess>()
  readonly #metrics = new SummedMetrics()
  readonly #metricsServer: MetricsServer
  readonly #stopping = new AbortController()
  readonly #closing = new AbortController()
  #serving: Serving | undefined
  /** The port to listen on, if it is not that of the settings. */
  #port: number | undefined
  #isRollAsked = false
  /** The rolling restart that is under way. */
  #rolling: Promise<void> | undefined

  constructor(start: WorkersStart) {
    this.#start = start
    this.#logger = start.logger
    this.#slots = Array.from({ length: start.count }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      crashes: 0,
    }))
    this.#metricsServer = new MetricsServer(oneAtATime(() => this.#metricsText()))
    // Connections are handed to the workers in turn. If all of them accepted from one socket, few connections would be
    // spread unevenly, and the port would not be free before the last worker had ended.
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: workerFile(), args: [] })
    // A second SIGINT ends this process at once, and what is in progress in the workers with it.
    process.once('exit', () => {
      if (this.#isStopping) for (const worker of this.#running) worker.kill()
    })
    process.on('SIGUSR2', () => this.restart())
  }

  get publicUrl(): string {
    return this.#known.publicUrl
  }

  get description(): Countersign['description'] {
    return this.#known.description
  }

  get #known(): Serving {
    if (this.#serving === undefined) throw new Error('the workers are not ready')
    return this.#serving
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  get #ready(): readonly WorkerProcess[] {
    return [...this.#running].filter(({ readyAt }) => readyAt !== undefined)
  }

  /**
   * Starts the workers. Resolves with the port when all are ready. If one cannot start, none is left, and it rejects
   * with why.
   */
  async listen(): Promise<number> {
    const { port: metricsPort, host: metricsHost } = this.#start.settings.metrics
    try {
      if (metricsPort !== undefined) {
        const taken = await this.#metricsServer.listen(metricsPort, metricsHost)
        this.#logger.info('metrics are served', { host: metricsHost, port: taken, path: '/metrics' })
      }
      // The others after the first, whose reason for not starting is that of all.
      const [first, ...others] = this.#slots as [Slot, ...Slot[]]
      this.#serving = await this.#fill(first).ready
      await Promise.all(others.map((slot) => this.#fill(slot).ready))
    } catch (error) {
      this.#stopping.abort()
      await this.#metricsServer.close()
      for (const worker of this.#running) worker.kill()
      await Promise.all([...this.#running].map(({ ended }) => ended))
      throw error
    }
    for (const slot of this.#slots) void this.#keep(slot)
    this.#rollIfAsked()
    return this.#known.port
  }

  /** Has every worker read files again. */
  request(): void {
    for (const worker of this.#ready) worker.tell({ kind: 'reload' })
  }

  /**
   * Replaces every worker, one after the other: the new one is ready before the old one leaves. While that is under
   * way, another call has it done once more afterwards.
   */
  restart(): void {
    this.#isRollAsked = true
    this.#rollIfAsked()
  }

  async drain(): Promise<void> {
    this.#stopping.abort()
    for (const worker of this.#ready) worker.tell({ kind: 'drain' })
    const ms = this.#start.settings.drainSeconds * 1000
    await sleep(ms, undefined, { signal: this.#closing.signal }).catch(() => {})
  }

  /** Closes the service of every worker, and resolves when all have ended. */
  async close(withinMs?: number): Promise<void> {
    this.#stopping.abort()
    this.#closing.abort()
    for (const worker of this.#running) {
      if (worker.readyAt === undefined) worker.kill()
      else worker.tell({ kind: 'close', graceMs: withinMs })
    }
    const ends = [...this.#running].map((worker) => worker.endWithin((withinMs ?? graceMs) + hangMs))
    const causes = (await Promise.all(ends)).flatMap(({ cause }) => cause ?? [])
    await this.#rolling
    await this.#metricsServer.close()
    if (causes.length > 0) throw new Error([...new Set(causes)].join('; '))
  }

  #fork(number: number): WorkerProcess {
    const { options, lanHosts } = this.#start
    // A free port that was taken is shared for as long as a worker has it. Then it has to be asked for by its number.
    if (this.#serving !== undefined && this.#ready.length === 0) this.#port = this.#serving.port
    const worker = new WorkerProcess(
      {
        number,
        quiet: this.#serving !== undefined,
        options: this.#port === undefined ? options : { ...options, port: this.#port },
        lanHosts,
      },
      (id, metrics) => this.#metrics.heard(id, metrics),
    )
    this.#running.add(worker)
    void worker.ended.then(() => {
      this.#running.delete(worker)
      this.#metrics.ended(worker.id)
    })
    return worker
  }

  #fill(slot: Slot): WorkerProcess {
    slot.worker = this.#fork(slot.number)
    return slot.worker
  }

  /** Replaces the worker of a slot whenever it has crashed, until another one has taken its place. */
  async #keep(slot: Slot): Promise<void> {
    for (let worker = slot.worker; worker !== undefined; ) {
      const { how: cause } = await worker.ended
      if (slot.worker !== worker || this.#isStopping) return
      if (worker.readyAt !== undefined && performance.now() - worker.readyAt >= soundMs) slot.crashes = 0
      const pauseMs = Math.min(pauses.mostMs, pauses.firstMs * 2 ** slot.crashes++)
      this.#logger.error('a worker has crashed: another takes its place', { number: slot.number, cause, pauseMs })
      await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      if (slot.worker !== worker || this.#isStopping) return
      worker = this.#fill(slot)
      worker.ready.then(
        () => this.#logger.info('a worker has been replaced', { number: slot.number }),
        () => {},
      )
    }
  }

  #rollIfAsked(): void {
    if (!this.#isRollAsked || this.#serving === undefined || this.#rolling !== undefined || this.#isStopping) return
    this.#isRollAsked = false
    this.#rolling = this.#roll().finally(() => {
      this.#rolling = undefined
      this.#rollIfAsked()
    })
  }

  async #roll(): Promise<void> {
    this.#logger.info('restarting the workers one after the other')
    for (const slot of this.#slots) {
      const worker = this.#fork(slot.number)
      try {
        await worker.ready
      } catch (error) {
        if (this.#isStopping) return
        const { message: cause } = error as Error
        this.#logger.error('a new worker cannot start: the others stay', { number: slot.number, cause })
        return
      }
      if (this.#isStopping) return
      const old = slot.worker
      slot.worker = worker
      void this.#keep(slot)
      if (old?.readyAt === undefined) old?.kill()
      else old.tell({ kind: 'handOver' })
      await old?.endWithin(this.#start.settings.drainSeconds * 1000 + graceMs + hangMs)
      if (this.#isStopping) return
    }
    this.#logger.info('all workers have been replaced')
  }

  async #metricsText(): Promise<string> {
    await Promise.all(this.#ready.map((worker) => worker.askMetrics(metricsMs)))
    const serving = this.#slots.filter(({ worker }) => worker?.readyAt !== undefined && this.#running.has(worker))
    return await this.#metrics.text(serving.length)
  }
}

/** How a worker ended. */
interface WorkerEnd {
  /** Exit code, signal or the reason that it gave, as text for people. */
  readonly how: string
  /** What it could not close. */
  readonly cause: string | undefined
}

/** A worker, as the first process sees it. */
class WorkerProcess {
  /** Unique among all workers that there ever were. */
  readonly id: number
  /** Resolves once it listens. Rejects with an error of one line if it cannot. */
  readonly ready: Promise<Serving>
  readonly ended: Promise<WorkerEnd>
  /** When it was ready, by performance.now; `undefined` before. */
  readyAt: number | undefined
  readonly #worker: Worker
  #onAnswer: () => void = () => {}

  constructor(start: WorkerStart, onMetrics: (id: number, metrics: MetricValues) => void) {
    const worker = cluster.fork()
    this.#worker = worker
    this.id = worker.id
    const ready = Promise.withResolvers<Serving>()
    this.ready = ready.promise
    // Avoid an unhandled rejection when it is not awaited: the end of the process says the same.
    this.ready.catch(() => {})
    let failure: string | undefined
    let cause: string | undefined
    // An IPC channel that breaks is the end of the worker, which has an event of its own.
    worker.on('error', () => {})
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'hello') this.tell({ kind: 'start', start })
      else if (message.kind === 'ready') {
        this.readyAt = performance.now()
        ready.resolve(message.serving)
      } else if (message.kind === 'failed') {
        failure = message.message
        ready.reject(new Error(failure))
      } else {
        if (message.metrics !== undefined) onMetrics(this.id, message.metrics)
        this.#onAnswer()
        if (message.kind !== 'closed') return
        cause = message.cause
        // Arrives behind every connection that was handed to it before it stopped listening: it has given those back by
        // then.
        worker.disconnect()
      }
    })
    this.ended = new Promise((resolve) => {
      worker.once('exit', (code, signal) => {
        // A connection that is on its way to a dead worker keeps the channel, and with it the worker's place in the
        // cluster.
        setTimeout(() => {
          if (worker.isConnected()) worker.process.disconnect()
        }, lastMessagesMs)
        const how = failure ?? (signal === null ? `exit code ${code}` : signal)
        ready.reject(new Error(`worker ${start.number} ended before it was ready (${how})`))
        resolve({ how, cause })
      })
    })
  }

  tell(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.send(message)
  }

  /** Has it tell its metrics. Resolves when it has told them, has ended, or has not answered within `timeoutMs`. */
  async askMetrics(timeoutMs: number): Promise<void> {
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    this.#onAnswer = resolve
    this.tell({ kind: 'metrics' })
    const late = setTimeout(resolve, timeoutMs)
    await Promise.race([answered, this.ended])
    clearTimeout(late)
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
}

/** The program of a worker, as source or built. */
function workerFile(): string {
  const name = import.meta.filename.endsWith('.ts') ? 'worker-main.ts' : 'worker-main.js'
  return fileURLToPath(new URL(name, import.meta.url))
}
