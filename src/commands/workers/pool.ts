import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../../config.ts'
import type { Countersign } from '../../countersign.ts'
import type { Logger } from '../../log.ts'
import { MetricsServer } from '../../metrics/metrics-server.ts'
import { SummedMetrics } from '../../metrics/summed-metrics.ts'
import { oneAtATime } from '../../timing/one-at-a-time.ts'
import type { Serving, WorkerStart } from './messages.ts'
import { type WorkerEnd, WorkerProcess } from './worker-process.ts'

/** What workers are started with. */
export interface WorkersStart extends Omit<WorkerStart, 'number' | 'quiet'> {
  /** Number of workers. */
  readonly count: number
  /** All settings, checked. */
  readonly settings: Settings
  readonly logger: Logger
}

/** Time in ms that requests in progress have when a service closes, if nobody says otherwise. */
const graceMs = 10_000

/** Time in ms beyond the drain and the requests in progress after which a worker that has not ended hangs, and is killed. */
const hangMs = 10_000

/** Time in ms that a worker has to tell its metrics; then those count that it told before. Prometheus waits for 10 s. */
const metricsMs = 4_000

/** Pause in ms before a worker is replaced that has crashed: the second and each further time in a row twice as long. */
const pauses = { firstMs: 250, mostMs: 30_000 }

/** A worker that has served for this time, in ms, has not crashed "in a row" with the one before it. */
const soundMs = 60_000

/** The place of one worker. */
interface Slot {
  readonly number: number
  worker: WorkerProcess | undefined
  /** That is to take the place of `worker`, in a rolling restart. */
  next: WorkerProcess | undefined
  /** Crashes in a row. */
  crashes: number
}

/** Several processes that serve one port together, and are one service to everybody else. This process serves nothing. */
export class WorkerPool implements Pick<Countersign, 'publicUrl' | 'description' | 'drain' | 'close'> {
  readonly #start: WorkersStart
  readonly #logger: Logger
  readonly #slots: readonly Slot[]
  readonly #running = new Set<WorkerProcess>()
  readonly #metrics = new SummedMetrics()
  readonly #metricsServer: MetricsServer
  readonly #stopping = new AbortController()
  #serving: Serving | undefined
  /** The port to listen on, if it is not that of the settings. */
  #port: number | undefined
  /** Whether a rolling restart is under way, and whether another is asked for. */
  #isRolling = false
  #isRollAsked = false
  #rolled: Promise<void> = Promise.resolve()

