import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/server/grpc/health/v1/health_pb.ts'
import { Sleep, turns } from '../base/timing/turns.ts'
import { CallEnded } from '../shared/errors.ts'
import { limited, type Method, methodsOf } from './methods.ts'

/** Source of the health service's answers. */
export interface HealthSource {
  /** Full names of the services, such as `countersign.v1.SignInService`. Each has the status of the process. */
  readonly services: readonly string[]
  /** Resolves when the store answers. Settles within the store's time limit. May be called often. */
  readonly ready: () => Promise<void>
  /** Aborts when the server begins to stop. */
  readonly shutdown: AbortSignal
}

/** Time between two probes of the store while there are watchers, in ms. */
const probeIntervalMs = 2_000

/**
 * Time after which an unchanged status is sent again, in ms. gRPC clients ignore the repetition; proxies, and the port
 * of this server, cut silent streams, with limits from 60 s.
 */
const repeatIntervalMs = 30_000

/**
 * Life of a stream that begins while the server stops, in ms. Some clients (gRPC's C core) open the next stream without
 * a pause as soon as one ends, and would do so again and again.
 */
const stoppingStreamMs = 1_000

/**
 * grpc.health.v1.Health, for gRPC clients, load balancers and Kubernetes. Its status is that of `/readyz`: SERVING
 * while the store answers, NOT_SERVING while it does not and from the beginning of a stop. The empty service name
 * stands for the whole server.
 *
 * Check and List probe the store. Watch sends the status at once, then each change, at most about 5 s late, and repeats
 * an unchanged status every 30 s. An unknown service is NOT_FOUND for Check and SERVICE_UNKNOWN for Watch, whose stream
 * stays open. Streams end when the server stops, after NOT_SERVING.
 *
 * Source: https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 */
export function healthMethods(source: HealthSource): readonly Method[] {
  const health = new ServerHealth(source)
  const isKnown = (service: string): boolean => service === '' || source.services.includes(service)
  // Load balancers call this often. One probe of the store at a time serves all of them.
  return methodsOf(Health, {
    check: limited('unlimited', async ({ service }) => {
      if (!isKnown(service)) throw new CallEnded('not_found')
      return { status: await health.probe() }
    }),
    list: limited('unlimited', async () => {
      const status = await health.probe()
      return { statuses: Object.fromEntries(['', ...source.services].map((service) => [service, { status }])) }
    }),
    watch: limited('unlimited', async function* ({ service }, { signal }) {
      for await (const status of health.watch(isKnown(service), signal)) yield { status }
    }),
  })
}

/** The health of this process. One poll serves all watchers. */
class ServerHealth {
  readonly #ready: () => Promise<void>
  readonly #shutdown: AbortSignal
  /** Wakes each watcher, which then reads the status again. */
  readonly #watchers = new Set<() => void>()
  /** The newest result while there are watchers; `undefined` before the first. */
  #status: ServingStatus | undefined
  /** The pause between two probes, for as long as there are watchers. */
  #polling: Sleep | undefined

  constructor({ ready, shutdown }: HealthSource) {
    this.#ready = ready
    this.#shutdown = shutdown
    // One listener for all: removing one of many from a signal takes time in proportion to their number.
    shutdown.addEventListener('abort', () => {
      this.#stopPolling()
      this.#wakeWatchers()
    })
  }

  async probe(): Promise<ServingStatus> {
    if (this.#shutdown.aborted) return ServingStatus.NOT_SERVING
    return await this.#ready().then(
      () => ServingStatus.SERVING,
      () => ServingStatus.NOT_SERVING,
    )
  }

  /**
   * Yields the status of a known service, or SERVICE_UNKNOWN; then each change. A slow reader gets the newest status,
   * not each one in between. Ends when the server stops or the signal aborts.
   */
  async *watch(known: boolean, signal: AbortSignal): AsyncGenerator<ServingStatus, void, undefined> {
    const sleep = new Sleep()
    const wake = (): void => sleep.end()
    this.#addWatcher(wake)
    signal.addEventListener('abort', wake)
    try {
      yield* this.#follow(known, signal, sleep)
    } finally {
      signal.removeEventListener('abort', wake)
      this.#removeWatcher(wake)
    }
  }

  async *#follow(known: boolean, signal: AbortSignal, sleep: Sleep): AsyncGenerator<ServingStatus, void, undefined> {
    const startedAt = performance.now()
    const endsAt = this.#shutdown.aborted ? startedAt + stoppingStreamMs : startedAt
    let repeatAt = startedAt + repeatIntervalMs
    let sent: ServingStatus | undefined
    while (!signal.aborted) {
      const stopping = this.#shutdown.aborted
      const own = stopping ? ServingStatus.NOT_SERVING : this.#status
      const status = known ? own : ServingStatus.SERVICE_UNKNOWN
      const now = performance.now()
      if (status !== undefined && (status !== sent || now >= repeatAt)) {
        sent = status
        repeatAt = now + repeatIntervalMs
        yield status
        continue
      }
      if (stopping && now >= endsAt) return
      await sleep.atMost((stopping ? endsAt : repeatAt) - now)
    }
  }

  #addWatcher(wake: () => void): void {
    this.#watchers.add(wake)
    if (this.#polling !== undefined || this.#shutdown.aborted) return
    this.#polling = new Sleep()
    void this.#poll(this.#polling)
  }

  #removeWatcher(wake: () => void): void {
    this.#watchers.delete(wake)
    turns.delete(wake)
    if (this.#watchers.size === 0) this.#stopPolling()
  }

  #wakeWatchers(): void {
    for (const wake of this.#watchers) turns.add(wake)
  }

  #stopPolling(): void {
    const polling = this.#polling
    this.#polling = undefined
    // The next watcher must not get an old status.
    this.#status = undefined
    polling?.end()
  }

  async #poll(sleep: Sleep): Promise<void> {
    while (this.#polling === sleep) {
      const status = await this.probe()
      if (this.#polling !== sleep) return
      if (status !== this.#status) {
        this.#status = status
        this.#wakeWatchers()
      }
      await sleep.atMost(probeIntervalMs)
    }
  }
}
