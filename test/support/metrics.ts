import parse, { type Family } from 'parse-prometheus-text-format'
import type { Countersign } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { keptLog } from './log-lines.ts'
import { startService } from './service.ts'

/** A service whose metrics are served. */
export interface MeasuredService {
  readonly url: string
  readonly service: Countersign
  /** `http://127.0.0.1:` and the port of the metrics. */
  readonly metricsUrl: string
  readonly scrape: () => Promise<Scrape>
}

/** Starts a service that serves metrics on a free port, stopped when the test ends. */
export async function startMeasured(options: CountersignOptions = {}): Promise<MeasuredService> {
  const { logger, lines } = keptLog()
  const { url, service } = await startService({ metrics: { port: 0 }, logger, ...options })
  const port = lines.find(({ text }) => text === 'metrics are served')?.fields.port
  const metricsUrl = `http://127.0.0.1:${port}`
  return { url, service, metricsUrl, scrape: () => scrape(metricsUrl) }
}

/** What a scrape said. */
export class Scrape {
  readonly text: string
  readonly families: readonly Family[]

  constructor(text: string) {
    this.text = text
    this.families = parse(text)
  }

  /**
   * The value of the one sample of a counter or gauge that has these labels; the sum if there are several, 0 if there
   * is none.
   */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const samples = this.families.find((family) => family.name === name)?.metrics ?? []
    return samples
      .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels?.[label] === value))
      .reduce((sum, { value }) => sum + Number(value), 0)
  }

  /** Number of observations of a histogram, by the value of one of its labels. */
  counts(histogram: string, label: string): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const [, labels = '', count] of this.text.matchAll(
      new RegExp(`^${histogram}_count\\{(.*)\\} (\\d+)$`, 'gm'),
    )) {
      const value = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels)?.[1] ?? ''
      counts[value] = (counts[value] ?? 0) + Number(count)
    }
    return counts
  }

  /** All values of all labels. */
  labelValues(): ReadonlySet<string> {
    return new Set([...this.text.matchAll(/[{,]\w+="((?:[^"\\]|\\.)*)"/g)].map(([, value]) => value as string))
  }
}

/** Reads metrics. */
export async function scrape(metricsUrl: string): Promise<Scrape> {
  const response = await fetch(`${metricsUrl}/metrics`)
  if (response.status !== 200) throw new Error(`the scrape was answered with ${response.status}`)
  return new Scrape(await response.text())
}
