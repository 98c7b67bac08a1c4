import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The address of an SQLite file that is not there yet, and is removed when the test ends. */
export async function temporaryStore(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-store-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'store.db')}`
}
