#!/usr/bin/env node
import { optionsFromEnvironment, unknownVariables } from './config.ts'
import { type Countersign, createCountersign } from './countersign.ts'
import { createLogger, type Logger, type LogLevel } from './log.ts'
import { version } from './version.ts'

const help = `Countersign ${version}: wallet sign-in and cross-device approval

Usage: npm start, or: countersign

It takes no arguments. Settings are environment variables, such as PORT, COUNTERSIGN_PUBLIC_URL, COUNTERSIGN_STORE and
COUNTERSIGN_SECRET; README.md lists them all. LOG_LEVEL is debug, info (the default), warn or error.
`

/**
 * Time in milliseconds within which a second SIGINT is the same one again: a terminal sends it to every process, and npm
 * passes on what it got itself.
 */
const sameKeyPressMs = 500

// If whoever reads them goes away, lines are dropped. Without a listener, the error would end the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`countersign: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function main(args: readonly string[]): Promise<void> {
  if (args.length > 0) {
    process.stdout.write(help)
    if (!/^(-h|--help|help)$/.test(args[0] ?? '')) process.exitCode = 1
    return
  }
  const logger = createLogger(process.stderr, logLevel(process.env.LOG_LEVEL))
  for (const name of unknownVariables(process.env))
    logger.warn(`${name} is not a setting of Countersign; is it misspelt?`)
  const service = await createCountersign({ ...optionsFromEnvironment(process.env), logger })
  let port: number
  try {
    port = await service.listen()
  } catch (error) {
    await service.close(0)
    throw error
  }
  // Before "ready" is logged: whoever reads that may send a signal at once.
  stopOnSignals(service, logger)
  if (process.stdout.isTTY) process.stdout.write(banner(service))
  else logger.info('ready', { url: service.publicUrl, port, version, store: service.description.store })
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

function banner({ description, publicUrl }: Countersign): string {
  return `
  Countersign ${version} is ready

  Address   ${publicUrl}
  Store     ${description.store}
  Wallets   ${description.adapters.join(', ')} (${description.verifier} Ed25519)

  Next      open ${publicUrl} in a browser
            npm run demo   shows every step of a sign-in in this terminal
            README.md      has the calls, the settings and the errors
  Stop      Ctrl+C

`
}

function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (/^(debug|info|warn|error)$/.test(text)) return text as LogLevel
  throw new TypeError(`LOG_LEVEL must be debug, info, warn or error, not ${JSON.stringify(text)}`)
}
