import { X509Certificate } from 'node:crypto'
import type { Logger } from '../../log.ts'
import { type KeyPair, type PemFile, readPair } from '../../pem.ts'

/** Time between two looks at the files, in milliseconds. */
const pollMs = 10_000

/** Where the certificate and the key of the port are. */
export interface KeyFilesParts {
  readonly cert: PemFile
  readonly key: PemFile
  /** Told of a pair that replaces another, that does not fit, or whose time is not now. */
  readonly log: Logger
}

/**
 * The files of the port's certificate and key. They are read again and again, because no event tells reliably of every way of
 * replacing them: renaming, writing in place, or switching a link to their folder, as Kubernetes does.
 */
export class KeyFiles {
  readonly #parts: KeyFilesParts
  #pair: KeyPair
  #onReplaced: (pair: KeyPair) => void = () => {}
  #poll: NodeJS.Timeout | undefined
  /** Each look waits for the one before, so that none takes what it read for newer than what another one did. */
  #looking: Promise<unknown> = Promise.resolve()
  /** What was wrong with the files at the last look, and whether the log has it. */
  #problem: { readonly cause: string; readonly told: boolean } | undefined

  private constructor(parts: KeyFilesParts, pair: KeyPair) {
    this.#parts = parts
    this.#pair = pair
  }

  /** Reads the files. Rejects with a `TypeError` of one line if they do not fit. */
  static async open(parts: KeyFilesParts): Promise<KeyFiles> {
    const files = new KeyFiles(parts, await readPair(parts.cert, parts.key))
    files.#warnOfTime()
    return files
  }

  /** The pair in use. */
  get pair(): KeyPair {
    return this.#pair
  }

  /** Calls `onReplaced` with each new pair from now on, and looks for one every `everyMs` milliseconds. */
  watch(onReplaced: (pair: KeyPair) => void, everyMs: number = pollMs): void {
    this.#onReplaced = onReplaced
    this.#poll ??= setInterval(() => void this.#look(), everyMs).unref()
  }

  /** Ends the looking. */
  stop(): void {
    clearInterval(this.#poll)
  }

  /**
   * Reads the files now. Resolves with whether they have a new pair. Rejects with a `TypeError` of one line if they do not fit; the
   * pair before stays in use.
   */
  reload(): Promise<boolean> {
    const reloaded = this.#looking.then(() => this.#reload())
    this.#looking = reloaded.catch(() => {})
    return reloaded
  }

  async #reload(): Promise<boolean> {
    const pair = await readPair(this.#parts.cert, this.#parts.key)
    this.#problem = undefined
    if (pair.cert === this.#pair.cert && pair.key === this.#pair.key) return false
    this.#pair = pair
    this.#onReplaced(pair)
    const { subject, validTo } = new X509Certificate(pair.cert)
    this.#parts.log.info('new TLS certificate in use', { subject: subject.replaceAll('\n', ', '), validTo })
    this.#warnOfTime()
    return true
  }

  async #look(): Promise<void> {
    try {
      await this.reload()
    } catch (error) {
      this.#note(error instanceof Error ? error.message : String(error))
    }
  }

  /** Files are replaced one after the other. So only what is still wrong at the second look is logged, and that once. */
  #note(cause: string): void {
    const isSecond = this.#problem?.cause === cause
    if (isSecond && this.#problem?.told !== true) {
      this.#parts.log.error('TLS certificate not replaced: the one before stays in use', { cause })
    }
    this.#problem = { cause, told: isSecond }
  }

  /** Clients refuse such a certificate, but a service that did not start would serve none of them, even after its renewal. */
  #warnOfTime(): void {
    const { cert, log } = this.#parts
    const { validFromDate, validToDate } = new X509Certificate(this.#pair.cert)
    const now = Date.now()
    if (validToDate.getTime() < now) {
      log.warn(`the certificate of ${cert.setting} expired at ${validToDate.toISOString()}; renew it`)
    } else if (validFromDate.getTime() > now) {
      log.warn(`the certificate of ${cert.setting} is not valid before ${validFromDate.toISOString()}`)
    }
  }
}
