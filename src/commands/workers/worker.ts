import cluster from 'node:cluster'
import { createLogger, type Logger } from '../../base/log.ts'
import type { MetricValues } from '../../observe/metrics/summed-metrics.ts'
import { type CountersignOptions, optionsFromEnvironment } from '../../service/config.ts'
import { type Countersign, createWorker, type WorkerService } from '../../service/countersign.ts'
import { logFormatOf, logLevel, logOutput, madeService, Reloads } from '../process.ts'

/** What a worker is to run. */
export interface WorkerStart {
  /** Its number among the workers, from 1. A worker that takes the place of another has the same. */
  readonly number: number
  /** The settings of the arguments, which take precedence over environment variables. */
  readonly options: CountersignOptions
  /** Hosts of this machine in its local networks, with `--lan`. */
  readonly lanHosts: readonly string[] | undefined
  /** Whether it leaves out warnings until it is ready, because another worker has said the same. */
  readonly quiet: boolean
}

/** Messages from the first process to a worker. */
export type ToWorker =
  | { readonly kind: 'start'; readonly start: WorkerStart }
  /** Prepare the stop of the service. */
  | { readonly kind: 'drain' }
  /** Let another worker take your place, then close. Answered with `closed`. */
  | { readonly kind: 'handOver' }
  /** Finish what is in progress. Answered with `closed`. */
  | { readonly kind: 'close'; readonly graceMs: number | undefined }
  /** Read files again. */
  | { readonly kind: 'reload' }
  /** Answered with `metrics`. */
  | { readonly kind: 'metrics' }

/** What is known of a service once it listens. */
export interface Serving extends Pick<Countersign, 'publicUrl' | 'description'> {
  readonly port: number
}

/** Messages from a worker to the first process. */
export type FromWorker =
  /** It takes `start` now. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly serving: Serving }
  /** It cannot start, and ends. */
  | { readonly kind: 'failed'; readonly message: string }
  /** With what it counted to its end; `cause` if something could not be closed. */
  | { readonly kind: 'closed'; readonly metrics: MetricValues | undefined; readonly cause: string | undefined }
  | { readonly kind: 'metrics'; readonly metrics: MetricValues | undefined }

/**
 * All workers write to one pipe. What is longer is not written in one step there (PIPE_BUF), and lines would be mixed
 * up.
 */
const atomicBytes = 4096

/** Serves as the first process says. */
export function runWorker(): void {
  // Without a reader, lines are dropped. Without a listener, the error would end the process.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  let worker: Worker | undefined
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'start') worker ??= new Worker(message.start)
    else worker?.obey(message)
  })
  // Otherwise node:cluster ends the process as soon as the first one has died, with calls in progress.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  process.once('disconnect', () => {
    if (worker === undefined) process.exit(1)
    worker.finish()
  })
  tell({ kind: 'hello' })
}

function tell(message: FromWorker, told: () => void = () => {}): void {
  if (process.connected) process.send?.(message, undefined, undefined, told)
  else told()
}

class Worker {
  readonly #logger: Logger
  readonly #reloads: Reloads
  /** The service, once it listens. If it cannot, the process ends. */
  readonly #service: Promise<WorkerService>
  #closed: Promise<void> | undefined
  #isQuiet: boolean

  constructor({ number, quiet, ...start }: WorkerStart) {
    const { env: environment } = process
    this.#isQuiet = quiet
    // Its own reading of the environment: files with secrets can have changed since the first worker started.
    const fromEnvironment = optionsFromEnvironment(environment)
    const logger = createLogger(logOutput(atomicBytes), logLevel(environment.LOG_LEVEL), logFormatOf(fromEnvironment), {
      worker: number,
    })
    const unlessQuiet =
      (write: Logger['info']): Logger['info'] =>
      (text, fields) => {
        if (!this.#isQuiet) write(text, fields)
      }
    this.#logger = {
      ...logger,
      debug: unlessQuiet(logger.debug),
      info: unlessQuiet(logger.info),
      warn: unlessQuiet(logger.warn),
    }
    this.#reloads = new Reloads({ environment, options: fromEnvironment, logger: this.#logger })
    this.#service = this.#start({ ...fromEnvironment, ...start.options, logger: this.#logger }, start.lanHosts)
  }

  obey(message: ToWorker): void {
    if (message.kind === 'drain') void this.#service.then((service) => service.drain())
    else if (message.kind === 'handOver') void this.#handOver()
    else if (message.kind === 'close') this.#close(message.graceMs)
    else if (message.kind === 'reload') this.#reloads.request()
    else if (message.kind === 'metrics') void this.#tellMetrics()
  }

  /** The first process has disconnected: finishes what is in progress. */
  finish(): void {
    if (this.#closed === undefined) this.#logger.error('the process that started this worker has ended: it ends too')
    this.#close(undefined)
  }

  async #start(options: CountersignOptions, lanHosts: readonly string[] | undefined): Promise<WorkerService> {
    const { metrics = false, ...others } = options
    try {
      // The metrics of all workers have one port, which is not this process's.
      const service = await madeService(
        createWorker,
        { ...others, metrics: typeof metrics === 'object' ? metrics.port !== undefined : metrics },
        lanHosts,
      )
      const port = await service.listen().catch(async (error) => {
        await service.close(0)
        throw error
      })
      const { publicUrl, description } = service
      this.#isQuiet = false
      this.#reloads.begin(service)
      tell({ kind: 'ready', serving: { publicUrl, description, port } })
      return service
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      await new Promise<void>((resolve) => tell({ kind: 'failed', message }, resolve))
      process.exit(1)
    }
  }

  async #handOver(): Promise<void> {
    const service = await this.#service
    await service.handOver()
    this.#close(undefined)
  }

  #close(graceMs: number | undefined): void {
    this.#closed ??= this.#closeService(graceMs)
  }

  async #closeService(graceMs: number | undefined): Promise<void> {
    const service = await this.#service
    let cause: string | undefined
    try {
      await service.close(graceMs)
    } catch (error) {
      cause = String(error)
    }
    const metrics = await service.metricValues().catch(() => undefined)
    tell({ kind: 'closed', metrics, cause })
  }

  async #tellMetrics(): Promise<void> {
    const service = await this.#service
    const metrics = await service.metricValues().catch(() => undefined)
    tell({ kind: 'metrics', metrics })
  }
}
