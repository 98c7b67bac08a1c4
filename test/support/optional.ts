import { spawnSync } from 'node:child_process'

/**
 * Tells whether a program that part of the tests needs is installed. If it is not, says so on stderr in one line; or throws
 * when REQUIRE_ALL_PARTS=1, so that a build machine cannot skip anything unseen.
 */
export function hasPart(program: string, args: readonly string[] = ['--version']): boolean {
  const { error, status } = spawnSync(program, args, { stdio: 'ignore' })
  if (error === undefined && status === 0) return true
  const message = `SKIPPED: these tests need ${program}, which is not installed or does not run`
  if (process.env.REQUIRE_ALL_PARTS === '1') throw new Error(message)
  process.stderr.write(`${message}\n`)
  return false
}
