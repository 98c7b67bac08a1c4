import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { startProxy } from './proxy-process.ts'
import { freePort } from './redis-server.ts'

/** The folder with the configuration of Prometheus. */
export const prometheusFolder: string = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url))

/** An element of what a query found. */
export interface Found {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [at: number, value: string]
}

/** A Prometheus that scrapes. */
export class Prometheus {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** What a query finds now. Rejects with what Prometheus says of one that it does not understand. */
  async query(query: string): Promise<readonly Found[]> {
    return (await this.#ask('/api/v1/query', { query })).result
  }

  /** The values of a label over all series that a selector finds. */
  async labelValues(label: string, selector: string): Promise<readonly string[]> {
    return await this.#ask(`/api/v1/label/${label}/values`, { 'match[]': selector })
  }

  /** The alerts, as Prometheus has read and tried them. */
  async alerts(): Promise<readonly { readonly name: string; readonly query: string; readonly health: string }[]> {
    const { groups } = await this.#ask('/api/v1/rules', {})
    return groups.flatMap(({ rules }: { rules: unknown }) => rules)
  }

  // biome-ignore lint/suspicious/noExplicitAny: each address answers with a form of its own.
  async #ask(path: string, parameters: Record<string, string>): Promise<any> {
    const response = await fetch(`${this.#url}${path}?${new URLSearchParams(parameters)}`)
    const { status, data, error } = (await response.json()) as { status: string; data: unknown; error?: string }
    if (status !== 'success') throw new Error(`${parameters.query ?? path}: ${error}`)
    return data
  }
}

/**
 * Starts Prometheus as deploy/prometheus has it, but with this target and twice a second. Stopped when the test ends.
 */
export async function runPrometheus(metricsUrl: string): Promise<Prometheus> {
  const port = await freePort()
  const configuration = await readFile(`${prometheusFolder}/prometheus.yml`, 'utf8')
  const { url } = await startProxy({
    program: 'prometheus',
    port,
    configuration: () =>
      configuration
        .replaceAll('15s', '500ms')
        .replace('127.0.0.1:9464', new URL(metricsUrl).host)
        .replace('alerts.yml', `${prometheusFolder}/alerts.yml`),
    args: (folder, file) => [
      `--config.file=${file}`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
  })
  return new Prometheus(url)
}
