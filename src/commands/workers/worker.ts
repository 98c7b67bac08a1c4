import cluster from 'node:cluster'
import { type CountersignOptions, optionsFromEnvironment } from '../../config.ts'
import { createWorker, type WorkerService } from '../../countersign.ts'
import { createLogger, type Logger } from '../../log.ts'
import { logOutput } from '../log-output.ts'
import { logFormatOf, logLevel } from '../log-settings.ts'
import { madeService } from '../made-service.ts'
import { Reloads } from '../reloads.ts'
import type { FromWorker, ToWorker, WorkerStart } from './messages.ts'

/** All workers write to one pipe. What is longer is not written in one step there (PIPE_BUF), and lines would be mixed up. */
const atomicBytes = 4096

/** Serves as the process says that started this one. */
export function runWorker(): void {
  // If whoever reads them goes away, lines are dropped. Without a listener, the error would end the process.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  let worker: Worker | undefined
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'start') worker ??= new Worker(message.start)
    else worker?.obey(message)
  })
  // Without this, node:cluster ends the process as soon as the one that started it has died, whatever is in progress.
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
    if (message.kind === 'drain') void this.#drain()
    else if (message.kind === 'handOver') void this.#handOver()
    else if (message.kind === 'close') this.#close(message.graceMs)
    else if (message.kind === 'end') process.disconnect?.()
    else if (message.kind === 'reload') this.#reloads.request()
    else if (message.kind === 'metrics') void this.#tellMetrics()
  }

  /** Nobody tells it anything any more: finishes what is in progress. */
  finish(): void {
    if (this.#closed === undefined) this.#logger.error('the process that started this worker has ended: it ends too')
    this.#close(undefined)
  }

  async #start(options: CountersignOptions, lanHosts: readonly string[] | undefined): Promise<WorkerService> {
    const { metricsPort, ...others } = options
    try {
      // The metrics of all workers have one port, which is not this process's.
      const service = await madeService(createWorker, { ...others, metrics: metricsPort !== undefined }, lanHosts)
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

  async #drain(): Promise<void> {
    const service = await this.#service
    await service.drain()
    tell({ kind: 'drained' })
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
