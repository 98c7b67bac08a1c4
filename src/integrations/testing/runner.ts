import assert from 'node:assert/strict'
import { CountersignError, type ErrorReason } from '../../shared/errors.ts'

/**
 * The two functions of a test runner that the suites call. Those of node:test and vitest fit as they are, and so do
 * Jest's. The suites need no hooks, and their assertions are those of node:assert.
 */
export interface TestRunner {
  /** Names a group of tests that `define` declares, before it returns. */
  readonly describe: (name: string, define: () => void) => unknown
  /** Declares a test, which fails if the promise rejects. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
}

/**
 * Longest wait for something that has to happen, in milliseconds. A test then fails with a reason instead of hanging.
 */
const patienceMs = 10_000

/** Waits for a promise; rejects with `failure` as the message if it takes longer than 10 s. */
export async function soon<T>(promise: Promise<T>, failure: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new assert.AssertionError({ message: failure })), patienceMs)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Makes calls at once, and waits for all. */
export async function race<T>(count: number, call: (i: number) => Promise<T>): Promise<T[]> {
  return await Promise.all(Array.from({ length: count }, (_, i) => call(i)))
}

/** Asserts that a call rejects with a `CountersignError` of one of these reasons. */
export async function assertRefused(call: Promise<unknown>, ...reasons: readonly ErrorReason[]): Promise<void> {
  await assert.rejects(call, (error) => {
    if (!(error instanceof CountersignError)) throw error
    assert.ok(reasons.includes(error.reason), `refused with ${error.reason}, not ${reasons.join(' or ')}: ${error}`)
    return true
  })
}
