/**
 * Runs what takes too long for .ci/run, and the whole test suite on the oldest Node that package.json promises.
 *
 * `npm run nightly` runs every step, which takes about five hours on two cores; `npm run nightly -- bench` runs those
 * whose name contains one of the words, and `npm run nightly -- --part 2/6` each sixth step from the second on. A step
 * that fails does not stop the others. The exit code is 0 only if all of them passed.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

interface Step {
  readonly name: string
  /** A shell command. Programs of node_modules are found by their name. */
  readonly command: string
  /** Time after which the step has failed and is stopped, in minutes. */
  readonly limitMinutes: number
  /** Version of Node that the step runs on. Default: the one of npm scripts. */
  readonly node?: string
  readonly environment?: Readonly<Record<string, string>>
}

/** A new step is one more entry here. */
const steps: readonly Step[] = [
  {
    name: 'test suite on Node 24',
    command: 'vitest run',
    limitMinutes: 60,
    node: '24.21.0',
    // test/base/node-version.test.ts fails if the tests, or programs that they start, run on another version.
    environment: { EXPECTED_NODE_VERSION: '24.21.0', WHOLE_BROWSER: '1' },
  },
  {
    name: 'rehearsals of Redis, and tools of the benchmarks',
    command: 'vitest run test/store/redis/topologies.test.ts test/bench/floors.test.ts test/soak/probe.test.ts',
    limitMinutes: 15,
    environment: { WHOLE_BROWSER: '1' },
  },
  {
    // Its pictures are in screenshots/states.html.
    name: 'every state of every page on every kind of screen',
    command: 'vitest run test/browser/states/page-states.test.ts',
    limitMinutes: 45,
    environment: { WHOLE_BROWSER: '1', SHEET: '1' },
  },
  {
    name: 'tests of pages in Firefox',
    command: 'vitest run test/browser',
    limitMinutes: 30,
    // The tests that fail there are in test/browser/firefox-cannot.ts.
    environment: { TEST_BROWSER: 'firefox' },
  },
  {
    // Needs the Debian packages webkit2gtk-driver and xvfb: `NIGHTLY=1 bash .ci/prepare` installs them.
    name: 'an order each way in WebKit',
    command: 'vitest run test/browser/webkit.test.ts',
    limitMinutes: 5,
  },
  {
    name: 'the service and its port on Bun',
    command: 'vitest run test/e2e/bun.test.ts',
    limitMinutes: 10,
  },
  {
    name: 'floods, instances that are killed, an order in Firefox',
    command:
      'vitest run test/http/port/floods.test.ts test/http/port/probes-large.test.ts test/better-auth/instances.test.ts test/browser/firefox.test.ts',
    limitMinutes: 15,
  },
  {
    name: 'a flood of resumes at the issuer, on a small Redis',
    command: 'vitest run test/oidc/resume-flood.test.ts',
    limitMinutes: 5,
  },
  {
    // Installs each application's library; social-auth and go-oidc are Debian packages of `NIGHTLY=1 bash .ci/prepare`.
    name: 'applications sign in at the issuer, with each setting for e-mail',
    command: 'vitest run test/oidc/applications.test.ts',
    limitMinutes: 20,
  },
  {
    // Installs libraries of pages; oidc-agent and oauthlib are Debian packages of `NIGHTLY=1 bash .ci/prepare`.
    name: 'clients refresh with the scopes that they asked for, with each setting for e-mail',
    command: 'vitest run test/oidc/refreshing.test.ts test/oidc/oidc-agent.test.ts',
    limitMinutes: 20,
  },
  {
    // Installs the first two, and compiles what they need; Roundcube and Dovecot are Debian packages of .ci/prepare.
    name: 'Node-RED, Actual Budget, and Roundcube with Dovecot sign people in at the issuer',
    command: 'vitest run test/oidc/whole-applications.test.ts test/oidc/roundcube.test.ts',
    limitMinutes: 15,
  },
  {
    name: 'what four generators make of the OpenAPI document can be imported',
    command: 'vitest run test/openapi/generators.test.ts',
    limitMinutes: 10,
  },
  {
    name: "the code of wallets' vendors",
    command: 'vitest run test/vendors/wallets.test.ts test/vendors/metamask-in-chromium.test.ts',
    limitMinutes: 20,
  },
  {
    name: "contract wallets on Hardhat's chain",
    command: 'vitest run test/vendors/contract-wallets.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'test wallets and proofs in vitest with jsdom',
    command: 'vitest run test/integrations/proof/jsdom.test.ts',
    limitMinutes: 10,
  },
  {
    name: 'the SDK of MCP signs in at the issuer by a document, and a suite for authorization servers',
    command: 'vitest run test/oidc/mcp-sdk.test.ts',
    limitMinutes: 10,
  },
  {
    name: '30,000 odd inputs over every protocol',
    command: 'vitest run test/http/generated-inputs.test.ts',
    limitMinutes: 15,
  },
  {
    name: 'drains under load',
    command: 'vitest run test/e2e/drains.test.ts',
    limitMinutes: 10,
  },
  {
    name: 'the container image',
    command: 'vitest run test/deploy/image.test.ts',
    limitMinutes: 20,
  },
  {
    name: "the program in Go of examples/oidc/terminals, with a library of Debian's next release",
    command: 'vitest run test/docs/terminals-go.test.ts',
    limitMinutes: 10,
  },
  {
    name: 'the store on Redis 8 and Valkey 8',
    command: 'vitest run test/store/redis/newer-servers.test.ts',
    limitMinutes: 10,
  },
  {
    name: 'the store on PostgreSQL 14, 16, 17 and 18, and behind a pooler that changes its mode',
    command: 'vitest run test/store/postgres/versions.test.ts test/store/postgres/pooler.test.ts',
    limitMinutes: 10,
  },
  {
    name: 'ten restarts behind nginx',
    command: 'vitest run test/e2e/behind-nginx.test.ts',
    limitMinutes: 5,
    environment: { ROLLING_RESTARTS: 'many' },
  },
  {
    name: 'chaos in Redis, in its long form',
    command: 'vitest run test/e2e/chaos.test.ts',
    limitMinutes: 30,
    environment: { CHAOS: 'long' },
  },
  {
    // Builds the image, too. Ends with a table of minutes, commands and words.
    name: 'what users come for, with the package from a registry',
    command: 'vitest run test/package/jobs/jobs.test.ts',
    limitMinutes: 45,
  },
  {
    name: 'a release from two clones',
    command: 'vitest run test/package/release.test.ts',
    limitMinutes: 10,
  },
  {
    name: '10,000 users from each kind of store to each other',
    command: 'vitest run test/commands/copy-many.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'chaos in PostgreSQL, in its long form',
    command: 'vitest run test/e2e/chaos-postgres.test.ts',
    limitMinutes: 45,
    environment: { CHAOS: 'long' },
  },
  {
    name: 'orders against their model, in its long form',
    command: 'vitest run test/core/order/model.test.ts',
    limitMinutes: 15,
    environment: { ORDER_MODEL: 'long' },
  },
  {
    name: 'a simulated world, ten minutes of it',
    command: 'node test/world/main.ts --minutes 10',
    limitMinutes: 12,
  },
  {
    name: 'a simulated world whose faults stop, ten minutes of it',
    command: 'node test/world/main.ts --minutes 10 --liveness',
    limitMinutes: 12,
  },
  {
    name: 'a simulated world with an issuer, ten minutes of it',
    command: 'node test/world/main.ts --issuer --minutes 10',
    limitMinutes: 12,
  },
  {
    name: 'a simulated world with an issuer whose faults stop, ten minutes of it',
    command: 'node test/world/main.ts --issuer --minutes 10 --liveness',
    limitMinutes: 12,
  },
  {
    name: 'everything that keeps state, on PostgreSQL',
    command:
      'vitest run test/core/order test/core/users test/oidc test/rpc test/commands/admin.test.ts test/e2e/sign-in ' +
      'test/e2e/orders test/e2e/sessions test/e2e/wallets test/e2e/known-computers test/e2e/inbox test/e2e/link-orders ' +
      'test/e2e/access-tokens test/e2e/everything-on test/e2e/hooks test/e2e/store-lives test/e2e/proxies',
    limitMinutes: 30,
    environment: { TEST_STORES: 'postgresql' },
  },
  {
    name: "an operator's first day on PostgreSQL",
    command: 'vitest run test/docs/operator-day.test.ts',
    limitMinutes: 5,
  },
  {
    name: '100,000 inputs of damaged bytes',
    command: 'vitest run test/e2e/fuzz.test.ts',
    limitMinutes: 40,
    environment: { FUZZ_INPUTS: '100000' },
  },
  {
    name: 'the former release and this one on one store',
    command: 'vitest run test/e2e/rolling-upgrade.test.ts',
    limitMinutes: 10,
  },
  {
    // Installs nodemailer; Python's own SMTP server receives.
    name: 'messages to users by ntfy, Slack and mail',
    command: 'vitest run test/docs/inbox-messages.test.ts',
    limitMinutes: 5,
  },
  {
    name: 'client and verifier in workerd',
    command: 'vitest run test/browser/client/workerd.test.ts',
    limitMinutes: 5,
  },
  {
    name: 'new applications of Vue, Svelte and Angular',
    command: 'vitest run test/examples/frameworks.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'dapps of RainbowKit, AppKit and wagmi',
    command: 'vitest run test/examples/wagmi.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'examples/next with the newest Next.js',
    command: 'vitest run test/examples/next.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'a new application of SvelteKit',
    command: 'vitest run test/examples/sveltekit.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'fetch in Bun, Deno and React Router',
    command: 'vitest run test/examples/runtimes.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'examples of approvals with MCP and the AI SDK',
    command: 'vitest run test/examples/approvals-agents.test.ts test/examples/agents.test.ts',
    limitMinutes: 20,
  },
  {
    name: 'session checks while Redis is restarted, for five minutes',
    command: 'vitest run test/integrations/backend/restarts.test.ts',
    limitMinutes: 10,
    environment: { SESSION_CHECK_SECONDS: '300' },
  },
  { name: 'every defence has a test that notices its absence', command: 'node scripts/mutate.ts', limitMinutes: 90 },
  {
    name: 'ten minutes of mixed load, with restarts in the middle',
    command: 'node bench/soak/main.ts --minutes 10',
    limitMinutes: 20,
  },
  {
    name: 'no ratio of the benchmark is a fifth below the one in bench/README.md',
    command: 'node bench/main.ts',
    limitMinutes: 60,
  },
]

