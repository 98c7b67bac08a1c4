#!/usr/bin/env node
import { optionsFromEnvironment, unknownVariables } from './config.ts'
import { type Countersign, createCountersign } from './countersign.ts'
import { createLogger, type LogLevel } from './log.ts'
import { version } from './version.ts'

const help = `Countersign ${version}: wallet sign-in and cross-device approval

Usage: npm start, or: countersign

It takes no arguments. Settings are environment variables, such as PORT, COUNTERSIGN_PUBLIC_URL, COUNTERSIGN_STORE and
COUNTERSIGN_SECRET; README.md lists them all. LOG_LEVEL is debug, info (the default), warn or error.
`

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
  if (process.stdout.isTTY) process.stdout.write(banner(service))
  else logger.info('ready', { url: service.publicUrl, port, version, store: service.description.store })
  stopOnSignals(service, logger)
}

function stopOnSignals(service: Countersign, logger: ReturnType<typeof createLogger>): void {
  let stopping = false
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal means now.
    if (stopping) process.exit(1)
    stopping = true
    logger.info('stopping', { signal })
    service.close().then(
      () => logger.info('stopped'),
      (error: unknown) => {
        logger.error('stopping failed', { cause: String(error) })
        process.exitCode = 1
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
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
