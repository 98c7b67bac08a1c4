import { afterAll } from 'vitest'
import { endFile, endMs } from './file-end.ts'

// Vitest evaluates this module before each test file, also where files share all others.
afterAll(endFile, endMs)
