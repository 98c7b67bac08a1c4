import { type Ran, type Run, runWorld } from './run.ts'
import { calm } from './world.ts'

/** Time in ms for which worlds are run to shorten a history. */
const limitMs = 20_000

/**
 * A short history that fails as a longer one does: actors are left out, then halves of the steps, then quarters, down to
 * single steps, for as long as that helps; then the faults of steps.
 */
export async function shortest(run: Run, failed: Ran): Promise<Ran> {
  const kind = kindOf(failed.violation)
  const endsAt = performance.now() + limitMs
  let best = failed
  let idle: readonly string[] = []
  const attempt = async (numbers: readonly number[], without = idle): Promise<boolean> => {
    if (performance.now() >= endsAt) return false
    const ran = await runWorld({ ...run, idle: without }, numbers)
    if (kindOf(ran.violation) !== kind) return false
    best = ran
    idle = without
    return true
  }
  for (const name of failed.actors) await attempt(best.numbers, [...idle, name])
  await attempt(best.numbers.map(calm))
  for (let before = Number.POSITIVE_INFINITY; best.numbers.length < before; ) {
    before = best.numbers.length
    for (let size = Math.ceil(before / 2); size >= 1; size = Math.floor(size / 2)) {
      for (let start = 0; start < best.numbers.length; ) {
        if (!(await attempt(best.numbers.toSpliced(start, size)))) start += size
      }
    }
  }
  for (let at = 0; at < best.numbers.length; at++) {
    await attempt(best.numbers.map((number, index) => (index === at ? calm(number) : number)))
  }
  return best
}

/** A violation without the numbers of orders, wallets and the like. */
function kindOf(violation: string | undefined): string | undefined {
  return violation?.replace(/^.*?: (?=a session)/, '').replaceAll(/\d+/g, '#')
}
