import { beforeAll, expect, type RunnerTask } from 'vitest'

/**
 * Tests that fail in Firefox, by file and full name, and why. Looked at with TEST_BROWSER=firefox. The list may only shrink: a
 * listed test that passes fails the run, as does a name that no test has.
 */
const cannot: Readonly<Record<string, Readonly<Record<string, string>>>> = {}

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from it.
beforeAll(({}, { file }) => {
  if (process.env.TEST_BROWSER !== 'firefox') return
  const path = file.name
  const expected = cannot[path] ?? {}
  const listed = testsOf(file.tasks).filter(({ fullTestName }) => fullTestName in expected)
  for (const test of listed) test.fails = true
  expect(listed.map(({ fullTestName }) => fullTestName).sort()).toEqual(Object.keys(expected).sort())
})

function testsOf(tasks: readonly RunnerTask[]): Extract<RunnerTask, { type: 'test' }>[] {
  return tasks.flatMap((task) => (task.type === 'suite' ? testsOf(task.tasks) : [task]))
}
