import { silentLogger } from '../../log.ts'
import { openServiceStore, type ServiceStore } from '../../service-store.ts'
import type { Store } from '../../store/store.ts'
import { NoAnswerError } from './ask.ts'
import type { Configuration } from './configuration.ts'
import { isCountersign, type Look, lookAt, lookAtPort } from './look.ts'

/** Why nothing answers at a public address that is made of the port 0. */
const portPickedLater = 'its port is picked at each start'

/** A setup under examination. What several checks look at is looked at once. */
export class Examination {
  readonly settings: Configuration['settings']
  /** The addresses at which people reach the service: publicUrl first, then those of the arguments. */
  readonly urls: readonly [string, ...string[]]
  readonly #looks = new Map<string, Promise<Look>>()
  readonly #ending = new AbortController()
  #here: Promise<Look> | undefined
  #opening: Promise<ServiceStore> | undefined

  constructor({ settings, publicUrl }: Configuration, urls: readonly string[]) {
    this.settings = settings
    this.urls = [publicUrl, ...new Set(urls.filter((url) => url !== publicUrl))]
  }

  get publicUrl(): string {
    return this.urls[0]
  }

  /** The address of the store if it is Redis, which can contain a password. */
  get redisUrl(): string | undefined {
    const { store } = this.settings
    return typeof store === 'string' && store.startsWith('redis') ? store : undefined
  }

  /** The address of the service's own port on this machine; `undefined` if the system picks the port at each start. */
  get localUrl(): string | undefined {
    const { port, host } = this.settings
    if (port === 0) return undefined
    const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    return new URL(`http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`).origin
  }

  /** What answers at an address. */
  async lookAt(url: string): Promise<Look> {
    // Node.js would take it for a URL without a port.
    if (new URL(url).port === '0') return { kind: 'no answer', error: new NoAnswerError(portPickedLater, '') }
    const look = this.#looks.get(url) ?? lookAt(url, this.settings, this.#ending.signal)
    this.#looks.set(url, look)
    return await look
  }

  /** What answers on the service's own port on this machine; `undefined` if the system picks the port at each start. */
  lookHere(): Promise<Look> | undefined {
    const { localUrl } = this
    if (localUrl !== undefined) this.#here ??= lookAtPort(localUrl, this.settings, this.#ending.signal)
    return this.#here
  }

  /** Whether a Countersign listens on the port of the settings. */
  async runsHere(): Promise<boolean> {
    const look = await this.lookHere()
    return look !== undefined && isCountersign(look)
  }

  /** Opens the store of the settings, which has to exist if it is a file. */
  async store(): Promise<Store> {
    this.#opening ??= openServiceStore(this.settings, silentLogger)
    return (await this.#opening).store
  }

  /** Closes the store, if it was opened, and ends what is still being looked at. */
  async end(): Promise<void> {
    this.#ending.abort()
    const opened = await this.#opening?.catch(() => undefined)
    await opened?.close()
  }
}
