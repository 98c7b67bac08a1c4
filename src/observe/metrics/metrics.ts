import { type ELDHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, type GaugeConfiguration, Histogram, Registry } from 'prom-client'
import type { AuditSink } from '../../base/audit.ts'
import type { Observer } from '../../base/observer.ts'
import { oneAtATime } from '../../base/timing/slots.ts'
import { TimeLimit } from '../../base/timing/time-limit.ts'
import { commit, version } from '../../base/version.ts'
import type { OrderRecord } from '../../core/order/order.ts'
import type { CeilingUse } from '../../limits/concurrency.ts'
import { defaultLimits } from '../../limits/limits.ts'
import type { CallObserver, CallOutcome, PartLabel, RouteName } from '../../rpc/invoke.ts'
import { CountersignError, reasons } from '../../shared/errors.ts'
import { orderStatuses } from '../../shared/orders.ts'
import { type StoreReport, storeOperations } from '../../store/map-store.ts'

/** What is read when the metrics are asked for. */
export interface MetricsSources {
  /** The RPCs that are served: their full names, and whether they answer once. */
  readonly methods: readonly { readonly name: string; readonly answersOnce: boolean }[]
  /** Labels of the routes of further parts. */
  readonly partLabels: readonly PartLabel[]
  /** Ids of the wallet adapters. */
  readonly adapters: readonly string[]
  /** What the ceilings are at. */
  readonly ceilingUses: () => readonly CeilingUse[]
  /** Number of open watches of orders. */
  readonly watchers: () => number
  /** Whether the service is ready. One that does not answer within 3 s is not. */
  readonly isReady: () => Promise<boolean>
}

/** What requests without an RPC are for. Those for an unknown path count as {@link other}. */
const routeNames = Object.keys({
  health: 1,
  'forward-auth': 1,
  'key set': 1,
  openapi: 1,
  options: 1,
  page: 1,
} satisfies Record<Exclude<RouteName, PartLabel | 'unknown'>, 1>)

/** Label of all that is not on a list: what callers choose must not become a label. */
const other = 'other'

/** A store of the application's own may never answer. Prometheus waits for 10 s. */
const readinessTime = new TimeLimit(3_000, 500)

/** Upper bounds in seconds of calls: up to 30 s, at which a call that answers once is ended. */
const callBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Upper bounds in seconds of steps of the store: SQLite takes microseconds, and Redis has 2.5 s. */
const storeBuckets = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
]

/**
 * The metrics of a service. Labels have values from lists that the code or the operator's settings fix, so there are as
 * many series as they make, for all that callers send; none has anything of a user.
 *
 * What happens often is counted as it happens; what is counted elsewhere anyway is read when the metrics are asked for.
 */
