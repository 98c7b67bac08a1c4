import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A copy of an example, in a folder of its own that is removed when the test ends, with the package's sources in place
 * of the package `countersign`, and a store that leaves no file behind.
 */
export async function copyExample(path: string): Promise<{ readonly folder: string; readonly file: string }> {
  const folder = temporaryFolder()
  const file = join(folder, 'main.ts')
  const program = await readFile(join(root, path), 'utf8')
  const runnable = program
    .replaceAll("from 'countersign'", `from ${JSON.stringify(join(root, 'src/index.ts'))}`)
    .replace('createCountersign({', "createCountersign({ store: 'sqlite::memory:',")
  await writeFile(file, runnable)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return { folder, file }
}
