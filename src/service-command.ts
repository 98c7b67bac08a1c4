import { banner, networkText } from './banner.ts'
import type { CommandLine } from './command-line.ts'
import { type CountersignOptions, optionsFromEnvironment, unknownVariables } from './config.ts'
import { type Countersign, createCountersign, createOnLan } from './countersign.ts'
import { hostOnLan, lanHosts, optionsOnLan } from './lan.ts'
import { createLogger, type Logger, type LogLevel } from './log.ts'
import { version } from './version.ts'

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
  const logger = createLogger(process.stderr, logLevel(process.env.LOG_LEVEL))
  for (const name of unknownVariables(process.env))
    logger.warn(`${name} is not a setting of Countersign; is it misspelt?`)
  const hosts = lanHosts()
  const given = { ...optionsFromEnvironment(process.env), ...options, logger }
  const service = await make(given, lan ? hosts : undefined)
  let port: number
  try {
    port = await service.listen()
  } catch (error) {
    await service.close(0)
    throw error
  }
  // Before "ready" is logged: whoever reads that may send a signal at once.
  stopOnSignals(service, logger)
  const start = { service, port, lan, hosts }
  if (process.stdout.isTTY) process.stdout.write(banner(start))
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
 * Stops on SIGTERM, after the drain, and on SIGINT, which comes from a person, without one. Another SIGTERM changes
 * nothing; SIGINT during a stop ends at once.
 */
function stopOnSignals(service: Countersign, logger: Logger): void {
  let stopped: Promise<void> | undefined
  let interruptedAt = Number.NEGATIVE_INFINITY
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
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
  process.on('SIGTERM', (signal) => {
    stopped ??= stop(signal)
  })
  process.on('SIGINT', (signal) => {
    const repeated = performance.now() - interruptedAt < sameKeyPressMs
    interruptedAt = performance.now()
    if (stopped !== undefined && !repeated) process.exit(1)
    stopped ??= stop(signal)
  })
}

function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (/^(debug|info|warn|error)$/.test(text)) return text as LogLevel
  throw new TypeError(`LOG_LEVEL must be debug, info, warn or error, not ${JSON.stringify(text)}`)
}
