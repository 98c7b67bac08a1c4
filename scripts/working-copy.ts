import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository, which ends in a slash. */
export const root = fileURLToPath(new URL('..', import.meta.url))

/** The files of the working tree, relative to it: those that git tracks, and new ones that it does not ignore. */
export function filesOfWorkingTree(): readonly string[] {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  return list
    .toString()
    .split('\0')
    .filter((file) => file !== '' && file !== 'node_modules')
}

/** Copies files of the working tree into a folder, which has the packages of the original's node_modules. */
export function copyWorkingTree(folder: string, files = filesOfWorkingTree()): void {
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
}
