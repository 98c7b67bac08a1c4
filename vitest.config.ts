import { globSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

/** Rehearsals and pictures that take minutes: part of `npm run nightly`. */
const nightly = [
  'test/integrations/backend/restarts.test.ts',
  'test/better-auth/instances.test.ts',
  'test/browser/states/page-states.test.ts',
  'test/browser/looks.test.ts',
  'test/browser/wallet-looks.test.ts',
  'test/browser/firefox.test.ts',
  // Needs WebKitGTK's driver and a display.
  'test/browser/webkit.test.ts',
  // Installs workerd.
  'test/browser/client/workerd.test.ts',
  // Builds the image: installs the packages twice.
  'test/deploy/image.test.ts',
  // Installs Bun.
  'test/e2e/bun.test.ts',
  'test/e2e/chaos.test.ts',
  'test/e2e/drains.test.ts',
  'test/e2e/behind-nginx.test.ts',
  'test/e2e/rolling-upgrade.test.ts',
  'test/e2e/shared-port-restarts.test.ts',
  // Install and build an application each.
  'test/examples/next.test.ts',
  'test/examples/sveltekit.test.ts',
  'test/http/port/probes-large.test.ts',
  'test/http/generated-inputs.test.ts',
  'test/http/port/floods.test.ts',
  // Downloads servers of Debian's next release.
  'test/store/redis/newer-servers.test.ts',
  'test/store/redis/topologies.test.ts',
]

/**
 * Files that take eight seconds or more on two cores with nothing else to do: part of `.ci/run`, which requires every
 * part. Other files show the same by single steps, or less of it; a file `x.small.test.ts` has the few cases of
 * `x.test.ts` that `npm test` keeps.
 */
const slow = [
  'test/bench/floors.test.ts',
  'test/better-auth/host-contract.test.ts',
  'test/browser/account.test.ts',
  'test/browser/approval.test.ts',
  'test/browser/both-pages.test.ts',
  'test/browser/client/computer-key.test.ts',
  'test/browser/client/long-poll.test.ts',
  'test/browser/cross-origin.test.ts',
  'test/browser/element-wallets.test.ts',
  'test/browser/element/element.test.ts',
  'test/browser/first-scan.test.ts',
  'test/browser/hand-over-wallet.test.ts',
  'test/browser/hub.test.ts',
  'test/browser/issuer-page.test.ts',
  'test/browser/planted-cookie.test.ts',
  'test/browser/privacy.test.ts',
  'test/browser/react.test.ts',
  'test/browser/return-code.test.ts',
  'test/browser/session-ends.test.ts',
  'test/browser/sign-in-page.test.ts',
  'test/browser/sign-in.test.ts',
  'test/browser/slow-network.test.ts',
  'test/browser/tabs.test.ts',
  'test/browser/tls.test.ts',
  'test/browser/trouble.test.ts',
  'test/browser/wallet-chooser.test.ts',
  'test/browser/wallet-hub.test.ts',
  'test/browser/wallets.test.ts',
  'test/commands/backup.test.ts',
  'test/commands/command.test.ts',
  'test/commands/doctor.test.ts',
  'test/core/order/model.test.ts',
  'test/core/order/relay-races.test.ts',
  'test/core/users/user-administration.test.ts',
  'test/core/users/users.test.ts',
  'test/core/wallet/agreement.test.ts',
  'test/core/wallet/contract.test.ts',
  'test/core/wallet/ethereum/rpc.test.ts',
  'test/core/wallet/ethereum/service.test.ts',
  'test/core/wallet/start-check.test.ts',
  'test/docs/admin.test.ts',
  'test/docs/openapi.test.ts',
  'test/docs/protocol.test.ts',
  'test/docs/testing.test.ts',
  'test/e2e/answer-headers.test.ts',
  'test/e2e/ceilings.test.ts',
  'test/e2e/clocks.test.ts',
  'test/e2e/forward-auth.test.ts',
  'test/e2e/fuzz.test.ts',
  'test/e2e/health.test.ts',
  'test/e2e/lost-wake-ups.test.ts',
  'test/e2e/order-faults.test.ts',
  'test/e2e/processes.test.ts',
  'test/e2e/prometheus.test.ts',
  'test/e2e/proxies.test.ts',
  'test/e2e/rate-limits.test.ts',
  'test/e2e/reasons.test.ts',
  'test/e2e/reload.test.ts',
  'test/e2e/robustness.test.ts',
  'test/e2e/secrets.test.ts',
  'test/e2e/shared-connection.test.ts',
  'test/e2e/shared-limits.test.ts',
  'test/e2e/shared-store.test.ts',
  'test/e2e/stopping.test.ts',
  'test/e2e/time-limits.test.ts',
  'test/e2e/tls.test.ts',
  'test/e2e/workers.test.ts',
  'test/examples/mounting.test.ts',
  'test/http/long-poll.test.ts',
  'test/http/port/shares.test.ts',
  'test/http/port/tls.test.ts',
  'test/newcomer/',
  'test/observe/audit/webhook.test.ts',
  'test/oidc/apache.test.ts',
  'test/oidc/offline.test.ts',
  'test/oidc/races.test.ts',
  'test/oidc/rotation.test.ts',
  'test/oidc/start.test.ts',
  'test/openapi/conformance.test.ts',
  'test/openapi/generated-client.test.ts',
  'test/package/',
  'test/relay/relay.test.ts',
  'test/service/old-node.test.ts',
  'test/soak/probe.test.ts',
  'test/store/redis/operators.test.ts',
  'test/store/redis/redis.test.ts',
  'test/store/redis/sentinel.test.ts',
  'test/store/sqlite-formats.test.ts',
  'test/store/sqlite.test.ts',
  'test/types/closed.test.ts',
  'test/types/consumer.test.ts',
  'test/wire/differential.test.ts',
  'test/wire/grpc-differential.test.ts',
]

/**
 * Tests of how fast the service answers, or of servers that fail within seconds: too many others beside them would be
 * measured too.
 */
const measuring = [
  'test/integrations/backend/restarts.test.ts',
  'test/e2e/chaos.test.ts',
  'test/e2e/drains.test.ts',
  'test/e2e/behind-nginx.test.ts',
  'test/e2e/health.test.ts',
  'test/e2e/shared-port-restarts.test.ts',
  'test/http/port/floods.test.ts',
  'test/http/port/shares.test.ts',
  'test/better-auth/instances.test.ts',
  'test/store/redis/operators.test.ts',
  'test/store/redis/sentinel.test.ts',
  'test/store/redis/topologies.test.ts',
]

/**
 * Tests of the domain: no process, browser or built page, and Redis only beside SQLite (test/support/stores.ts). `npm
 * run test:fast` runs them on SQLite alone.
 */
const domain = globSync(
  [
    'test/*.test.ts',
    'test/{base,core,limits,rpc,shared,types}/**/*.test.ts',
    'test/browser/react/*.test.ts',
    'test/service/config/*.test.ts',
    'test/service/{config,lan}.test.ts',
    'test/integrations/proof/**/*.test.ts',
  ],
  {
    exclude: [
      ...slow,
      // These start processes.
      'test/base/node-version.test.ts',
      'test/plain-protos.test.ts',
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
  test: {
    globalSetup: ['test/support/optional.ts'],
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
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'real parts',
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
