import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Path of the repository, which ends with a slash. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** A file of the repository as text. `path` is its path there, such as `docs/start.md`. */
export function readFromRoot(path: string): Promise<string> {
  return readFile(join(root, path), 'utf8')
}
