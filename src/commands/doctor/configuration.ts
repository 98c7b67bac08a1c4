import { type CountersignOptions, resolveSettings, type Settings, unknownVariables } from '../../config.ts'
import { createCountersign, createOnLan } from '../../countersign.ts'
import { hostOnLan, lanHosts, optionsOnLan } from '../../lan.ts'
import type { Logger } from '../../log.ts'
import { isLoopbackHost } from '../../origin.ts'
import type { CommandLine } from '../command-line.ts'
import { workerCount } from '../workers/pool.ts'
import { type Finding, ok, problem, warning } from './check.ts'
import { messageOf } from './words.ts'

/** Settings as the service would use them. */
export interface Configuration {
  readonly settings: Settings
  /** The address that people reach the service by. */
  readonly publicUrl: string
  /** Whether it is for `--lan`. */
  readonly lan: boolean
}

/** What the settings come from. */
export interface Sources {
  readonly environment: NodeJS.ProcessEnv
  /** Those of the environment, under those of the arguments. */
  readonly options: CountersignOptions
  readonly lan: CommandLine['lan']
}

/** What is known of the settings. */
export interface ConfigurationResult {
  readonly findings: readonly Finding[]
  /** `undefined` if the service would not start with them. */
  readonly configuration: Configuration | undefined
}

/** Checks the settings as the start of the service does, without its store and without a port. */
export async function checkConfiguration(sources: Sources): Promise<ConfigurationResult> {
  const findings = unknownVariables(sources.environment).map((name) =>
    warning(`${name} is not a setting of Countersign`, 'Correct its name, or remove it.'),
  )
  try {
    const { configuration, warnings } = await tryOut(sources)
    // Each says what to do.
    findings.push(...warnings.map((saw) => ({ status: 'warning', saw }) as const))
    findings.push(...contradictions(configuration))
    if (findings.length === 0)
      findings.push(ok(`the settings fit; people reach the service at ${configuration.publicUrl}`))
    return { findings, configuration }
  } catch (error) {
    findings.push(problem(messageOf(error), 'Correct that setting; README.md lists them all.'))
    return { findings, configuration: undefined }
  }
}

/** Makes a service that keeps its state in memory and does not listen, so that whatever stops a start stops this. */
async function tryOut(sources: Sources): Promise<{ configuration: Configuration; warnings: readonly string[] }> {
  const { lan } = sources
  const options = lan ? optionsOnLan(sources.options) : sources.options
  const settings = resolveSettings(options)
  workerCount(settings)
  const warnings: string[] = []
  const logger: Logger = {
    debug() {},
    info() {},
    warn: (text) => warnings.push(text),
    error: (text) => warnings.push(text),
  }
  const { redisTlsCa, redisTlsCert, redisTlsKey, redisTlsServerName, evmRpc, workers, ...others } = options
  const tried = { ...others, store: 'sqlite::memory:', logger }
  const service = lan ? await createOnLan(tried, hostOnLan(options, lanHosts())) : await createCountersign(tried)
  const { publicUrl } = service
  await service.close(0)
  return { configuration: { settings, publicUrl, lan }, warnings }
}

/** What is wrong with settings that fit one by one. */
function contradictions({ settings, publicUrl, lan }: Configuration): Finding[] {
  const findings: Finding[] = []
  const { store, secret, trustProxy } = settings
  if (typeof store === 'string' && store.startsWith('redis') && secret === undefined) {
    findings.push(
      problem(
        'secret (COUNTERSIGN_SECRET) is not set, and Redis does not keep one',
        'Set COUNTERSIGN_SECRET to the same text on every instance, such as the output of: openssl rand -base64 32',
      ),
    )
  }
  const { protocol, hostname } = new URL(publicUrl)
  const isLoopback = isLoopbackHost(hostname)
  if (protocol === 'http:' && !isLoopback && !lan) {
    findings.push(
      warning(
        `people reach the service at ${publicUrl}, without TLS, so others in the network can read and take over sessions`,
        'Serve it by https, and set COUNTERSIGN_PUBLIC_URL to that address.',
      ),
    )
  }
  if (trustProxy > 0 && settings.publicUrl === undefined && !lan) {
    findings.push(
      warning(
        `COUNTERSIGN_TRUST_PROXY says that there is a proxy, but the address of the service is ${publicUrl}, that of this machine`,
        'Set COUNTERSIGN_PUBLIC_URL to the address of the proxy.',
      ),
    )
  }
  return findings
}
