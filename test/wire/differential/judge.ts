import { differencesOf } from './compare.ts'
import type { Difference, Pair } from './differences.ts'

/**
 * Compares two answers with each other, except for the differences that are listed, and notes which of those are
 * needed.
 */
export class Judge {
  readonly #listed: readonly Difference[]
  readonly #used = new Set<string>()

  constructor(listed: readonly Difference[]) {
    this.#listed = listed
  }

  /**
   * The fields in which the answers differ for no reason that is listed, with both values; `undefined` if there are
   * none.
   */
  unexplained(pair: Pair): object | undefined {
    const { plan, ours, theirs } = pair
    let left = differencesOf(ours, theirs)
    for (const { why, fields, when } of this.#listed) {
      const covers = (field: string): boolean => fields === 'all' || fields.includes(field)
      if (!left.some(covers) || !when(pair)) continue
      this.#used.add(why)
      left = left.filter((field) => !covers(field))
    }
    if (left.length === 0) return undefined
    const shown = (answer: Pair['ours']) => Object.fromEntries(left.map((field) => [field, answer[field]]))
    return { plan, ours: shown(ours), theirs: shown(theirs) }
  }

  /** The reasons that no difference has needed so far. */
  get unused(): readonly string[] {
    return this.#listed.map(({ why }) => why).filter((why) => !this.#used.has(why))
  }
}

/** Whether a deadline of one millisecond passed first. It is chance which of the two answers comes. */
export function isChance({ plan, ours, theirs }: Pair): boolean {
  return plan.timeout === '1' && [ours.code, theirs.code].includes('deadline_exceeded')
}
