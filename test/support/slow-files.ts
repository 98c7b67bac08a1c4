import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { nightly, slow } from '../lists.ts'

/** Time that a file outside the lists may take on two cores with nothing else to do, in seconds. */
const limitSeconds = 8
/** A run has other files on the same cores, and machines are noisy: so many times the limit fails. */
const slack = 3

/** The time of a file's own tests and hooks, without what it imports. */
interface FileTime {
  readonly path: string
  readonly seconds: number
}

/** A line for each file that belongs in a list, and is in none. */
export function linesAbout(files: readonly FileTime[]): string[] {
  const listed = [...slow, ...nightly]
  const isListed = (path: string) =>
    listed.some((entry) => entry === path || (entry.endsWith('/') && path.startsWith(entry)))
  return files
    .filter(({ path, seconds }) => seconds > limitSeconds * slack && !isListed(path))
    .map(
      ({ path, seconds }) =>
        `SLOW: ${path} took ${Math.round(seconds)} s: make it quicker than ${limitSeconds} s, or move it into the list \`slow\` of test/lists.ts`,
    )
}

/** Fails a run in which a file took far longer than `npm test` has time for. */
export default class SlowFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const root = process.cwd()
    const files = modules.map((module) => ({
      path: relative(root, module.moduleId),
      seconds: module.diagnostic().duration / 1000,
    }))
    for (const line of linesAbout(files)) {
      process.stderr.write(`${line}\n`)
      process.exitCode = 1
    }
  }
}
