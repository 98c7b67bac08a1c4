import { spawnSync } from 'node:child_process'

/** The programs that a part of the tests needs, and that a machine may lack. */
const optionalParts: readonly string[] = ['redis-server', 'chromium']

/** Whether a program is installed. Where it is missing and REQUIRE_ALL_PARTS=1, as on a build machine, it throws instead. */
export function hasPart(program: string): boolean {
  const { error, status } = spawnSync(program, ['--version'], { stdio: 'ignore' })
  if (error === undefined && status === 0) return true
  if (process.env.REQUIRE_ALL_PARTS === '1') throw new Error(`${program} is not installed or does not run`)
  return false
}

/** Says once for each missing program, before any test runs, that what needs it is skipped. */
export default function announceSkips(): void {
  for (const program of optionalParts) {
    if (program === 'redis-server' && process.env.REDIS_URL) continue
    if (!hasPart(program)) process.stderr.write(`SKIPPED: the tests that need ${program}, which is not installed\n`)
  }
}
