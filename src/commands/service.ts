import { isatty } from 'node:tty'
import { type CountersignOptions, optionsFromEnvironment, resolveSettings, unknownVariables } from '../config.ts'
import { type Countersign, createCountersign, createOnLan } from '../countersign.ts'
import { hostOnLan, lanHosts, optionsOnLan } from '../lan.ts'
import { createLogger, type LogFormat, type Logger, type LogLevel } from '../log.ts'
import { version } from '../version.ts'
import { banner, networkText } from './banner.ts'
import type { CommandLine } from './command-line.ts'
import { Reloads } from './reloads.ts'

/**
 * Time in milliseconds within which a second SIGINT is the same one again: a terminal sends it to every process, and npm
 * passes on what it got itself.
 */
const sameKeyPressMs = 500

/**
 * Starts the service as arguments and environment variables say. Resolves once it is ready; it ends the process on a signal. Rejects
 * with an error of one line if it cannot start.
 */
export async function startService({ lan, options }: Pick<CommandLine, 'lan' | 'options'>): Promise<void> {
  const fromEnvironment = optionsFromEnvironment(process.env)
  const logFormat = logFormatOf(fromEnvironment)
  const logger = createLogger(process.stderr, logLevel(process.env.LOG_LEVEL), logFormat)
  const reloads = new Reloads({ environment: process.env, options: fromEnvironment, logger })
  const stopping = new Stopping(logger)
  listenForHangUps(reloads, stopping)
  for (const name of unknownVariables(process.env))
    logger.warn(`${name} is not a setting of Countersign; is it misspelt?`)
  const hosts = lanHosts()
  const given = { ...fromEnvironment, ...options, logger }
  const service = await make(given, lan ? hosts : undefined)
  let port: number
  try {
    port = await service.listen()
  } catch (error) {
    await service.close(0)
    throw error
  }
  // Before "ready" is logged: whoever reads that may send a signal at once.
  stopping.begin(service)
  reloads.begin(service)
  const start = { service, port, lan, hosts, tls: given.tlsCert !== undefined }
  if (process.stdout.isTTY && logFormat !== 'json') process.stdout.write(banner(start))
  else {
    const network = networkText(start)
    if (network !== undefined) logger.info(`Network: ${network}`)
    logger.info('ready', { url: service.publicUrl, port, version, store: service.description.store })
  }
}

/** Makes the service; for the local network if `hosts` are this machine's in it. */
async function make(options: CountersignOptions, hosts: readonly string[] | undefined): Promise<Countersign> {
  if (hosts === undefined) return await createCountersign(options)
  if (options.host !== undefined && !/^(0\.0\.0\.0|::)$/.test(options.host)) {
    options.logger?.warn(`HOST (${options.host}) is not used: with --lan the service listens on all interfaces`)
  }
  return await createOnLan(optionsOnLan(options), hostOnLan(options, hosts))
}

/**
 * Stops a service on SIGTERM, after the drain, and on SIGINT, which comes from a person, without one. Another SIGTERM changes
 * nothing; SIGINT during a stop ends at once.
 */
class Stopping {
  readonly #logger: Logger
  #service: Countersign | undefined
  #stopped: Promise<void> | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** The service is there. */
  begin(service: Countersign): void {
    this.#service = service
    let interruptedAt = Number.NEGATIVE_INFINITY
    process.on('SIGTERM', (signal) => this.stop(signal))
    process.on('SIGINT', (signal) => {
      const repeated = performance.now() - interruptedAt < sameKeyPressMs
      interruptedAt = performance.now()
      if (this.#stopped !== undefined && !repeated) process.exit(1)
      this.stop(signal)
    })
  }

  /** Stops, once; ends the process if there is no service yet. */
  stop(signal: NodeJS.Signals): void {
    if (this.#service === undefined) process.exit(1)
    this.#stopped ??= this.#stop(this.#service, signal)
  }

  async #stop(service: Countersign, signal: NodeJS.Signals): Promise<void> {
    const logger = this.#logger
    logger.info('stopping', { signal })
    try {
      if (signal === 'SIGTERM') await service.drain()
      await service.close()
      logger.info('stopped')
    } catch (error) {
      logger.error('stopping failed', { cause: String(error) })
      process.exitCode = 1
    }
  }
}

/**
 * SIGHUP reads files again. It also comes when the terminal is closed that the service was started in, and then it stops: nobody
 * would see it run on.
 */
function listenForHangUps(reloads: Reloads, stopping: Stopping): void {
  const standardInput = 0
  const hadTerminal = isatty(standardInput)
  process.on('SIGHUP', (signal) => {
    if (hadTerminal && !isatty(standardInput)) stopping.stop(signal)
    else reloads.request()
  })
}

/** The form of the log, which is needed before all settings are checked. */
function logFormatOf({ logFormat }: CountersignOptions): LogFormat {
  return resolveSettings(logFormat === undefined ? {} : { logFormat }).logFormat
}

function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (/^(debug|info|warn|error)$/.test(text)) return text as LogLevel
  throw new TypeError(`LOG_LEVEL must be debug, info, warn or error, not ${JSON.stringify(text)}`)
}