type Result = { readonly name: string; readonly outcome: string; readonly passed: boolean; readonly seconds: number }

const root = fileURLToPath(new URL('..', import.meta.url))
let running: ChildProcess | undefined

/** Stops a step with everything it started: it leads a process group of its own. */
function stopGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended in the meantime.
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    if (running) stopGroup(running)
    process.exit(1)
  })
}

async function runStep({ name, command, limitMinutes, node, environment }: Step, folder: string): Promise<Result> {
  const startedAt = performance.now()
  const result = (outcome: string): Result => ({
    name,
    outcome,
    passed: outcome === 'passed',
    seconds: Math.round((performance.now() - startedAt) / 1000),
  })
  console.log(`\n== ${name}: ${command}`)
  try {
    // Node comes first: programs of node_modules start `node` as PATH has it.
    const path = [...(node === undefined ? [] : [await fetchNode(node, folder)]), join(root, 'node_modules/.bin')]
    const child = spawn(command, {
      cwd: root,
      shell: true,
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        REQUIRE_ALL_PARTS: '1',
        ...environment,
        PATH: [...path, process.env.PATH].join(delimiter),
      },
    })
    running = child
    let late = false
    const timer = setTimeout(() => {
      late = true
      stopGroup(child)
    }, limitMinutes * 60_000)
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    clearTimeout(timer)
    running = undefined
    if (late) return result(`not done after ${limitMinutes} minutes`)
    return result(code === 0 ? 'passed' : `ended with ${code ?? signal}`)
  } catch (error) {
    console.error(error)
    return result('did not start')
  }
}