export class Metrics {
  readonly #registry = new Registry()
  /** What calls can be for, and whether it is answered once. */
  readonly #callees = new Map<string, boolean>()
  readonly #adapters = new Set<string>()
  readonly #calls = new Counter(this.#named('calls_total', 'Calls that are over.', 'method', 'transport', 'outcome'))
  readonly #callSeconds = new Histogram({
    ...this.#named(
      'call_duration_seconds',
      'Time from the arrival of a call to its end; without streams.',
      'method',
      'transport',
    ),
    buckets: callBuckets,
  })
  readonly #storeSeconds = new Histogram({
    ...this.#named(
      'store_operation_duration_seconds',
      'Time that a step of the store took, failed ones included.',
      'operation',
    ),
    buckets: storeBuckets,
  })
  readonly #storeFailures = new Counter(
    this.#named('store_failures_total', 'Steps of the store that failed.', 'operation', 'kind'),
  )
  readonly #orders = new Counter(this.#named('orders_total', 'Orders by the status that they reached.', 'status'))
  readonly #signIns = new Counter(
    this.#named('sign_ins_total', 'Sign-ins by wallet adapter and way.', 'adapter', 'way'),
  )
  readonly #rateLimited = new Counter(this.#named('rate_limited_total', 'Calls that a rate limit refused.', 'group'))
  readonly #text = oneAtATime(() => Registry.merge([this.#registry, processMetrics()]).metrics())

  constructor() {
    // A counter that first appears with 1 shows no increase.
    for (const status of orderStatuses) this.#orders.inc({ status }, 0)
    for (const group of Object.keys(defaultLimits)) this.#rateLimited.inc({ group }, 0)
    for (const operation of storeOperations) {
      for (const kind of ['unavailable', other]) this.#storeFailures.inc({ operation, kind }, 0)
    }
    // Prometheus counts an empty label as absent.
    const running = { version, commit: commit ?? '', node_version: process.versions.node }
    const about = 'Always 1; the labels say what is running.'
    new Gauge(this.#named('build_info', about, ...Object.keys(running))).set(running, 1)
  }

  /** Counts calls. */
  readonly observeCall: CallObserver = ({ method, protocol, outcome, durationMs }) => {
    const answersOnce = this.#callees.get(method)
    const known = answersOnce === undefined ? other : method
    this.#calls.inc({ method: known, transport: protocol, outcome: outcomeLabel(outcome) })
    const group = outcome instanceof CountersignError ? outcome.metadata.limit : undefined
    if (group !== undefined) this.#rateLimited.inc({ group })
    if (answersOnce !== false) this.#callSeconds.observe({ method: known, transport: protocol }, durationMs / 1000)
  }

  /** Counts steps of the store. */
  readonly observeStore: Observer<StoreReport> = ({ operation, failure, durationMs }) => {
    this.#storeSeconds.observe({ operation }, durationMs / 1000)
    if (failure !== undefined) this.#storeFailures.inc({ operation, kind: failureKind(failure) })
  }

  /** Counts orders by the status that they have reached. */
  readonly observeOrder: Observer<OrderRecord> = ({ status }) => this.#orders.inc({ status })

  /** Counts sign-ins. A session that is fetched again is no other sign-in. */
  readonly observeAudit: AuditSink = (event) => {
    if (event.type !== 'sign_in.succeeded' || event.repeated) return
    const adapter = this.#adapters.has(event.adapterId) ? event.adapterId : other
    this.#signIns.inc({ adapter, way: event.orderId === undefined ? 'direct' : 'order' })
  }

  /** Sets what is read when the metrics are asked for. Called once, before the first call. */
  attach({ methods, partLabels, adapters, ceilingUses, watchers, isReady }: MetricsSources): void {
    for (const adapter of adapters) {
      this.#adapters.add(adapter)
      for (const way of ['direct', 'order']) this.#signIns.inc({ adapter, way }, 0)
    }
    for (const name of [...routeNames, ...partLabels]) this.#callees.set(name, true)
    for (const { name, answersOnce } of methods) this.#callees.set(name, answersOnce)
    readGauge(this.#named('watchers', 'Open watches of orders.'), (gauge) => gauge.set(watchers()))
    readGauge(this.#named('ready', '1 if the service is ready, as /readyz says; else 0.'), async (gauge) => {
      gauge.set((await readinessTime.within(isReady(), () => new Error('no answer')).catch(() => false)) ? 1 : 0)
    })
    readGauge(this.#named('ceiling_in_use', 'What clients hold at the moment, by ceiling.', 'ceiling'), (gauge) => {
      for (const { option, held } of ceilingUses()) if (held !== undefined) gauge.set({ ceiling: option }, held)
    })
    readGauge(this.#named('ceiling_limit', 'The most that clients can hold, by ceiling.', 'ceiling'), (gauge) => {
      for (const { option, most } of ceilingUses()) gauge.set({ ceiling: option }, most)
    })
    new Counter({
      ...this.#named('ceiling_refusals_total', 'What was turned away at a ceiling.', 'ceiling'),
      collect() {
        this.reset()
        for (const { option, refusals } of ceilingUses()) this.inc({ ceiling: option }, refusals)
      },
    })
  }

  /** All metrics in Prometheus' text format, version 0.0.4. Calls while they are collected get the same. */
  async text(): Promise<string> {
    return await this.#text()
  }

  /** Name, text and labels of a metric of this service. */
  #named<Label extends string>(name: string, help: string, ...labelNames: Label[]) {
    return { name: `countersign_${name}`, help, labelNames, registers: [this.#registry] }
  }
}

/** A gauge that is read when the metrics are asked for. */
function readGauge(named: GaugeConfiguration<string>, read: (gauge: Gauge) => void | Promise<void>): void {
  const gauge: Gauge = new Gauge({ ...named, collect: () => read(gauge) })
}

/** `ok`, a reason, or how a call ended without one. */
function outcomeLabel(outcome: CallOutcome): string {
  if (outcome === 'ok') return outcome
  return outcome instanceof CountersignError ? outcome.reason : outcome.code
}

function failureKind(failure: unknown): string {
  return failure instanceof CountersignError && reasons[failure.reason].class === 'outage' ? 'unavailable' : other
}

/** Time between two looks of the monitor at the event loop, in milliseconds. What it measures contains this time. */
const resolutionMs = 10

const quantiles = [0.5, 0.9, 0.99, 1] as const

let shared: Registry | undefined

/**
 * Metrics of the process: those that every Node.js process has under the names that dashboards expect (`process_*`,
 * `nodejs_*`), and the delay of its event loop. Their monitors cannot be stopped, so all services of a process share
 * them.
 */
function processMetrics(): Registry {
  if (shared !== undefined) return shared
  shared = new Registry()
  collectDefaultMetrics({ register: shared })
  // The library's own delay of the event loop contains the time between two looks, so that an idle process has 10 ms,
  // and without looks it is 292 years.
  for (const { name } of shared.getMetricsAsArray()) {
    if (name.startsWith('nodejs_eventloop_lag_')) shared.removeSingleMetric(name)
  }
  addEventLoopDelay(shared)
  return shared
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
