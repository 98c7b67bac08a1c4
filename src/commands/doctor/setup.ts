import { type Logger, silentLogger } from '../../base/log.ts'
import { type CountersignOptions, resolveSettings, type Settings, unknownVariables } from '../../service/config.ts'
import { createService } from '../../service/countersign.ts'
import { hostOnLan, lanHosts, optionsOnLan } from '../../service/lan.ts'
import { openCommandStore, type ServiceStore } from '../../service/service-store.ts'
import { isLoopbackHost } from '../../shared/origin.ts'
import { sqliteFile } from '../../store/open.ts'
import type { Store } from '../../store/store.ts'
import { oneLine } from '../command-line.ts'
import { isCountersign, type Look, lookAt, lookAtPort, NoAnswerError } from './ask.ts'
import { type Finding, ok, problem, warning, warningsOf } from './check.ts'

/** What the settings come from, and what else to check. */
export interface Sources {
  readonly environment: NodeJS.ProcessEnv
  /** Those of the environment, under those of the arguments. */
  readonly options: CountersignOptions
  readonly lan: boolean
  /** Further addresses at which people reach the service. */
  readonly urls: readonly string[]
  /** Origins of pages that are to sign users in. */
  readonly origins: readonly string[]
}

/** A setup to check. What several checks look at is looked at once. */
export class Setup {
  readonly settings: Settings
  /** The addresses at which people reach the service: publicUrl first, then those of the arguments. */
  readonly urls: readonly [string, ...string[]]
  /** Origins of pages that sign users in, in addition to the service's own. */
  readonly origins: readonly string[]
  readonly #looks = new Map<string, Promise<Look>>()
  readonly #ending = new AbortController()
  #here: Promise<Look> | undefined
  #opening: Promise<ServiceStore> | undefined

  constructor(settings: Settings, publicUrl: string, { urls, origins }: Pick<Sources, 'urls' | 'origins'>) {
    this.settings = settings
    this.urls = [publicUrl, ...new Set(urls.filter((url) => url !== publicUrl))]
    this.origins = [...new Set(origins.filter((origin) => !this.urls.includes(origin)))]
  }

  get publicUrl(): string {
    return this.urls[0]
  }

  /** The address of the store if it is Redis, which can contain a password. */
  get redisUrl(): string | undefined {
    const { store } = this.settings
    return typeof store === 'string' && store.startsWith('redis') ? store : undefined
  }

  /** The address of the store if it is PostgreSQL, which can contain a password. */
  get postgresUrl(): string | undefined {
    const { store } = this.settings
    return typeof store === 'string' && store.startsWith('postgres') ? store : undefined
  }

  /** The path of the store if it is a file of SQLite. */
  get file(): string | undefined {
    return sqliteFile(this.settings.store)
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
    if (new URL(url).port === '0') {
      return { kind: 'no answer', error: new NoAnswerError('its port is picked at each start') }
    }
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
    this.#opening ??= openCommandStore(this.settings)
    return (await this.#opening).store
  }

  /** Closes the store, if it was opened, and ends what is still being looked at. */
  async end(): Promise<void> {
    this.#ending.abort()
    const opened = await this.#opening?.catch(() => undefined)
    await opened?.close()
  }
}

/**
 * Checks the settings as the start of the service does, without its store and without a port. The setup is `undefined`
 * if the service would not start with them.
 */
export async function readSetup(sources: Sources): Promise<{ findings: Finding[]; setup: Setup | undefined }> {
  const findings = unknownVariables(sources.environment).map(({ name, similar }) => {
    const fix = similar === undefined ? 'Correct its name, or remove it.' : `Did you mean ${similar}?`
    return warning(`Unknown setting ${name}`, fix)
  })
  try {
    const { setup, warnings } = await tryOut(sources)
    // Each says what to do.
    findings.push(...warnings.map((saw) => ({ status: 'warning', saw }) as const))
    findings.push(...contradictions(setup, sources.lan))
    if (findings.length === 0) findings.push(ok(`the settings fit; people reach the service at ${setup.publicUrl}`))
    return { findings, setup }
  } catch (error) {
    findings.push(problem(oneLine(error), 'Correct that setting; docs/settings.md lists them all.'))
    return { findings, setup: undefined }
  }
}

/** Makes a service that keeps its state in memory and does not listen, so that what stops a start stops this. */
async function tryOut(sources: Sources): Promise<{ setup: Setup; warnings: readonly string[] }> {
  const { lan } = sources
  const options = lan ? optionsOnLan(sources.options) : sources.options
  const settings = resolveSettings(options)
  sqliteFile(settings.store)
  const warnings: string[] = []
  const warn: Logger['warn'] = (text) => warnings.push(text)
  const logger: Logger = { ...silentLogger, warn, error: warn }
  const { redis, evmRpc, ...others } = options
  // The default of confirmationCode is no finding, unlike `compare` on a public address.
  const tried = { confirmationCode: 'return', ...others, store: 'sqlite::memory:', logger } as const
  const service = await createService(tried, lan ? { host: hostOnLan(options, lanHosts()) } : undefined)
  const { publicUrl } = service
  await service.close(0)
  return { setup: new Setup(settings, publicUrl, sources), warnings }
}

/** What is wrong with settings that fit one by one. */
function contradictions({ settings, publicUrl, redisUrl, postgresUrl }: Setup, lan: boolean): Finding[] {
  const { protocol, hostname } = new URL(publicUrl)
  const lacksSecret = (redisUrl ?? postgresUrl) !== undefined && settings.secret === undefined
  const secretMissing = problem(
    `secret (COUNTERSIGN_SECRET) is not set, and ${redisUrl ? 'Redis' : 'PostgreSQL'} does not keep one`,
    'Set COUNTERSIGN_SECRET to the same text on every instance, such as the output of: openssl rand -base64 32',
  )
  const warnings = warningsOf(
    [
      protocol === 'http:' && !isLoopbackHost(hostname) && !lan,
      `people reach the service at ${publicUrl}, without TLS, so others in the network can read and take over sessions`,
      'Serve it by https, and set COUNTERSIGN_PUBLIC_URL to that address.',
    ],
    [
      settings.trustProxy > 0 && settings.publicUrl === undefined && !lan,
      `COUNTERSIGN_TRUST_PROXY says that there is a proxy, but the address of the service is ${publicUrl}, ` +
        'that of this machine',
      'Set COUNTERSIGN_PUBLIC_URL to the address of the proxy.',
    ],
  )
  return lacksSecret ? [secretMissing, ...warnings] : warnings
}
