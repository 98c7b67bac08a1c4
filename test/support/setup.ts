import { afterAll } from 'vitest'
import { endFile } from './file-end.ts'

// Vitest evaluates this module before each test file, also where files share all others. Folders with thousands of
// packages are removed for minutes.
afterAll(endFile, 300_000)
