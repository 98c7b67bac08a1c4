import { type Check, type Finding, problem, type Result, skipped } from './check.ts'
import { messageOf } from './words.ts'

/** Runs checks, each as soon as those that it needs are done. Resolves with their results in the order of the list. */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
): Promise<readonly Result[]> {
  const running = new Map<string, Promise<readonly Finding[]>>()
  for (const check of checks) running.set(check.name, runAfter(check, subject, running))
  const results = checks.map(async ({ name }) => {
    const findings = (await running.get(name)) ?? []
    return findings.map((finding) => ({ check: name, ...finding }))
  })
  return (await Promise.all(results)).flat()
}

async function runAfter<Subject>(
  check: Check<Subject>,
  subject: Subject,
  running: ReadonlyMap<string, Promise<readonly Finding[]>>,
): Promise<readonly Finding[]> {
  if (check.applies?.(subject) === false) return []
  for (const name of check.needs) {
    const needed = (await running.get(name)) ?? []
    if (needed.some(({ status }) => status === 'problem')) return [skipped(`because of the problem of "${name}"`)]
    if (needed.some(({ status }) => status === 'skipped')) return [skipped(`because "${name}" was skipped`)]
  }
  return await runWithin(check, subject)
}

async function runWithin<Subject>(check: Check<Subject>, subject: Subject): Promise<readonly Finding[]> {
  const { limitMs } = check
  const abort = new AbortController()
  const { promise: late, resolve } = Promise.withResolvers<readonly Finding[]>()
  const timer = setTimeout(() => {
    resolve([problem(`no result within ${limitMs / 1000} seconds`, 'Find out what hangs, and run doctor again.')])
    abort.abort()
  }, limitMs)
  try {
    return await Promise.race([check.run(subject, abort.signal), late])
  } catch (error) {
    return [problem(messageOf(error), 'Mend that, and run doctor again.')]
  } finally {
    clearTimeout(timer)
  }
}
