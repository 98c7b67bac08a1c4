/**
 * `npm run bench [-- part …]`: measures the service beside its floors and prints ratios. Exits with 1 if one is a fifth below that in
 * bench/README.md. With `--write`, stores the ratios there and the figures in bench/results.json.
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { RedisServer } from '../test/support/redis-server.ts'
import { protocols } from './clients.ts'
import { measureFlood } from './flood.ts'
import { application, codeExchange, countersignIssuer, floorIssuer, refreshes } from './issuers.ts'
import {
  ethereumSignInOver,
  orderPaths,
  type Path,
  peerPaths,
  sessionCheckOver,
  signInOver,
  type TurnSize,
} from './paths.ts'
import { changedReadme, type Ratios, readRatios, tooLow } from './ratios.ts'
import {
  type Floor,
  hasRedis,
  pin,
  root,
  type ServerProcess,
  startCountersign,
  startFloor,
  startPostgres,
} from './servers.ts'
import { type Contestant, formatMs, median, printTable, ratios, type Turn, takeTurns } from './turns.ts'
import { delayCommits, measureNotify, measureWakeUps } from './wake-ups.ts'
import { measureWatchers } from './watchers.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** A few turns of each, to see that everything works. */
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})
const size: TurnSize = { concurrency: 64, turnMs: values.short ? 50 : 150 }
// A server with more code than its floor takes longer to compile it: up to 27,000 sign-ins.
const plan = values.short ? { warmUpRounds: 2, rounds: 2 } : { warmUpRounds: 60, rounds: 30 }
const readme = join(root, 'bench/README.md')
const resultsFile = join(root, 'bench/results.json')

/** Absolute figures, by name. */
type Figures = Record<string, { readonly perSecond: number; readonly cpuMicros: number; readonly p99: number }>
const figures: Figures = {}

/** A commit, and when it was measured. */
interface Run {
  readonly date: string
  readonly commit: string
}

/** What is in bench/results.json. */
interface Results extends Run {
  readonly machine: string
  /** Parts that were measured by themselves after the run of everything. */
  readonly later?: Readonly<Record<string, Run>>
  readonly ratios: Ratios
  readonly figures: Figures
}

/** What each part measures; resolves with its ratios, by their names. In all of them more is better. */
const parts: Readonly<Record<string, (core: number | undefined) => Promise<Ratios>>> = {
  'sign-in': (core) => measureProtocols(core, signInOver, peerPaths.signIn),
  ethereum: measureEthereum,
  'session-check': (core) => measureProtocols(core, sessionCheckOver, peerPaths.sessionCheck),
  stores: measureStores,
  issuer: measureIssuer,
  flood: (core) => measureFlood(core, values.short),
  watchers: (core) => measureWatchers(core, values.short),
  'wake-ups': (core) => measureWakeUps(core, values.short),
  notify: () => measureNotify(values.short),
}

/** Each protocol by itself, beside its floors: a server that answers one protocol has compiled for that alone. */
async function measureProtocols(core: number | undefined, pathOver: typeof signInOver, peer: Path): Promise<Ratios> {
  const found: Record<string, number> = {}
  for (const protocol of protocols) {
    const path = pathOver(protocol)
    const floors: [Floor, Path][] = [['least', path]]
    if (protocol.name === 'Connect JSON' || protocol.name === 'gRPC') floors.push(['connect-node', path])
    if (protocol.name === 'REST') floors.push(['better-auth', peer])
    await using redis = await RedisServer.start()
    const turns = await compare([
      [path.name, path, () => startCountersign(redis.url, { core })],
      ...floors.map(
        ([floor, itsPath]) =>
          [`${path.name}: ${floor}`, itsPath, () => startFloor(floor, redis.url, protocol.http, core)] as const,
      ),
    ])
    for (const [floor] of floors) addRatios(found, turns, path.name, `${path.name}: ${floor}`, floor)
  }
  return found
}

/** A sign-in with Ethereum beside one with Ed25519, each on a server of its own. */
async function measureEthereum(core: number | undefined): Promise<Ratios> {
  const found: Record<string, number> = {}
  for (const protocol of protocols.filter(({ name }) => name === 'REST' || name === 'gRPC')) {
    const [ethereum, ed25519] = [ethereumSignInOver(protocol), signInOver(protocol)]
    await using redis = await RedisServer.start()
    const begin = () => startCountersign(redis.url, { core })
    const turns = await compare([
      [ethereum.name, ethereum, begin],
      [`${ed25519.name}, Ed25519`, ed25519, begin],
    ])
    // CPU time alone: a rate is that of the load, whose wallets sign in JavaScript.
    const [ours, theirs] = [ethereum.name, `${ed25519.name}, Ed25519`].map((name) => turns.get(name) ?? [])
    const ratio = median(ratios(theirs ?? [], ours ?? [], ({ cpuMicros }) => cpuMicros))
    found[`${ethereum.name}: CPU of Ed25519 ÷ its CPU`] = ratio
  }
  return found
}

