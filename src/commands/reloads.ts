import { isDeepStrictEqual } from 'node:util'
import { type CountersignOptions, type Environment, optionsFromEnvironment, optionsInFiles } from '../config.ts'
import type { Countersign } from '../countersign.ts'
import type { ReplaceableOptions } from '../live-secrets.ts'
import type { Logger } from '../log.ts'

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
      const isIn = (option: keyof ReplaceableOptions): boolean => inFiles.includes(option)
      const changed = await service.reload({
        ...(isIn('secret') && now.secret !== undefined && { secret: now.secret }),
        ...(isIn('orderStartKeys') && now.orderStartKeys !== undefined && { orderStartKeys: now.orderStartKeys }),
      })
      logger.info('reloaded', { changed: changed.join(', ') || 'nothing' })
      for (const option of inFiles) {
        if (option === 'secret' || option === 'orderStartKeys') continue
        if (!isDeepStrictEqual(now[option], options[option])) {
          logger.warn(`the file of ${option} has changed; restart the service to use what is in it`)
        }
      }
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      logger.error('reloading failed: everything stays as it was', { cause })
    }
  }
}
