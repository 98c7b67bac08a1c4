import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * What the many processes of a run compile is compiled once: those that inherit the environment, and services of
 * `spawnService`. The first project of a run that needs it makes the folder.
 */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.NODE_COMPILE_CACHE !== undefined) return undefined
  const folder = await mkdtemp(join(tmpdir(), 'countersign-compiled-'))
  process.env.NODE_COMPILE_CACHE = folder
  // A process that a test has just killed may still be writing.
  return () => rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
