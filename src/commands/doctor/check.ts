import { given } from '../../shared/defined-fields.ts'
import { oneLine } from '../command-line.ts'

/** Result of a check. `skipped`: it could not be made, and is neither good nor bad. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** What a check found. Neither text contains a secret. */
export interface Finding {
  readonly status: Status
  /** What was seen, in one line. */
  readonly saw: string
  /** How to fix it. Problems without one get the check's advice. */
  readonly fix?: string
}

/** A finding with the name of the check that made it. */
export interface Result extends Finding {
  readonly check: string
}

/** One check of a setup. */
export interface Check<Subject> {
  /** Its name in the report. Names stay as they are, because scripts look for them. */
  readonly name: string
  /**
   * Names of checks further up in the list. This one is skipped unless all of them could be made and found no problem.
   */
  readonly needs?: readonly string[]
  /** Whether there is something to check in this setup. Default: in every one. */
  readonly applies?: (subject: Subject) => boolean
  /** Makes the check. An error counts as a problem; its own `advice`, if it has one, comes before that of the check. */
  readonly run: (subject: Subject, signal: AbortSignal) => Promise<Finding | readonly Finding[]>
  /** How to fix the problems and errors that say nothing else. */
  readonly advice: string
}

/** A finding that all is well. */
export function ok(saw: string): Finding {
  return { status: 'ok', saw }
}

/** A finding that needs attention, while users can still sign in. */
export function warning(saw: string, fix: string): Finding {
  return { status: 'warning', saw, fix }
}

/** Warnings of the rows that apply. */
export function warningsOf(...rows: readonly (readonly [applies: boolean, saw: string, fix: string])[]): Finding[] {
  return rows.filter(([applies]) => applies).map(([, saw, fix]) => warning(saw, fix))
}

/** A finding that has to be fixed, by the advice of the check unless `fix` says otherwise. */
export function problem(saw: string, fix?: string): Finding {
  return { status: 'problem', saw, ...given({ fix }) }
}

/** A check that could not be made, and why. */
export function skipped(saw: string): Finding {
  return { status: 'skipped', saw }
}

/** Longest time in milliseconds for one check. Three in a row at most wait for each other. */
const limitMs = 6500

/** Runs checks, each as soon as those that it needs are done. Resolves with their results in the order of the list. */
export async function runChecks<Subject>(checks: readonly Check<Subject>[], subject: Subject): Promise<Result[]> {
  const running = new Map<string, Promise<readonly Result[]>>()
  for (const check of checks) running.set(check.name, runAfter(check, subject, running))
  return (await Promise.all(running.values())).flat()
}

async function runAfter<Subject>(
  check: Check<Subject>,
  subject: Subject,
  running: ReadonlyMap<string, Promise<readonly Result[]>>,
): Promise<readonly Result[]> {
  if (check.applies?.(subject) === false) return []
  const findings = (await reasonToSkip(check, running)) ?? (await runWithin(check, subject))
  return [findings].flat().map(({ status, saw, fix }) => {
    const how = fix ?? (status === 'problem' ? check.advice : undefined)
    return { check: check.name, status, saw, ...given({ fix: how }) }
  })
}

async function reasonToSkip(
  { needs = [] }: Pick<Check<never>, 'needs'>,
  running: ReadonlyMap<string, Promise<readonly Result[]>>,
): Promise<Finding | undefined> {
  for (const name of needs) {
    const statuses = (await running.get(name))?.map(({ status }) => status)
    if (statuses?.includes('problem')) return skipped(`because of the problem of "${name}"`)
    if (statuses?.includes('skipped')) return skipped(`because "${name}" was skipped`)
  }
  return undefined
}

async function runWithin<Subject>(check: Check<Subject>, subject: Subject): Promise<Finding | readonly Finding[]> {
  const abort = new AbortController()
  const { promise: late, resolve } = Promise.withResolvers<Finding>()
  const timer = setTimeout(() => {
    resolve(problem(`no result within ${limitMs / 1000} seconds`, 'Find out what hangs, and run doctor again.'))
    abort.abort()
  }, limitMs)
  try {
    return await Promise.race([check.run(subject, abort.signal), late])
  } catch (error) {
    const { problem: saw = oneLine(error), advice } = error as { readonly problem?: string; readonly advice?: string }
    return problem(saw, advice)
  } finally {
    clearTimeout(timer)
  }
}
