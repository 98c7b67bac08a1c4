import { type ELDHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Time between two looks of the monitor at the event loop, in milliseconds. What it measures contains this time. */
const resolutionMs = 10

const quantiles = [0.5, 0.9, 0.99, 1] as const

let shared: Registry | undefined

/**
 * Metrics of the process: those that every Node.js process has under the names that dashboards expect (`process_*`,
 * `nodejs_*`), and the delay of its event loop. Their monitors cannot be stopped, so all services of a process share
 * them.
 */
export function processMetrics(): Registry {
  if (shared !== undefined) return shared
  shared = new Registry()
  collectDefaultMetrics({ register: shared })
  withoutLag(shared)
  addEventLoopDelay(shared)
  return shared
}

/**
 * Takes out the library's own delay of the event loop: it contains the time between two looks, so that an idle process
 * has 10 ms, and without looks it is 292 years.
 */
function withoutLag(registry: Registry): void {
  for (const { name } of registry.getMetricsAsArray()) {
    if (name.startsWith('nodejs_eventloop_lag_')) registry.removeSingleMetric(name)
  }
}

function addEventLoopDelay(registry: Registry): void {
  const monitor = monitorEventLoopDelay({ resolution: resolutionMs })
  monitor.enable()
  new Gauge({
    name: 'countersign_event_loop_delay_seconds',
    help: 'Time for which the event loop was held up, since the scrape before; quantile 1 is the longest.',
    labelNames: ['quantile'],
    registers: [registry],
    collect() {
      for (const quantile of quantiles) this.set({ quantile }, delaySeconds(monitor, quantile))
      monitor.reset()
    },
  })
}

/** Without samples, as right after another scrape, no delay was measured. */
function delaySeconds(monitor: ELDHistogram, quantile: number): number {
  if (monitor.count === 0) return 0
  const measuredMs = (quantile === 1 ? monitor.max : monitor.percentile(quantile * 100)) / 1e6
  return Math.max(0, measuredMs - resolutionMs) / 1000
}
