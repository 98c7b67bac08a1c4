import type { Expected } from './model.ts'
import { sum, type Used } from './stage.ts'

/** How far a run may be from the model, as a part of the model's. */
export const tolerance = 0.2

/** One thing that the model says, and what a run came to. */
export interface Comparison {
  readonly name: string
  readonly expected: string
  readonly found: string
  readonly ratio: number
  readonly fits: boolean
}

/** Compares what was used between two moments with what the model expects. */
export function comparisons(expected: Expected, before: Used, after: Used): Comparison[] {
  const seconds = (micros: number): string => `${(micros / 1e6).toFixed(1)} s`
  const mib = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`
  const whole = (count: number): string => String(Math.round(count))
  const compare = (name: string, model: number, found: number, format: (n: number) => string): Comparison => {
    const ratio = found / model
    return { name, expected: format(model), found: format(found), ratio, fits: Math.abs(ratio - 1) <= tolerance }
  }
  const used = (of: (used: Used) => number): number => of(after) - of(before)
  return [
    compare(
      'CPU time of the instances',
      expected.instanceMicros,
      used(({ instanceMicros }) => instanceMicros),
      seconds,
    ),
    compare(
      'CPU time of the masters',
      expected.redisMicros,
      used(({ redisMicros }) => redisMicros),
      seconds,
    ),
    compare(
      'CPU time of the replicas',
      expected.replicaMicros,
      used(({ replicaMicros }) => replicaMicros),
      seconds,
    ),
    compare(
      'commands of Redis',
      expected.commands,
      used(({ commands }) => commands),
      whole,
    ),
    compare(
      'keys',
      expected.keys,
      used(({ keys }) => sum(keys)),
      whole,
    ),
    compare(
      'memory of Redis',
      expected.memory,
      used(({ memory }) => memory),
      mib,
    ),
  ]
}