/** Installs a version of Node into a folder and returns where its program is. */
async function fetchNode(version: string, folder: string): Promise<string> {
  const packageName = `node-${process.platform}-${process.arch}`
  const prefix = join(folder, version)
  const run = promisify(execFile)
  mkdirSync(prefix, { recursive: true })
  await run('npm', ['install', '--prefix', prefix, '--no-save', '--ignore-scripts', `${packageName}@${version}`], {
    cwd: prefix,
  })
  const programs = join(prefix, 'node_modules', packageName, 'bin')
  const { stdout } = await run(join(programs, 'node'), ['--version'])
  if (stdout.trim() !== `v${version}`) throw new Error(`${packageName}@${version} is Node ${stdout.trim()}`)
  return programs
}

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { part: { type: 'string', default: '1/1' } },
})
const [part = NaN, parts = NaN] = values.part.split('/').map(Number)
const asked = steps.filter(
  ({ name }, index) => index % parts === part - 1 && (words.length === 0 || words.some((word) => name.includes(word))),
)
if (asked.length === 0) {
  console.error(`No such step; there are: ${steps.map(({ name }) => name).join(', ')}`)
  process.exit(1)
}

const folder = mkdtempSync(join(tmpdir(), 'countersign-nightly-'))
// A test starts Node as another system user.
chmodSync(folder, 0o755)
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const results: Result[] = []
for (const step of asked) results.push(await runStep(step, folder))
console.log('\n== summary')
for (const { name, outcome, seconds } of results) console.log(`${name}: ${outcome}, ${seconds} s`)
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1
