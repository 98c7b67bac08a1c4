import { isatty } from 'node:tty'
import { isDeepStrictEqual } from 'node:util'
import { createLogger, type LogFormat, type Logger, type LogLevel, logOutput } from '../base/log.ts'
import { version } from '../base/version.ts'
import {
  type CountersignOptions,
  type Environment,
  givenFor,
  optionsFromEnvironment,
  optionsInFiles,
  resolveSettings,
  unknownVariables,
} from '../service/config.ts'
import { type Countersign, createService } from '../service/countersign.ts'
import { hostOnLan, lanHosts, optionsOnLan } from '../service/lan.ts'
import { isReplaceable } from '../service/live-secrets.ts'
import { isLoopbackHost } from '../shared/origin.ts'
import { type CommandLine, SettingsError } from './command-line.ts'

/**
 * Time in milliseconds within which a second SIGINT is the same one again: a terminal sends it to every process, and
 * npm passes on what it got itself.
 */
const sameKeyPressMs = 500

/**
 * Starts the service as arguments and environment variables say. Resolves once it is ready; it ends the process on a
 * signal. Rejects with an error of one line if it cannot start.
 */
export async function startService({ lan, options }: Pick<CommandLine, 'lan' | 'options'>): Promise<void> {
  const fromEnvironment = checked(() => optionsFromEnvironment(process.env))
  const logFormat = logFormatOf(fromEnvironment)
  const logger = createLogger(logOutput(), logLevel(process.env.LOG_LEVEL), logFormat)
  const given = { ...fromEnvironment, ...options, logger }
  const hosts = lanHosts()
  const lanHostsInUse = lan ? hosts : undefined
  checked(() => resolveSettings(lanHostsInUse === undefined ? given : optionsOnLan(given)))
  const reloads = new Reloads({ environment: process.env, options: fromEnvironment, logger })
  const stopping = new Stopping(logger)
  listenForHangUps(reloads, stopping)
  for (const { name, similar } of unknownVariables(process.env)) {
    logger.warn(`Unknown setting ${name}${similar === undefined ? '' : `. Did you mean ${similar}?`}`)
  }
  const service = await makeService(given, lanHostsInUse)
  const port = await listenOrClose(service)
  // Before "ready" is logged: a reader of that line may send a signal at once.
  stopping.begin(service)
  reloads.begin(service)
  const start = { service, port, lan, hosts, tls: given.tls?.cert !== undefined, isForOthers: isForOthers(given) }
  if (process.stdout.isTTY && logFormat !== 'json') process.stdout.write(banner(start))
  else {
    const phones = phonesText(start)
    if (phones !== undefined) logger.info(`Phones: ${phones}`)
    const { store, clients, open } = service.description
    logger.info(`Wallets: ${walletsText(service.description)}`)
    if (open !== undefined) logger.info(`Open: ${open}`)
    logger.info('ready', { url: service.publicUrl, port, version, store, clients })
  }
}

async function listenOrClose(service: Countersign): Promise<number> {
  try {
    return await service.listen()
  } catch (error) {
    await service.close(0)
    throw error
  }
}

/** Reads settings. What is wrong with one is a {@link SettingsError}. */
function checked<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof TypeError ? new SettingsError(error.message, { cause: error }) : error
  }
}

/**
 * Stops a service on SIGTERM, after the drain, and on SIGINT, which comes from a person, without one. Another SIGTERM
 * changes nothing; SIGINT during a stop ends at once.
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
 * SIGHUP reads files again. It also comes when the terminal is closed that the service was started in; then the service
 * stops.
 */
function listenForHangUps(reloads: Reloads, stopping: Stopping): void {
  const standardInput = 0
  const hadTerminal = isatty(standardInput)
  process.on('SIGHUP', (signal) => {
    if (hadTerminal && !isatty(standardInput)) stopping.stop(signal)
    else reloads.request()
  })
}

/** A service that the command has started. */
export interface Start {
  readonly service: Pick<Countersign, 'publicUrl' | 'description'>
  /** Port that it listens on. */
  readonly port: number
  /** Whether it was started with `--lan`. */
  readonly lan: boolean
  /** Whether the port takes TLS. */
  readonly tls: boolean
  /** Hosts of this machine in its local networks, the likeliest to be reached first. */
  readonly hosts: readonly string[]
  /** Whether the settings are those of a service for more than this machine. */
  readonly isForOthers: boolean
}

/** Whether the options are those of a service for more than this machine. */
function isForOthers({ host = 'localhost', tls, trustProxy }: CountersignOptions): boolean {
  const isLocal = isLoopbackHost(host.includes(':') ? `[${host}]` : host)
  return !isLocal || tls?.cert !== undefined || trustProxy !== undefined || process.env.NODE_ENV === 'production'
}

