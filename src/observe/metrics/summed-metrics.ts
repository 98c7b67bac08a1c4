import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'
import { processMetrics } from './process-metrics.ts'

/** Metrics of one process at one time. They survive JSON. */
export type MetricValues = readonly MetricObjectWithValues<MetricValue<string>>[]

/** What this process, which starts the workers and serves nothing, has a metric of. */
const workersName = 'countersign_workers'
const readyName = 'countersign_ready'
const startName = 'process_start_time_seconds'

/**
 * The metrics of several workers as those of one service: sums, and for some gauges the least or the greatest value, as
 * each metric says. What a worker had counted by its end stays in the sum, so no counter goes back when a worker is
 * replaced: Prometheus would take that for a restart of the service, and count everything twice.
 */
export class SummedMetrics {
  /** What was last heard of each worker that runs. */
  readonly #last = new Map<number, MetricValues>()
  /** Counters and histograms of those that have ended. */
  #retained: MetricValues = []

  /** A worker, named by a number that no other has had, has told its metrics. */
  heard(worker: number, values: MetricValues): void {
    this.#last.set(worker, values)
  }

  /** A worker has ended. Counts what was last heard of it from now on. */
  ended(worker: number): void {
    const last = this.#last.get(worker)
    this.#last.delete(worker)
    if (last === undefined) return
    const counted = last.filter(({ type }) => isCounting(type))
    // Unlike getMetricsAsJSON(), at once: there is no moment in which a worker is counted twice, or not at all.
    this.#retained = sum([this.#retained, counted]).getMetricsAsArray() as unknown as MetricValues
  }

  /** All metrics in Prometheus' text format, version 0.0.4, of the workers that there are, by their number. */
  async text(serving: number): Promise<string> {
    const own = await processMetrics().getMetricsAsJSON()
    // The service started when this process did, however often its workers are replaced.
    const ofProcess = own.map((one) => (one.name === startName ? { ...one, aggregator: 'first' as const } : one))
    const ofWorkers = [...this.#last.values()]
    return await sum([ofProcess, ...ofWorkers, this.#retained, ownGauges(serving)]).metrics()
  }
}

/**
 * Whether values of a type only ever grow in a process. Names, because the library's enumeration is one of types only.
 */
function isCounting(type: unknown): boolean {
  return type === 'counter' || type === 'histogram'
}

function sum(all: readonly MetricValues[]): Registry {
  return AggregatorRegistry.aggregate(all.map((one) => [...one]))
}

/** Without a worker that serves, no other metric says that the service is not ready. */
function ownGauges(serving: number): MetricValues {
  const gauge = (name: string, help: string, value: number, aggregator: 'sum' | 'min') =>
    ({ name, help, type: 'gauge', aggregator, values: [{ value, labels: {} }] }) as unknown as MetricValues[number]
  return [
    gauge(workersName, 'Workers that are ready.', serving, 'sum'),
    ...(serving > 0 ? [] : [gauge(readyName, '1 if the service is ready, as /readyz says; else 0.', 0, 'min')]),
  ]
}
