import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A folder of the machine, removed with what is in it when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The address of an SQLite file that is not there yet, and is removed when the test ends. */
export function temporaryStore(): string {
  return `sqlite:${join(temporaryFolder(), 'store.db')}`
}
