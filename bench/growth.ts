import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { openStore } from '../src/store/open.ts'
import type { Life, Store } from '../src/store/store.ts'
import { RedisServer, redisCli } from '../test/support/redis-server.ts'
import { pathOf } from './grpc.ts'
import { compare, formatMs, inFlight, printMeasured, printTable, type Subject } from './harness.ts'
import { Http1Connection, Http1Pool } from './http1.ts'
import { type Heard, PoliteClient } from './polite-client.ts'
import { rpc } from './rpc.ts'
import { hasRedis, pin, type ServerProcess, startCountersign } from './servers.ts'
import { makeWallets, type Wallet } from './wallets.ts'

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession } = SessionService.method
const concurrency = 16
/** Steps of the store that fill it at once. */
const fillingAtOnce = 256
/** Time that records live which the store removes while it is watched, in ms: longer than it takes to write them. */
const sweptLifeMs = 20_000
const weekMs = 7 * 86_400_000
/** How long expired records are waited for, in ms: Redis leaves a tenth of all for later. */
const patienceMs = 60_000

/** How much a store is filled with. */
interface Extent {
  readonly sessions: number
  /** Keys in all, those of sessions included. */
  readonly keys: number
  /** Nonces that all expire at once. */
  readonly swept: number
}

const whole: Extent = { sessions: 100_000, keys: 1_000_000, swept: 100_000 }
const little: Extent = { sessions: 5_000, keys: 50_000, swept: 10_000 }

/** A place for a store, with what can be asked of it beside the store's own methods. */
interface Place {
  readonly name: string
  readonly url: string
  /** Bytes that it takes. */
  size(): Promise<number>
}

/** The same calls with an empty store and with a full one, what a session takes there, and how expired records go. */
export async function benchGrowth(): Promise<void> {
  const extent = process.argv.includes('--short') ? little : whole
  await benchOn(sqliteFile, extent)
  if (hasRedis()) await benchOn(redisServer, extent)
}

async function benchOn(open: (opened: AsyncDisposableStack) => Promise<Place>, extent: Extent): Promise<void> {
  const core = pin()
  await using opened = new AsyncDisposableStack()
  const [empty, full] = [await open(opened), await open(opened)]
  await using emptyService = await startCountersign(empty.url, { core })
  const filled = await fill(full, extent, core)
  await using fullService = await startCountersign(full.url, { core })
  using connections = new DisposableStack()
  const subjects = [
    ...(await subjectsOf('empty', emptyService, connections)),
    ...(await subjectsOf(`${extent.keys} keys`, fullService, connections, 'empty')),
  ]
  printMeasured(
    `A store that has grown to ${extent.sessions} sessions and ${extent.keys} keys, ${full.name}, ${concurrency} at once`,
    'calls',
    await compare(subjects),
  )
  const swept = await sweep(full, fullService, extent.swept)
  printTable(
    `What it takes, ${full.name}`,
    ['measured'],
    [
      ['each session, with its user, wallet and list', bytes(filled.sessionBytes)],
      ['each nonce', bytes(filled.nonceBytes)],
      [`all ${extent.keys} keys`, `${(filled.bytes / 1024 ** 2).toFixed(0)} MiB`],
      ['written by a script through the store in', formatMs(filled.ms)],
      [`${extent.swept} nonces that expire at once: the store is rid of them after`, goneCell(swept)],
      ['longest turn of the event loop meanwhile', formatMs(swept.longestCpuMs)],
      ['another client meanwhile, p99', formatMs(swept.polite.times.p99)],
      ['the same without that', formatMs(swept.before.times.p99)],
    ],
  )
}

async function subjectsOf(
  name: string,
  service: ServerProcess,
  open: DisposableStack,
  floor?: string,
): Promise<Subject[]> {
  const pool = open.use(new Http1Pool(service.port))
  const wallets = makeWallets(1024)
  let used = 0
  const signIn = async (worker: number): Promise<string> => {
    const { nonceId, message } = await rpc(pool.of(worker), issueNonce, {})
    const wallet = wallets[used++ % wallets.length] as Wallet
    return (await rpc(pool.of(worker), verifySignIn, { nonceId, ...wallet.prove(message) })).token
  }
  const bearer = `authorization: Bearer ${await signIn(0)}\r\n`
  const check = (worker: number): Promise<unknown> =>
    pool.of(worker).post(pathOf(getCurrentSession), 'application/json', '{}', bearer)
  const subject = (call: string, operation: (worker: number) => Promise<unknown>): Subject => ({
    name: `${call}, ${name}`,
    load: inFlight(concurrency, operation),
    ...(floor === undefined ? {} : { floor: `${call}, ${floor}` }),
    cpuMicros: async () => (await service.usage('cpu')).cpuMicros,
  })
  return [subject('session check', check), subject('whole sign-in', signIn)]
}

interface Filled {
  readonly bytes: number
  readonly sessionBytes: number
  readonly nonceBytes: number
  readonly ms: number
}

/** Fills a store with copies of the records that a real sign-in leaves, under names of their own. */
async function fill(place: Place, { sessions, keys }: Extent, core: number | undefined): Promise<Filled> {
  const user = await recordsOfSignIn(place, core)
  await using store = closing(await openStore(place.url))
  const perUser = user.length
  const startedAt = performance.now()
  const start = await place.size()
  await atOnce(sessions, async () => {
    const id = newId()
    for (const record of user) await put(store.store, { ...record, key: record.key.replace('%', id) })
  })
  const between = await place.size()
  const nonces = keys - sessions * perUser
  await fillNonces(store.store, nonces, { ttlMs: weekMs })
  const end = await place.size()
  return {
    bytes: end,
    sessionBytes: (between - start) / sessions,
    nonceBytes: (end - between) / nonces,
    ms: performance.now() - startedAt,
  }
}

