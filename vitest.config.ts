import { defineConfig } from 'vitest/config'

/**
 * Rehearsals and pictures that take minutes: part of `npm run nightly`, and of a run that names them. What they show of single
 * steps is shown by other tests, too.
 */
const nightly = [
  'test/backend/restarts.test.ts',
  'test/browser/looks.test.ts',
  'test/browser/wallet-looks.test.ts',
  // Builds the image: installs the packages twice.
  'test/deploy/image.test.ts',
  'test/e2e/chaos.test.ts',
  'test/e2e/rolling-upgrade.test.ts',
  // Installs and builds an application.
  'test/examples/next.test.ts',
  'test/store/redis/topologies.test.ts',
]
const isWanted = (file: string): boolean => process.env.NIGHTLY !== undefined || process.argv.includes(file)

/** Tests of how fast the service answers, or of servers that fail within seconds: too many others beside them would be measured too. */
const measuring = [
  'test/backend/restarts.test.ts',
  'test/e2e/chaos.test.ts',
  'test/e2e/behind-nginx.test.ts',
  'test/e2e/health.test.ts',
  'test/http/port/floods.test.ts',
  'test/better-auth/instances.test.ts',
  'test/store/redis/operators.test.ts',
  'test/store/redis/sentinel.test.ts',
  'test/store/redis/topologies.test.ts',
]

/** Tests of real browsers, servers and stores, which share two cores: one that fails is tried once more, and the run says so. */
const real = [
  'audit',
  'backend',
  'better-auth',
  'browser',
  'client',
  'contract',
  'deploy',
  'e2e',
  'examples',
  'http',
  'newcomer',
  'package',
  'pages',
  'relay',
  'store',
].map((folder) => `test/${folder}/**/*.test.ts`)

const unwanted = nightly.filter((file) => !isWanted(file))

export default defineConfig({
  test: {
    globalSetup: ['test/support/optional.ts', 'test/support/compile-cache.ts', 'test/support/build-pages.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default of a second measures a busy machine.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'real parts',
          include: real,
          exclude: [...measuring, ...unwanted],
          // Each test waits for the other parts half of the time.
          maxWorkers: 3,
          retry: 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'domain',
          include: ['test/**/*.test.ts'],
          exclude: [...measuring, ...real],
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
          maxWorkers: 2,
          retry: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