/** How phones in the local network reach the service. `undefined` if publicUrl is an address of the operator's own. */
export function phonesText(start: Start): string | undefined {
  const { service, port, lan, tls, hosts, isForOthers } = start
  const { publicUrl } = service
  const all = hosts.map((host) => new URL(`${tls ? 'https' : 'http'}://${host}:${port}`).origin)
  const others = all.filter((address) => address !== publicUrl)
  if (!lan) {
    if (!isLoopbackHost(new URL(publicUrl).hostname)) return undefined
    if (isForOthers) {
      return `off. Set COUNTERSIGN_PUBLIC_URL to the address that people open: ${publicUrl} is this machine alone`
    }
    if (all.length === 0) return 'off. This machine is in no network'
    return 'off. Start with --lan to allow phones on this network'
  }
  if (others.length === all.length) return `${publicUrl} (COUNTERSIGN_PUBLIC_URL)`
  const choice = `. If they cannot open it, set COUNTERSIGN_PUBLIC_URL to ${others.join(' or ')}`
  return `${publicUrl} on the same network${others.length === 0 ? '' : choice}`
}

/** The wallet adapters, and what checks their signatures. */
function walletsText({ adapters, verifier, recovery }: Countersign['description']): string {
  const secp256k1 = recovery === undefined ? '' : `, ${recovery} secp256k1`
  return `${adapters.join(', ')} (${verifier} Ed25519${secp256k1})`
}

/** Text for a terminal at the start. */
export function banner(start: Start): string {
  const { service, port, lan } = start
  const { description, publicUrl } = service
  const { clients, open } = description
  // Browsers keep WebCrypto for https and loopback names, so this computer is better off with one of those.
  const here = lan && publicUrl.startsWith('http:') ? new URL(`http://localhost:${port}`).origin : publicUrl
  const row = (name: string, value: string | number | undefined, unit = ''): string =>
    value === undefined ? '' : `\n  ${name.padEnd(10)}${value}${unit}`
  const more = row('Clients:', clients, ' of OpenID Connect') + row('Open:', open)
  return `
  Countersign ${version} is ready

  Address:  ${here}${row('Phones:', phonesText(start))}
  Store:    ${description.store}
  Wallets:  ${walletsText(description)}${more}

  Next:     open ${here} in a browser
            npm run demo   shows every step of a sign-in in this terminal
            docs/          has the calls, the settings and the errors
  Stop:     Ctrl+C

`
}

/** The form of the log, which is needed before all settings are checked. */
function logFormatOf({ logFormat }: CountersignOptions): LogFormat {
  return resolveSettings(logFormat === undefined ? {} : { logFormat }).logFormat
}

/** Level of the log; `info` for an empty text. Throws a `TypeError` for an unknown one. */
function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (/^(debug|info|warn|error)$/.test(text)) return text as LogLevel
  throw new TypeError(`LOG_LEVEL must be debug, info, warn or error, not ${JSON.stringify(text)}`)
}

/**
 * Makes a service of options. If `hosts` are given, which are this machine's in its local networks, the service is for
 * these networks.
 */
async function makeService(options: CountersignOptions, hosts: readonly string[] | undefined): Promise<Countersign> {
  if (hosts === undefined) return await createService(options, undefined)
  if (options.host !== undefined && !/^(0\.0\.0\.0|::)$/.test(options.host)) {
    options.logger?.warn(`HOST (${options.host}) is not used: with --lan the service listens on all interfaces`)
  }
  return await createService(optionsOnLan(options), { host: hostOnLan(options, hosts) })
}

/** What a service was started with. */
export interface Started {
  readonly environment: Environment
  /** What the environment said at the start. */
  readonly options: CountersignOptions
  readonly logger: Logger
}

/** Reads files again for a service, when it is asked to: those of the port's certificate, and those with secrets. */
class Reloads {
  readonly #started: Started
  #service: Pick<Countersign, 'reload'> | undefined
  /** Whether a reload was requested before the service was made. */
  #isAsked = false
  /** Reloads run one after the other, so that what was read last is in force. */
  #reloading: Promise<void> = Promise.resolve()

  constructor(started: Started) {
    this.#started = started
  }

  /** The service is there. */
  begin(service: Pick<Countersign, 'reload'>): void {
    this.#service = service
    if (this.#isAsked) this.request()
  }

  /** Reads everything again, now or as soon as the service is there. The log gets the result, in one line. */
  request(): void {
    const service = this.#service
    if (service === undefined) this.#isAsked = true
    else this.#reloading = this.#reloading.then(() => this.#reload(service))
  }

  async #reload(service: Pick<Countersign, 'reload'>): Promise<void> {
    const { environment, options, logger } = this.#started
    try {
      const now = optionsFromEnvironment(environment)
      const inFiles = optionsInFiles(environment)
      const replaceable = inFiles.filter(({ name }) => isReplaceable(name))
      const changed = await service.reload(
        Object.fromEntries(replaceable.map((option) => [option.name, givenFor(now, option)])),
      )
      logger.info('reloaded', { changed: changed.join(', ') || 'nothing' })
      for (const option of inFiles) {
        if (isReplaceable(option.name)) continue
        if (!isDeepStrictEqual(givenFor(now, option), givenFor(options, option))) {
          logger.warn(`the file of ${option.name} has changed; restart the service to use what is in it`)
        }
      }
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      logger.error('reloading failed: everything stays as it was', { cause })
    }
  }
}
