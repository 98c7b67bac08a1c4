import { type Ran, type Run, runWorld } from './run.ts'
import { shortest } from './shortest.ts'

/** What to print of a world that failed: its shortest history, and how to run it again. */
export async function failureOf(run: Run, ran: Ran): Promise<string> {
  const short = await shortest(run, ran)
  const mode = `${run.issuer ? ' --issuer' : ''}${run.liveness ? ' --liveness' : ''}`
  return [
    ...short.history,
    `seed ${run.seed}: ${ran.violation}`,
    `The history above is the shortest that still fails: ${short.numbers.length} of ${ran.numbers.length} steps.`,
    `Run it again: npm run world -- --seed ${run.seed} --steps ${run.steps}${mode}`,
  ].join('\n')
}

/** Runs the worlds of seeds, one after the other. Resolves with what to print of the first that fails, if one does. */
export async function failureIn(seeds: Iterable<number>, options: Omit<Run, 'seed'>): Promise<string | undefined> {
  for (const seed of seeds) {
    const run = { ...options, seed }
    const ran = await runWorld(run)
    if (ran.violation !== undefined) return await failureOf(run, ran)
  }
  return undefined
}