  constructor(start: WorkersStart) {
    this.#start = start
    this.#logger = start.logger
    this.#slots = Array.from({ length: start.count }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      next: undefined,
      crashes: 0,
    }))
    const text = oneAtATime(() => this.#metricsText())
    this.#metricsServer = new MetricsServer(text)
    // Connections are handed to the workers in turn. If all of them accepted from one socket, few connections would be spread
    // unevenly, and the port would not be free before the last worker had ended.
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: workerFile(), args: [] })
    // A second SIGINT ends this process at once. Workers that are left alone finish what is in progress, which nobody wants then.
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

  /** Starts the workers. Resolves with the port when all are ready. If one cannot start, none is left, and it rejects with why. */
  async listen(): Promise<number> {
    const { metricsPort, metricsHost } = this.#start.settings
    try {
      if (metricsPort !== undefined) {
        const taken = await this.#metricsServer.listen(metricsPort, metricsHost)
        this.#logger.info('metrics are served', { host: metricsHost, port: taken, path: '/metrics' })
      }
      const [first, ...others] = this.#slots
      // One after the first, whose reason for not starting is that of all.
      if (first !== undefined) this.#serving = await this.#startIn(first)
      await Promise.all(others.map((slot) => this.#startIn(slot)))
    } catch (error) {
      this.#stopping.abort()
      await this.#metricsServer.close()
      for (const worker of this.#running) worker.kill()
      await Promise.all([...this.#running].map(({ ended }) => ended))
      throw error
    }
    for (const slot of this.#slots) this.#keep(slot)
    this.#rollIfAsked()
    return this.#known.port
  }

  /** Has every worker read files again. */
  request(): void {
    for (const worker of this.#running) worker.tell({ kind: 'reload' })
  }

  /**
   * Replaces every worker, one after the other: the new one is ready before the old one leaves. While that is under way, another call
   * has it done once more afterwards.
   */
  restart(): void {
    this.#isRollAsked = true
    if (this.#serving !== undefined) this.#rollIfAsked()
  }

  async drain(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([...this.#running].map((worker) => worker.drain()))
  }

  /** Closes the service of every worker, and resolves when all have ended. */
  async close(withinMs?: number): Promise<void> {
    this.#stopping.abort()
    const ends = await Promise.all(
      [...this.#running].map((worker) => {
        worker.tell({ kind: 'close', graceMs: withinMs })
        return worker.endWithin((withinMs ?? graceMs) + hangMs)
      }),
    )
    await this.#rolled
    await this.#metricsServer.close()
    const causes = ends.flatMap(({ cause }) => cause ?? [])
    if (causes.length > 0) throw new Error([...new Set(causes)].join('; '))
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  #fork(number: number): WorkerProcess {
    const { options, lanHosts } = this.#start
    // A free port that was taken is shared for as long as a worker has it. Then it has to be asked for by its number.
    if (this.#serving !== undefined && this.#servingNow() === 0) this.#port = this.#serving.port
    const worker = new WorkerProcess(
      {
        number,
        quiet: this.#serving !== undefined,
        options: this.#port === undefined ? options : { ...options, port: this.#port },
        lanHosts,
      },
      ({ id }, metrics) => this.#metrics.heard(id, metrics),
      (one) => this.#slots.some(({ worker: other }) => other !== one && other?.takesConnections === true),
    )
    this.#running.add(worker)
    void worker.ended.then(() => {
      this.#running.delete(worker)
      this.#metrics.ended(worker.id)
    })
    return worker
  }

  async #startIn(slot: Slot): Promise<Serving> {
    const worker = this.#fork(slot.number)
    slot.worker = worker
    return await worker.ready
  }

  /** Replaces the worker of a slot if it ends without having been asked to. */
  #keep(slot: Slot): void {
    const { worker } = slot
    void worker?.ended.then((end) => this.#replaceCrashed(slot, worker, end))
  }

  async #replaceCrashed(slot: Slot, worker: WorkerProcess, { how }: WorkerEnd): Promise<void> {
    // Another has taken its place.
    if (slot.worker !== worker || this.#isStopping) return
    slot.worker = undefined
    const servedMs = worker.readyAt === undefined ? 0 : performance.now() - worker.readyAt
    if (servedMs >= soundMs) slot.crashes = 0
    // The one that is about to be ready takes its place.
    if (slot.next !== undefined) this.#logger.error('a worker has crashed', { number: slot.number, cause: how })
    else await this.#fill(slot, how)
  }

  /** Starts a worker in an empty slot, until one is ready. */
  async #fill(slot: Slot, crash: string): Promise<void> {
    for (let cause = crash; !this.#isStopping; ) {
      const pauseMs = Math.min(pauses.mostMs, pauses.firstMs * 2 ** slot.crashes)
      slot.crashes++
      this.#logger.error('a worker has crashed: another takes its place', { number: slot.number, cause, pauseMs })
      await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      if (this.#isStopping) return
      const worker = this.#fork(slot.number)
      slot.worker = worker
      try {
        await worker.ready
        this.#logger.info('a worker has been replaced', { number: slot.number })
        this.#keep(slot)
        return
      } catch (error) {
        cause = (error as Error).message
        slot.worker = undefined
      }
    }
  }

  #rollIfAsked(): void {
    if (!this.#isRollAsked || this.#isRolling || this.#isStopping) return
    this.#isRollAsked = false
    this.#isRolling = true
    this.#rolled = this.#roll().finally(() => {
      this.#isRolling = false
      this.#rollIfAsked()
    })
  }

  async #roll(): Promise<void> {
    this.#logger.info('restarting the workers one after the other')
    for (const slot of this.#slots) {
      // One that is empty gets a new worker anyway.
      if (slot.worker?.readyAt === undefined) continue
      const isReplaced = await this.#replace(slot, slot.worker)
      if (this.#isStopping || !isReplaced) return
    }
    this.#logger.info('all workers have been replaced')
  }

  /** Puts a new worker in the place of one that serves. Resolves with whether it could. */
  async #replace(slot: Slot, old: WorkerProcess): Promise<boolean> {
    const worker = this.#fork(slot.number)
    slot.next = worker
    try {
      await worker.ready
    } catch (error) {
      slot.next = undefined
      if (this.#isStopping) return false
      const { message: cause } = error as Error
      this.#logger.error('a new worker cannot start: the others stay', { number: slot.number, cause })
      if (slot.worker === undefined) void this.#fill(slot, cause)
      return false
    }
    slot.next = undefined
    if (this.#isStopping) return false
    slot.worker = worker
    this.#keep(slot)
    old.tell({ kind: 'handOver' })
    await old.endWithin(this.#start.settings.drainSeconds * 1000 + graceMs + hangMs)
    return true
  }

  #servingNow(): number {
    return this.#slots.filter(({ worker }) => worker?.readyAt !== undefined).length
  }

  async #metricsText(): Promise<string> {
    await Promise.all(
      [...this.#running].filter(({ readyAt }) => readyAt !== undefined).map((worker) => worker.askMetrics(metricsMs)),
    )
    return await this.#metrics.text(this.#servingNow())
  }
}

/** The program of a worker, as source or built. */
function workerFile(): string {
  const name = import.meta.filename.endsWith('.ts') ? 'worker-main.ts' : 'worker-main.js'
  return fileURLToPath(new URL(name, import.meta.url))
}
