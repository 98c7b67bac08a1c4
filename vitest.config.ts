import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/optional.ts', 'test/support/build-pages.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The default of a second measures a busy machine.
    expect: { poll: { timeout: 20_000 } },
    // Real servers, stores and browsers share the machine's cores.
    maxWorkers: 2,
  },
})
