import { isDeepStrictEqual } from 'node:util'
import type { LogFormat, Logger, LogLevel, LogSink } from '../base/log.ts'
import {
  type CountersignOptions,
  type Environment,
  givenFor,
  optionsFromEnvironment,
  optionsInFiles,
  resolveSettings,
} from '../service/config.ts'
import { type Countersign, createService } from '../service/countersign.ts'
import { hostOnLan, optionsOnLan } from '../service/lan.ts'
import { isReplaceable } from '../service/live-secrets.ts'

/** The form of the log, which is needed before all settings are checked. */
export function logFormatOf({ logFormat }: CountersignOptions): LogFormat {
  return resolveSettings(logFormat === undefined ? {} : { logFormat }).logFormat
}

/** The level of the log. Throws a `TypeError` if the text is none; no text is info. */
export function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (/^(debug|info|warn|error)$/.test(text)) return text as LogLevel
  throw new TypeError(`LOG_LEVEL must be debug, info, warn or error, not ${JSON.stringify(text)}`)
}

/**
 * Standard error, for a logger. Writes the lines of one turn of the event loop together, in one call of the system:
 * under load, a call for each line takes more time than all else about it. Lines that are not written yet are written
 * when the process ends, also after an uncaught error.
 */
export function logOutput(): LogSink {
  const output = process.stderr
  let lines = ''
  const flush = (): void => {
    const written = lines
    lines = ''
    if (written !== '') output.write(written)
  }
  const flushInTick = (): void => process.nextTick(flush)
  process.once('exit', flush)
  return {
    isTTY: output.isTTY,
    write(text) {
      // A tick that a reaction asks for comes after all reactions, and before anything else has its turn.
      if (lines === '') queueMicrotask(flushInTick)
      lines += text
    },
  }
}

/**
 * Makes a service of options. If `hosts` are given, which are this machine's in its local networks, the service is for
 * these networks.
 */
export async function makeService(
  options: CountersignOptions,
  hosts: readonly string[] | undefined,
): Promise<Countersign> {
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
export class Reloads {
  readonly #started: Started
  #service: Pick<Countersign, 'reload'> | undefined
  /** Whether it was asked before there was a service. */
  #isAsked = false
  /** One after the other, so that what was read last is in force. */
  #reloading: Promise<void> = Promise.resolve()

  constructor(started: Started) {
    this.#started = started
  }

  /** The service is there. */
  begin(service: Pick<Countersign, 'reload'>): void {
    this.#service = service
    if (this.#isAsked) this.request()
  }

  /** Reads everything again, now or as soon as the service is there. The log has what came of it, in one line. */
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
