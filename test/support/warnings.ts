import { afterAll, expect } from 'vitest'

/**
 * Fails a test file in whose process Node warned of something: a timer with a negative time, a leak of listeners, an
 * interface that is deprecated. Programs that a test starts are processes of their own.
 */

/** Warnings that say nothing of this code: of interfaces that Node calls experimental, which are used on purpose. */
const expected = ['ExperimentalWarning']

const warnings: string[] = []

process.on('warning', ({ name, message, stack }) => {
  if (!expected.includes(name)) warnings.push(`${name}: ${message}\n${stack ?? ''}`)
})

afterAll(async () => {
  // Warnings are emitted a tick later.
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings.splice(0), 'warnings of Node in this file').toEqual([])
})
