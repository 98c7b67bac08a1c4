import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The module that has the commit, as tsc emits it. */
const built = join(root, 'dist/src/base/version.js')
const unknown = 'export const commit = undefined;'

/**
 * The commit that a build has: the variable COMMIT if it is set, as where there is no repository, or the one that is
 * checked out. `undefined` if files differ from it, or if there is none.
 */
export function commitOfBuild(): string | undefined {
  const named = process.env.COMMIT ?? ''
  if (named !== '') return named
  try {
    const isOwn = relative(git('rev-parse', '--show-toplevel'), root) === ''
    return isOwn && git('status', '--porcelain') === '' ? git('rev-parse', 'HEAD') : undefined
  } catch {
    return undefined
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}

/** Writes the commit into the built module. Throws if its place is missing, or if the commit is not a hash. */
function writeCommit(commit: string): void {
  if (!/^[0-9a-f]{7,64}$/.test(commit)) throw new Error(`COMMIT is ${commit}, which is not the hash of a commit`)
  const text = readFileSync(built, 'utf8')
  if (!text.includes(unknown)) throw new Error(`${built} has no line "${unknown}"`)
  writeFileSync(built, text.replace(unknown, `export const commit = '${commit}';`))
}

if (import.meta.main) {
  const commit = commitOfBuild()
  if (commit !== undefined) writeCommit(commit)
}