/** Countersign on a SQLite file and on PostgreSQL beside Countersign on Redis. */
async function measureStores(core: number | undefined): Promise<Ratios> {
  const found: Record<string, number> = {}
  for (const path of [
    ...protocols.slice(1, 2).flatMap((one) => [signInOver(one), sessionCheckOver(one)]),
    ...orderPaths,
  ]) {
    await using redis = await RedisServer.start()
    await using postgres = await startPostgres()
    await using folder = await temporaryFolder()
    const stores = {
      Redis: redis.url,
      'SQLite file': `sqlite:${join(folder.path, 'store.db')}`,
      PostgreSQL: postgres.url(),
    }
    const nameOn = (store: string) => `${path.name}, ${store}`
    const turns = await compare(
      Object.entries(stores).map(([name, store]) => [nameOn(name), path, () => startCountersign(store, { core })]),
    )
    for (const name of ['SQLite file', 'PostgreSQL']) addRatios(found, turns, nameOn(name), nameOn('Redis'), 'Redis')
  }
  await using postgres = await startPostgres()
  await delayCommits(postgres, 1)
  const [path] = orderPaths.slice(-1)
  const name = 'order, gRPC, PostgreSQL, 1 ms more for each commit'
  const turns = await compare([[name, path as Path, () => startCountersign(postgres.url(), { core })]])
  found[`${name}: its rate ÷ 350 a second`] = median((turns.get(name) ?? []).map(({ perSecond }) => perSecond)) / 350
  return found
}

/** The token endpoint of Countersign's issuer beside the library that it is built on. Both store in their own process. */
async function measureIssuer(core: number | undefined): Promise<Ratios> {
  const found: Record<string, number> = {}
  await using folder = await temporaryFolder()
  const oidcClients = join(folder.path, 'clients.json')
  await writeFile(oidcClients, JSON.stringify({ clients: [{ metadata: application, first_party: true }] }))
  for (const pathAt of [codeExchange, refreshes]) {
    const path = pathAt(countersignIssuer)
    const turns = await compare([
      [path.name, path, () => startCountersign('sqlite::memory:', { core, oidcClients })],
      [`${path.name}: oidc-koa`, pathAt(floorIssuer), () => startFloor('oidc-koa', '', 'http', core)],
    ])
    addRatios(found, turns, path.name, `${path.name}: oidc-koa`, 'oidc-koa')
  }
  return found
}

/** Starts servers, lets them take turns and prints what they came to. */
async function compare(
  subjects: readonly (readonly [name: string, path: Path, begin: () => Promise<ServerProcess>])[],
): Promise<ReadonlyMap<string, readonly Turn[]>> {
  await using servers = new AsyncDisposableStack()
  using connections = new DisposableStack()
  const contestants: Contestant[] = []
  for (const [name, path, begin] of subjects) {
    const server = servers.use(await begin())
    contestants.push({ name, server, load: await path.connect(server.port, connections, size) })
  }
  const turns = await takeTurns(contestants, plan)
  const rows = contestants.map(({ name }) => {
    const [perSecond, cpuMicros, p99] = (['perSecond', 'cpuMicros', 'p99'] as const).map((figure) =>
      median((turns.get(name) ?? []).map((turn) => turn[figure])),
    ) as [number, number, number]
    figures[name] = { perSecond, cpuMicros, p99 }
    return [name, perSecond.toFixed(0), formatMs(cpuMicros / 1000), formatMs(p99)]
  })
  printTable(subjects[0]?.[0] ?? '', ['a second', 'server CPU', 'p99'], rows)
  return turns
}

/** The CPU time of the other's server for a call by that of this one's, and this one's rate by the other's. */
function addRatios(
  found: Record<string, number>,
  turns: ReadonlyMap<string, readonly Turn[]>,
  own: string,
  other: string,
  label: string,
): void {
  const [ownTurns, otherTurns] = [turns.get(own) ?? [], turns.get(other) ?? []]
  found[`${own}: CPU of ${label} ÷ its CPU`] = median(ratios(otherTurns, ownTurns, (turn) => turn.cpuMicros))
  found[`${own}: its rate ÷ rate of ${label}`] = median(ratios(ownTurns, otherTurns, (turn) => turn.perSecond))
}

async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

const unknown = positionals.filter((name) => parts[name] === undefined)
if (unknown.length > 0 || !hasRedis()) {
  if (unknown.length > 0) console.error(`Unknown part ${unknown.join(', ')}. Parts: ${Object.keys(parts).join(', ')}`)
  process.exit(1)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const machine = `${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores, Node.js ${process.versions.node}, ${process.platform}`
const commit = execFileSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8' }).trim()
console.log(`${machine}, commit ${commit}`)
const core = pin()
const measured: Record<string, number> = {}
for (const [name, measure] of Object.entries(parts)) {
  if (positionals.length === 0 || positionals.includes(name)) Object.assign(measured, await measure(core))
}
const text = await readFile(readme, 'utf8')
const expected = readRatios(text)
printTable(
  'Ratios: more is better',
  ['measured', 'in README'],
  Object.entries(measured).map(([name, ratio]) => [name, ratio.toFixed(2), expected[name]?.toFixed(2) ?? '']),
)
if (values.write) {
  const run = { date: new Date().toISOString().slice(0, 10), commit }
  const kept = positionals.length === 0 ? undefined : (JSON.parse(await readFile(resultsFile, 'utf8')) as Results)
  const results: Results = {
    machine: kept?.machine ?? machine,
    ...(kept === undefined ? run : { date: kept.date, commit: kept.commit }),
    later: { ...kept?.later, ...Object.fromEntries(positionals.map((part) => [part, run])) },
    ratios: { ...kept?.ratios, ...measured },
    figures: { ...kept?.figures, ...figures },
  }
  const later = Object.entries(results.later ?? {}).map(([part, one]) => `; ${part}: ${one.date}, commit ${one.commit}`)
  const where = `${results.machine}; ${results.date}, commit ${results.commit}${later.join('')}.`
  await writeFile(readme, changedReadme(text, measured, where))
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`)
} else if (!values.short) {
  const low = tooLow(measured, expected)
  for (const name of low) console.error(`A fifth or more below bench/README.md: ${name}`)
  process.exitCode = low.length === 0 ? 0 : 1
}
