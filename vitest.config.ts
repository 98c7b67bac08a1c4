import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { measuring, nightly, slow } from './test/lists.ts'

/**
 * Tests of the domain: no process, browser or built page, and Redis only beside SQLite (test/support/stores.ts). `npm
 * run test:fast` runs them on SQLite alone.
 */
const domain = globSync(
  [
    'test/*.test.ts',
    'test/{base,core,limits,rpc,shared,types,world}/**/*.test.ts',
    'test/browser/react/*.test.ts',
    'test/service/config/*.test.ts',
    'test/service/{config,lan}.test.ts',
    'test/integrations/proof/**/*.test.ts',
    'test/integrations/approvals/{signed-payload,answers,handle,options}.test.ts',
  ],
  {
    exclude: [
      ...slow,
      ...nightly,
      // These start processes.
      'test/base/node-version.test.ts',
      'test/plain-protos.test.ts',
      // This needs the built pages.
      'test/shared/header-text.test.ts',
    ],
  },
)

/** Whether a run names a test file, or the whole of a folder that is listed above. */
const isNamed = (entry: string): boolean =>
  process.argv.some((argument) => argument.startsWith(entry) || `${argument}/` === entry)
const unwanted = [
  ...(process.env.NIGHTLY === undefined ? nightly : []),
  ...(process.env.REQUIRE_ALL_PARTS === '1' ? [] : slow),
]
  .filter((entry) => !isNamed(entry))
  .map((entry) => (entry.endsWith('/') ? `${entry}**` : entry))

/** What processes and pages of the tests need; a run without such tests does without. */
const parts = ['test/support/compile-cache.ts', 'test/support/build-pages.ts']

export default defineConfig({
  // Examples import the package by its name.
  resolve: { alias: [{ find: /^countersign$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) }] },
  test: {
    globalSetup: ['test/support/optional.ts'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default of a second measures a busy machine.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'domain',
          include: domain,
          isolate: false,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'real parts',
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: ['test/browser/**', ...domain, ...measuring, ...unwanted],
          globalSetup: parts,
          // Each test waits for the other parts half of the time.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          isolate: false,
          include: ['test/browser/**/*.test.ts'],
          exclude: unwanted,
          globalSetup: [...parts, 'test/support/browser.ts'],
          setupFiles: ['test/browser/firefox-cannot.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'measuring',
          include: measuring,
          exclude: unwanted,
          globalSetup: parts,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
