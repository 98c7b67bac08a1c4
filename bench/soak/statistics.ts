import { ascending, median } from '../harness.ts'

/** A value that was measured at a time, ms. */
export interface Sample {
  readonly at: number
  readonly value: number
}

/**
 * The slope of a line through samples, value for each ms: the median of the slopes between all pairs (Theil and Sen), which a
 * few samples in the middle of something do not move. 0 for fewer than two samples.
 */
export function slopeOf(samples: readonly Sample[]): number {
  const slopes: number[] = []
  for (const [index, first] of samples.entries()) {
    for (const second of samples.slice(index + 1)) {
      if (second.at !== first.at) slopes.push((second.value - first.value) / (second.at - first.at))
    }
  }
  return slopes.length === 0 ? 0 : median(slopes)
}

/** How much a line through samples grows from the first to the last. */
export function growthOf(samples: readonly Sample[]): number {
  const [first] = samples
  const last = samples.at(-1)
  return first === undefined || last === undefined ? 0 : slopeOf(samples) * (last.at - first.at)
}

/** Percentiles of the times that began in one stretch of a run. */
export interface Stretch {
  /** Middle of the stretch, ms. */
  readonly at: number
  readonly count: number
  readonly p50: number
  readonly p99: number
}

/** The percentiles of times over a run, by stretches of `stretchMs`. Stretches without a time are left out. */
export function stretchesOf(times: readonly Sample[], stretchMs: number): Stretch[] {
  const byStretch = Map.groupBy(times, ({ at }) => Math.floor(at / stretchMs))
  return [...byStretch]
    .sort(([a], [b]) => ascending(a, b))
    .map(([stretch, inIt]) => {
      const values = inIt.map(({ value }) => value)
      return {
        at: (stretch + 0.5) * stretchMs,
        count: values.length,
        p50: percentileOf(values, 0.5),
        p99: percentileOf(values, 0.99),
      }
    })
}

/** The nearest rank, so that the answer is a value that was measured; NaN of nothing. */
export function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted(ascending)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN
}
