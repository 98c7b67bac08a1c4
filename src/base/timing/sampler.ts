/** Shortest time in milliseconds between two reports of the same address and reason. */
const samplePeriodMs = 1_000

/** Time in milliseconds between two looks at what is to be written. */
const flushIntervalMs = 250

/** Most pairs of address and reason that are counted apart. Beyond it, all other addresses count as one. */
const maxSampledPairs = 1_000

/** A pair reported within the last second. */
interface SampledPair {
  /** Number of refusals that are not reported yet. */
  held: number
  /** Reports the newest refusal. */
  report: (repeated?: number) => void
  reportedAt: number
}

/**
 * Thins out refusals of the same address and reason, which a caller can cause at will. Without any, it holds no memory
 * and no timer.
 */
export class Sampler {
  readonly #pairs = new Map<string, SampledPair>()
  #timer: NodeJS.Timeout | undefined

  /** Reports the first of a pair at once. `report` gets the number of refusals, if it is not one. */
  add(address: string, reason: string, report: (repeated?: number) => void): void {
    const own = `${reason} ${address}`
    const key = this.#pairs.has(own) || this.#pairs.size < maxSampledPairs ? own : reason
    const pair = this.#pairs.get(key)
    if (pair === undefined) {
      this.#pairs.set(key, { held: 0, report, reportedAt: performance.now() })
      this.#timer ??= setInterval(() => this.#flush(), flushIntervalMs).unref()
      report()
    } else {
      pair.held++
      pair.report = report
    }
  }

  #flush(): void {
    const now = performance.now()
    for (const [key, pair] of this.#pairs) {
      if (now - pair.reportedAt < samplePeriodMs) continue
      if (pair.held === 0) this.#pairs.delete(key)
      else {
        pair.report(pair.held)
        pair.held = 0
        pair.reportedAt = now
      }
    }
    if (this.#pairs.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
