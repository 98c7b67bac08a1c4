import { type Ran, type Run, runWorld } from './run.ts'

/** Most worlds that are run to shorten a history. */
const mostTries = 600

/** The shortest part of a failing history that still fails: halves are left out, then quarters, down to single steps. */
export async function shortest(run: Run, failed: Ran): Promise<Ran> {
  const kind = kindOf(failed.violation)
  let best = failed
  let tries = 0
  for (let size = Math.ceil(best.numbers.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < best.numbers.length && tries < mostTries; ) {
      const left = [...best.numbers.slice(0, start), ...best.numbers.slice(start + size)]
      const ran = await runWorld(run, left)
      tries++
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
