import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { placesOf } from '../../scripts/mutation.ts'
import { mutations } from '../../scripts/mutations.ts'
import { copyWorkingTree } from '../../scripts/working-copy.ts'

/** Steps at the store within which a planted fault is found. */
const mostCalls = 100_000

/**
 * Plants each mutation that fits a text, in a copy of the working tree, and prints the seed that finds it. Resolves with
 * 0 if all are found.
 */
export async function plant(
  text: string,
  { first, steps, liveness }: { readonly first: number; readonly steps: number; readonly liveness: boolean },
): Promise<number> {
  const copy = mkdtempSync(join(tmpdir(), 'countersign-world-'))
  process.once('exit', () => rmSync(copy, { recursive: true, force: true }))
  copyWorkingTree(copy)
  let missed = 0
  for (const mutation of mutations) {
    const { row, within, find, replace } = mutation
    const [place] = placesOf(mutation)
    if (place === undefined) continue
    const fits = String(row) === text || `${place.file} ${within} ${find}`.includes(text)
    if (!fits) continue
    const path = join(copy, place.file)
    const original = readFileSync(path, 'utf8')
    writeFileSync(path, original.slice(0, place.start) + replace + original.slice(place.end))
    const args = ['--seed', String(first), '--calls', String(mostCalls), '--steps', String(steps), '--found']
    const { stdout } = spawnSync(
      process.execPath,
      [join(copy, 'test/world/main.ts'), ...args, ...(liveness ? ['--liveness'] : [])],
      { cwd: copy, encoding: 'utf8' },
    )
    writeFileSync(path, original)
    const found = /^seed \d+: .*$/m.exec(stdout)?.[0]
    if (found === undefined) missed++
    console.log(`${found ?? 'NOT FOUND'}\n  row ${row}, ${place.file}, ${within}: ${replace || 'without'} / ${find}`)
  }
  return missed === 0 ? 0 : 1
}
