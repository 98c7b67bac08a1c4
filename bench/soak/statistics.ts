import { median } from '../turns.ts'

/** A value that was measured at a time, ms. */
export interface Sample {
  readonly at: number
  readonly value: number
}

/**
 * The slope of a line through samples, value for each ms: the median of the slopes between all pairs (Theil and Sen),
 * which a few samples in the middle of something do not move. 0 for fewer than two samples.
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
