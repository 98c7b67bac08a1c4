import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { atFileEnd, endMs } from './file-end.ts'

/** A folder of the machine, removed with what is in it when the test ends. */
export const temporaryFolder = (): string => folderUntil((end) => onTestFinished(end, endMs))

/** The same for all tests of a file. */
export const folderOfFile = (): string => folderUntil(atFileEnd)

function folderUntil(atEnd: (end: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-test-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** The address of an SQLite file that is not there yet, and is removed when the test ends. */
export function temporaryStore(): string {
  return `sqlite:${join(temporaryFolder(), 'store.db')}`
}