/** A record to copy; the percent sign in its key stands for an id. */
interface Template {
  readonly key: string
  readonly life: Life
  /** Of a value, its text; of a set, its only member. */
  readonly value?: string
  readonly member?: string
}

/** What a sign-in leaves in the store, read from there, so that it stays true if records change. */
async function recordsOfSignIn(place: Place, core: number | undefined): Promise<Template[]> {
  await using service = await startCountersign(place.url, { core })
  using connection = await Http1Connection.open(service.port)
  const { nonceId, message } = await rpc(connection, issueNonce, {})
  const [wallet] = makeWallets(1) as [Wallet]
  const { session } = await rpc(connection, verifySignIn, { nonceId, ...wallet.prove(message) })
  await using opened = closing(await openStore(place.url))
  const { store } = opened
  const templates: Template[] = []
  for (const beginning of ['user:', 'wallet:', 'session:']) {
    if (store.scan === undefined) throw new Error('the store cannot be searched')
    for await (const { key, value } of store.scan(beginning)) {
      const life = beginning === 'session:' ? { ttlMs: weekMs } : 'forever'
      templates.push({ key: `${beginning}${key.startsWith('user:usr_') ? 'usr_' : ''}%`, life, value })
    }
  }
  if (templates.length !== 3) throw new Error(`a sign-in leaves ${templates.map(({ key }) => key)}`)
  // A set cannot be searched for. Its name is a hash, which is longer than an id.
  const half = newId()
  templates.push({
    key: `sessions:%${half}`.slice(0, 'sessions:%'.length + 21),
    life: { ttlMs: weekMs },
    member: session.id,
  })
  return templates
}

async function put(store: Store, { key, life, value, member }: Template): Promise<void> {
  if (value !== undefined) await store.create(key, value, life)
  else if (member !== undefined) await store.addMember(key, member, life)
}

async function fillNonces(store: Store, count: number, life: Life): Promise<void> {
  // As long as what a nonce takes: its message has some five lines of text.
  const value = JSON.stringify({ v: 1, message: 'x'.repeat(400), filled: true })
  await atOnce(count, async () => void (await store.create(`nonce:${newId()}`, value, life)))
}

/** Lets many records expire at once, and waits until the store has removed them. */
async function sweep(place: Place, service: ServerProcess, count: number) {
  await using client = new PoliteClient(service.port, 'nonce')
  await using opened = closing(await openStore(place.url))
  const left = await expiredIn(place, count)
  client.restart()
  await pause(2000)
  const quiet: Heard = await client.heard()
  const expireAt = performance.now() + sweptLifeMs
  await atOnce(count, async () => {
    const ttlMs = Math.max(1, Math.round(expireAt - performance.now()))
    await opened.store.create(`nonce:${newId()}`, 'x'.repeat(450), { ttlMs })
  })
  const late = performance.now() > expireAt
  await opened.store.close()
  await pause(Math.max(0, expireAt - performance.now()))
  client.restart()
  await service.usage('turns')
  let there = await left()
  while (there > count / 100 && performance.now() - expireAt < patienceMs) {
    await pause(50)
    there = await left()
  }
  const goneMs = performance.now() - expireAt
  if (late) console.log('\nSome expired before all were written')
  const polite = await client.heard()
  return { goneMs, there, polite, before: quiet, longestCpuMs: (await service.usage('turns')).turns.longestCpuMs }
}

/** Counts, of so many records that are about to be stored and to expire, those that are still there. */
async function expiredIn({ url }: Place, count: number): Promise<() => Promise<number>> {
  if (!url.startsWith('sqlite:')) {
    const removed = async (): Promise<number> =>
      Number(/^expired_keys:(\d+)/m.exec(await redisCli('-u', url, 'INFO', 'stats'))?.[1])
    const before = await removed()
    return async () => count - ((await removed()) - before)
  }
  return async () => {
    using database = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
    return Number(database.prepare('SELECT count(*) AS n FROM entries WHERE expires_at <= ?').get(Date.now())?.n)
  }
}

async function sqliteFile(opened: AsyncDisposableStack): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'store.db')
  const sizeOf = async (name: string): Promise<number> => (await stat(name).catch(() => ({ size: 0 }))).size
  return {
    name: 'SQLite in a file',
    url: `sqlite:${file}`,
    // What waits in the log is in no page of the file yet.
    size: async () => (await sizeOf(file)) + (await sizeOf(`${file}-wal`)),
  }
}

async function redisServer(opened: AsyncDisposableStack): Promise<Place> {
  const redis = opened.use(await RedisServer.start())
  return {
    name: 'Redis',
    url: redis.url,
    size: async () => Number(/^used_memory:(\d+)/m.exec(await redis.cli('INFO', 'memory'))?.[1]),
  }
}

/** Does so many of a thing, several at once. */
async function atOnce(count: number, once: () => Promise<void>): Promise<void> {
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) await once()
  }
  await Promise.all(Array.from({ length: fillingAtOnce }, worker))
}

function goneCell({ goneMs, there }: { readonly goneMs: number; readonly there: number }): string {
  return goneMs < patienceMs ? formatMs(goneMs) : `${there} left after ${formatMs(patienceMs)}`
}

function newId(): string {
  return randomBytes(16).toString('base64url')
}

function bytes(count: number): string {
  return `${Math.round(count)} bytes`
}

function closing(store: Store) {
  return { store, [Symbol.asyncDispose]: () => store.close() }
}
