import { type Ran, type Run, runWorld } from './run.ts'

/** Time in ms for which worlds are run to shorten a history. */
const limitMs = 60_000

/** The shortest part of a failing history that still fails: halves are left out, then quarters, down to single steps. */
export async function shortest(run: Run, failed: Ran): Promise<Ran> {
  const kind = kindOf(failed.violation)
  let best = failed
  const endsAt = performance.now() + limitMs
  for (let size = Math.ceil(best.numbers.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < best.numbers.length && performance.now() < endsAt; ) {
      const left = [...best.numbers.slice(0, start), ...best.numbers.slice(start + size)]
      const ran = await runWorld(run, left)
      if (kindOf(ran.violation) === kind) best = ran
      else start += size
    }
  }
  return best
}

/** A violation without the numbers of orders, wallets and the like. */
function kindOf(violation: string | undefined): string | undefined {
  return violation?.replace(/^.*?: (?=a session)/, '').replaceAll(/\d+/g, '#')
}
