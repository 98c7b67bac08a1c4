import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RedisServer } from '../test/support/redis-server.ts'
import { figure, inFlight, printTable, printVerdict, type Scale } from './harness.ts'
import { orderProtocols } from './order-protocols.ts'
import { betterAuth, type Client, forgetSignIns, knowsAll, type Protocol, protocols } from './protocols.ts'
import type { Cell } from './results.ts'
import {
  hasRedis,
  pin,
  type ServerProcess,
  startBetterAuth,
  startConnectNodeSignIn,
  startCountersign,
  startOrderFloor,
  startSignInFloor,
} from './servers.ts'
import { type Contestant, type Tally, takeTurns, warmUp } from './turns.ts'

/** What is measured: one of the things that clients ask for. */
interface Work {
  /** What one time is, and the unit that is counted. */
  readonly title: string
  readonly unit: string
  readonly ways: readonly Way[]
  /** The peer's own way, if it does this at all. */
  readonly peer?: Way
  /** The first is measured on all stores. */
  readonly floors: readonly FloorKind[]
  /** Whether anything is promised of the ratio to the first floor, and not of that of the stores alone. */
  readonly isJudged: boolean
  /** The servers on each store, beside Countersign's. */
  readonly servers: readonly ServerStart[]
  /** Length of a turn in ms. */
  readonly turnMs: number
  /** Whether a server knows everybody who is going to ask for it; it is warmed up until it does. Default: it does. */
  readonly knowsAll?: (server: ServerProcess, kind: Kind) => boolean
}

/** One of the protocols that it is asked for over. */
interface Way {
  readonly name: string
  readonly http: 'http' | 'http2'
  /** The servers that are asked, in the order of their turns: what is compared is next to each other. */
  readonly kinds: readonly Kind[]
  /** Connects for so many in flight; what is returned asks once. Connections join `open`. */
  connect(port: number, concurrency: number, open: DisposableStack): Promise<(worker: number) => Promise<unknown>>
}

/** What a floor is; `FloorWork` says what each does of a sign-in. */
type FloorKind = 'bare' | 'least' | 'same commands'

/** What a server is, of those that take turns. */
type Kind = 'Countersign' | FloorKind | 'connect-node' | 'Better Auth'

/** How a server is started on a store. Countersign has both versions of HTTP on one port. */
interface ServerStart {
  readonly kind: Kind
  readonly http: 'http' | 'http2' | 'any'
  readonly begin: (store: string, core: number | undefined) => Promise<ServerProcess>
}

const storeNames = ['memory', 'SQLite file', 'Redis'] as const
type StoreName = (typeof storeNames)[number]
/** The store on which all are measured. On others, if there are any, Countersign and the first floor will do. */
const judgedStore: StoreName = 'Redis'

/** Share of a turn from which the core of the load counts as busy all the time. */
const saturated = 0.98
/**
 * How many are in flight while a server is warmed up, and how many connections it has: the more, the sooner it has done enough. They
 * stay until all is measured, because connections that end make Node.js compile anew what streams are made of.
 */
const warmUpInFlight = 64
/** Length of a turn while servers are warmed up, in ms. */
const warmUpTurnMs = 300
/** How long a server is asked at a time that does not know everybody yet. */
const warmMs = 100
/** Sessions that are asked for, so that not all read one key. */
const sessionCount = 16

function onBoth(
  kind: Kind,
  begin: (store: string, http: 'http' | 'http2', core: number | undefined) => Promise<ServerProcess>,
): ServerStart[] {
  return (['http', 'http2'] as const).map((http) => ({ kind, http, begin: (store, core) => begin(store, http, core) }))
}

const countersign: ServerStart = {
  kind: 'Countersign',
  http: 'any',
  begin: (store, core) => startCountersign(store, { core }),
}
const prototypes = onBoth('connect-node', startConnectNodeSignIn)
const peer: ServerStart = { kind: 'Better Auth', http: 'http', begin: startBetterAuth }
const [bare, least, sameCommands] = (['bare', 'least', 'same commands'] as const).map((work) =>
  onBoth(work, (store, http, core) => startSignInFloor(store, work, http, core)),
) as [ServerStart[], ServerStart[], ServerStart[]]

/** The protocols, and the peer's own. */
function waysOf(
  floors: Work['floors'],
  callOf: (client: Client, concurrency: number) => Promise<(worker: number) => Promise<unknown>>,
): Required<Pick<Work, 'ways' | 'peer' | 'floors'>> {
  const kindsOf = ({ name }: Protocol): Kind[] => {
    const prototype: Kind[] = name === 'Connect JSON' || name === 'gRPC' ? ['connect-node'] : []
    const [first, ...others] = floors
    return [...(first === undefined ? [] : [first]), 'Countersign', ...others, ...prototype]
  }
  const wayOf = (protocol: Protocol, kinds: readonly Kind[]): Way => ({
    name: protocol.name,
    http: protocol.http,
    kinds,
    connect: async (port, concurrency, open) =>
      await callOf(await protocol.connect(port, concurrency, open), concurrency),
  })
  return {
    floors,
    ways: protocols.map((protocol) => wayOf(protocol, kindsOf(protocol))),
    peer: wayOf(betterAuth, ['Better Auth']),
  }
}

const wholeSignIn: Work = {
  title: 'Whole sign-in',
  unit: 'sign-ins',
  isJudged: true,
  ...waysOf(['least', 'same commands', 'bare'], async (client) => (worker) => client.signIn(worker)),
  servers: [...least, ...sameCommands, ...bare, ...prototypes, peer],
  turnMs: 180,
  // Somebody's first sign-in makes a user.
  knowsAll: ({ port }, kind) => knowsAll(port, kind === 'Better Auth'),
}

const sessionCheck: Work = {
  title: 'Session check',
  unit: 'checks',
  isJudged: true,
  ...waysOf(['bare'], async (client, concurrency) => {
    const tokens: string[] = []
    while (tokens.length < Math.min(sessionCount, concurrency)) tokens.push(await client.signIn(0))
    return (worker) => client.check(worker, tokens[worker % tokens.length] as string)
  }),
  servers: [...bare, ...prototypes, peer],
  turnMs: 120,
}

const wholeOrder: Work = {
  title: 'Whole order with a watcher',
  unit: 'orders',
  floors: ['bare'],
  isJudged: false,
  ways: orderProtocols.map((protocol) => ({
    name: protocol.name,
    http: protocol.http,
    kinds: ['bare', 'Countersign'],
    connect: protocol.connect,
  })),
  servers: onBoth('bare', startOrderFloor),
  // An order is many calls.
  turnMs: 250,
}

/** Whole sign-ins over every protocol, on every store. */
export async function benchSignIn(scale: Scale): Promise<void> {
  const all = await measure(wholeSignIn, scale)
  printTables(wholeSignIn, all)
  await benchMixed(wholeSignIn, scale)
  const onRedis = all.on(judgedStore)
  promise(onRedis, 'REST and Connect JSON at least 0.8 of the least with the same result, by rate and by CPU', {
    protocols: ['REST', 'Connect JSON'],
    against: 'least',
    atLeast: 0.8,
  })
  promise(onRedis, 'gRPC at least 0.7 of the least with the same result on node:http2, by rate and by CPU', {
    protocols: ['gRPC'],
    against: 'least',
    atLeast: 0.7,
  })
  promise(onRedis, 'REST and Connect JSON at least 6 times Better Auth, by rate and by CPU', {
    protocols: ['REST', 'Connect JSON'],
    against: 'Better Auth',
    atLeast: 6,
    // One in flight measures how long the trips take.
    inFlightFrom: 2,
  })
  promise(onRedis, 'gRPC at least 4 times Better Auth, by rate and by CPU', {
    protocols: ['gRPC'],
    against: 'Better Auth',
    atLeast: 4,
    inFlightFrom: 2,
  })
  promiseP99(onRedis, 1.3)
  promiseStores(all)
}

/** Session checks over every protocol, on every store. */
export async function benchSessionCheck(scale: Scale): Promise<void> {
  const all = await measure(sessionCheck, scale)
  printTables(sessionCheck, all)
  promise(all.on(judgedStore), 'a session check at least 0.8 of a bare server with one GET, by rate and by CPU', {
    protocols: protocols.map(({ name }) => name),
    against: 'bare',
    atLeast: 0.8,
  })
  const mixed = await benchMixed(sessionCheck, scale)
  const alones = Array.from(mixed, ([inFlight, alone]) => ({ inFlight, alone }))
  judge(alones, (judged, suffix, isAim) => {
    const broken = judged.flatMap(({ inFlight, alone }) => {
      const [grpc, connectJson] = [alone.get('gRPC') as Tally, alone.get('Connect JSON') as Tally]
      const ratio = grpc.cpuUnder(connectJson)
      return ratio >= 0.7 ? [] : [`with ${inFlight} in flight: ${ratio.toFixed(2)}`]
    })
    printVerdict(`a session check over gRPC at least 0.7 of one over Connect JSON, by CPU${suffix}`, broken, '', isAim)
  })
  promiseStores(all)
}

/** Whole orders, each watched by its computer, on every store. */
export async function benchOrder(scale: Scale): Promise<void> {
  const all = await measure(wholeOrder, scale)
  printTables(wholeOrder, all)
  promiseStores(all)
}

/** One protocol on one store with so many in flight. */
interface MeasuredCell {
  readonly store: StoreName
  readonly protocol: string
  readonly inFlight: number
  tallyOf(kind: Kind): Tally | undefined
  /** The same on another store. */
  elsewhere(store: StoreName): MeasuredCell | undefined
}

/** Everything that was measured. */
class MeasuredCells {
  readonly cells: readonly MeasuredCell[]

  constructor(cells: readonly MeasuredCell[]) {
    this.cells = cells
  }

  on(store: StoreName): MeasuredCells {
    return new MeasuredCells(this.cells.filter((cell) => cell.store === store))
  }
}

function nameOf({ store, protocol, inFlight }: MeasuredCell): string {
  return `${protocol} on ${store} with ${inFlight} in flight`
}

/**
 * The addresses of the stores, with a file for each server that has one. Files and servers join `open`. In short, one store: to start
 * the servers for another takes longer than to measure them.
 */
async function openStores(scale: Scale, open: AsyncDisposableStack): Promise<Map<StoreName, () => string>> {
  const stores = new Map<StoreName, () => string>()
  const withRedis = hasRedis()
  if (!scale.short || !withRedis) stores.set('memory', () => 'sqlite::memory:')
  if (!scale.short) {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
    open.defer(async () => await rm(folder, { recursive: true, force: true }))
    let files = 0
    stores.set('SQLite file', () => `sqlite:${join(folder, `${files++}.db`)}`)
  }
  if (withRedis) {
    const { url } = open.use(await RedisServer.start())
    stores.set('Redis', () => url)
  }
  return new Map([...stores].filter(([name]) => name.toLowerCase().includes(scale.store)))
}

/**
 * Measures each protocol with servers of its own, Countersign's among them: a floor speaks one protocol, and what is compared has
 * compiled for as much. What it costs to serve all at once is a table of its own.
 */
async function measure(work: Work, scale: Scale): Promise<MeasuredCells> {
  const tallies = new Map(scale.inFlight.map((inFlight) => [inFlight, new Map<string, Tally>()]))
  const [first, last] = [work.ways[0], work.ways.at(-1)]
  for (let start = 0; start < scale.starts; start++) {
    for (const way of work.ways) {
      // In short, one of each version of HTTP: to start the servers for all takes longer than to measure them.
      const isLeftOut = scale.short && scale.protocol === '' && ![first, last].includes(way)
      if (!isLeftOut && way.name.toLowerCase().includes(scale.protocol)) await measureWay(work, way, scale, tallies)
    }
  }
  return cellsOf(work, tallies)
}

async function measureWay(
  work: Work,
  way: Way,
  scale: Scale,
  tallies: ReadonlyMap<number, Map<string, Tally>>,
): Promise<void> {
  const core = pin()
  await using open = new AsyncDisposableStack()
  const asked: Asked[] = []
  const stores = await openStores(scale, open)
  for (const [store, addressOf] of stores) {
    const isFull = store === judgedStore || stores.size === 1
    const ways = isFull && work.peer !== undefined ? [way, work.peer] : [way]
    for (const asking of ways) {
      for (const kind of asking.kinds) {
        if (!isFull && kind !== 'Countersign' && kind !== work.floors[0]) continue
        const start = [countersign, ...work.servers].find(
          (one) => one.kind === kind && (one.http === 'any' || one.http === asking.http),
        )
        if (start === undefined) continue
        const server = await begun(start, addressOf(), core, open)
        // What is promised: to be near the first floor on one store, and how fast the others are by that one.
        const isClose = kind === 'Countersign' || (work.isJudged && isFull && kind === work.floors[0])
        asked.push({ name: keyOf(store, kind, way.name), kind, server, way: asking, isClose })
      }
    }
  }
  await measureAll(work, asked, scale, tallies)
}

/** Warms all up, and lets them take turns with each number in flight. */
async function measureAll(
  work: Work,
  asked: readonly Asked[],
  scale: Scale,
  tallies: ReadonlyMap<number, Map<string, Tally>>,
): Promise<void> {
  if (!scale.short && work.knowsAll !== undefined) await signEverybodyIn(work.knowsAll, asked)
  using connections = new DisposableStack()
  const inFlightBefore = Math.max(warmUpInFlight, ...tallies.keys())
  const contestants = await contestantsOf(asked, inFlightBefore, connections)
  await warmUp(contestants, inFlightBefore, warmUpTurnMs * scale.warmUp, !scale.short)
  const turnMs = work.turnMs * scale.turn
  for (const [inFlight, ofThese] of tallies) {
    const plan = { inFlight, inFlightBefore, turnMs }
    await takeTurns(contestants, { ...plan, rounds: scale.rounds }, ofThese)
    const closely = contestants.filter(({ isClose }) => isClose)
    if (closely.length > 0) await takeTurns(closely, { ...plan, rounds: scale.closeRounds }, ofThese)
  }
}

/** A server that takes turns, and how it is asked. */
interface Asked {
  readonly name: string
  readonly kind: Kind
  readonly server: ServerProcess
  readonly way: Way
  /** Whether it has turns after those of all. */
  readonly isClose?: boolean
}

async function begun(
  { begin }: ServerStart,
  store: string,
  core: number | undefined,
  open: AsyncDisposableStack,
): Promise<ServerProcess> {
  const server = open.use(await begin(store, core))
  // Another server may have its port later.
  open.defer(() => forgetSignIns(server.port))
  return server
}

async function contestantsOf(
  asked: readonly Asked[],
  concurrency: number,
  connections: DisposableStack,
): Promise<(Asked & Contestant)[]> {
  const contestants: (Asked & Contestant)[] = []
  for (const one of asked) {
    contestants.push({ ...one, call: await one.way.connect(one.server.port, concurrency, connections) })
  }
  return contestants
}

/** On connections of its own: it takes so long that a server closes those that are idle meanwhile. */
async function signEverybodyIn(knowsAll: NonNullable<Work['knowsAll']>, asked: readonly Asked[]): Promise<void> {
  using connections = new DisposableStack()
  for (const { server, kind, call } of await contestantsOf(asked, warmUpInFlight, connections)) {
    while (!knowsAll(server, kind)) await inFlight(warmUpInFlight, call)(performance.now() + warmMs, [])
  }
}

/**
 * What it costs to serve all protocols at once: a server for each, beside one that serves all. Returns what each came to on a server
 * of its own, by the number in flight and the names of the protocols: they have taken turns with each other. Nothing in short, and
 * nothing for one protocol alone.
 */
async function benchMixed(work: Work, scale: Scale): Promise<Map<number, Map<string, Tally>>> {
  if (scale.short || scale.protocol !== '') return new Map()
  const core = pin()
  await using open = new AsyncDisposableStack()
  const [store] = await openStores({ ...scale, store: scale.store || 'redis' }, open)
  if (store === undefined) return new Map()
  const [storeName, addressOf] = store
  const mixed = await begun(countersign, addressOf(), core, open)
  const asked: Asked[] = []
  for (const way of work.ways) {
    const alone = await begun(countersign, addressOf(), core, open)
    asked.push({ name: `${way.name}: alone`, kind: 'Countersign', server: alone, way })
    asked.push({ name: `${way.name}: with the others`, kind: 'Countersign', server: mixed, way })
  }
  const measured = new Map(scale.inFlight.map((inFlight) => [inFlight, new Map<string, Tally>()]))
  await measureAll(work, asked, scale, measured)
  const all = new Map<number, Map<string, Tally>>()
  for (const [inFlight, tallies] of measured) {
    const tallyOf = (name: string): Tally => tallies.get(name) as Tally
    printTable(
      `${work.title}, ${storeName}, ${inFlight} in flight: one server for all protocols, and one for each`,
      ['server CPU, alone', 'server CPU, with the others', 'CPU with the others ÷ alone'],
      work.ways.map(({ name }) => {
        const [alone, together] = [tallyOf(`${name}: alone`), tallyOf(`${name}: with the others`)]
        return [
          name,
          figure(alone.cpuMicros / 1000, 'ms'),
          figure(together.cpuMicros / 1000, 'ms'),
          figure(alone.cpuUnder(together), 'ratio'),
        ]
      }),
    )
    all.set(inFlight, new Map(work.ways.map(({ name }) => [name, tallyOf(`${name}: alone`)])))
  }
  return all
}

function keyOf(store: string, kind: Kind, protocol: string): string {
  return `${store}/${kind}/${protocol}`
}

function cellsOf(work: Work, tallies: ReadonlyMap<number, ReadonlyMap<string, Tally>>): MeasuredCells {
  const cellOf = (store: StoreName, inFlight: number, protocol: string): MeasuredCell | undefined => {
    const ofThese = tallies.get(inFlight)
    const own = ofThese?.get(keyOf(store, 'Countersign', protocol))
    if (own === undefined) return undefined
    return {
      store,
      protocol,
      inFlight,
      tallyOf: (kind) => ofThese?.get(keyOf(store, kind, protocol)),
      elsewhere: (other) => cellOf(other, inFlight, protocol),
    }
  }
  return new MeasuredCells(
    storeNames.flatMap((store) =>
      [...tallies.keys()].flatMap((inFlight) =>
        work.ways.flatMap(({ name }) => {
          const cell = cellOf(store, inFlight, name)
          return cell === undefined ? [] : [cell]
        }),
      ),
    ),
  )
}

function printTables({ title, unit, floors }: Work, { cells }: MeasuredCells): void {
  const groups = Map.groupBy(cells, ({ store, inFlight }) => `${title}, ${store}, ${inFlight} in flight`)
  for (const [name, group] of groups) {
    const figures = (tally: Tally): Cell[] => [
      figure(tally.perSecond, 'per second'),
      figure(tally.times.p50, 'ms'),
      figure(tally.times.p99, 'ms'),
      figure(tally.cpuMicros / 1000, 'ms'),
      Number.isNaN(tally.loadBusy) ? '' : figure(tally.loadBusy, 'share'),
    ]
    const ratios = (own: Tally, floor: Tally | undefined): Cell[] =>
      floor === undefined
        ? ['', '', '']
        : [own.rateOver(floor), own.cpuUnder(floor), own.p99Over(floor)].map((ratio) => figure(ratio, 'ratio'))
    const peerRatios = (own: Tally, peer: Tally): Cell[] =>
      [own.rateOver(peer), own.cpuUnder(peer)].map((ratio) => figure(ratio, 'ratio'))
    const hasPeer = group[0]?.tallyOf('Better Auth') !== undefined
    const floorsHere = floors.filter((kind) => group[0]?.tallyOf(kind) !== undefined)
    const row = (label: string, tally: Tally, cell: MeasuredCell, isFloor: boolean): Cell[] => [
      label,
      ...figures(tally),
      ...floorsHere.flatMap((kind) => (isFloor ? ['', '', ''] : ratios(tally, cell.tallyOf(kind)))),
      ...(hasPeer ? (isFloor ? ['', ''] : peerRatios(tally, cell.tallyOf('Better Auth') as Tally)) : []),
    ]
    const rowsOf = (cell: MeasuredCell): Cell[][] =>
      (['Countersign', 'least', 'same commands', 'bare', 'connect-node', 'Better Auth'] as const).flatMap((kind) => {
        const tally = cell.tallyOf(kind)
        if (tally === undefined) return []
        const label = kind === 'Countersign' ? cell.protocol : `${cell.protocol}: ${labels[kind]}`
        return [row(label, tally, cell, kind !== 'Countersign' && kind !== 'connect-node')]
      })
    printTable(
      name,
      [
        `${unit}/s`,
        'p50',
        'p99',
        'server CPU',
        'load core busy',
        ...floorsHere.flatMap((kind) => [`rate ÷ ${kind}`, `${kind} CPU ÷ CPU`, `p99 ÷ ${kind}`]),
        ...(hasPeer ? ['rate ÷ peer', 'peer CPU ÷ CPU'] : []),
      ],
      group.flatMap(rowsOf),
    )
  }
}

const labels: Readonly<Record<Exclude<Kind, 'Countersign'>, string>> = {
  least: 'floor, the least',
  'same commands': 'floor, same commands',
  bare: 'floor, bare',
  'connect-node': 'connect-node, bare',
  'Better Auth': 'peer, Better Auth',
}

interface Promised {
  readonly protocols: readonly string[]
  readonly against: Kind
  readonly atLeast: number
  /** Fewest in flight that it is promised for. Default: 1. */
  readonly inFlightFrom?: number
}

/** How many are in flight where ratios to floors are promised. With fewer, the same is aimed for. */
const promisedInFlight = 64

/** Gives its verdicts of what promises are made for, and of the others. */
function judge<T extends { readonly inFlight: number }>(
  cells: readonly T[],
  verdictOf: (judged: readonly T[], suffix: string, isAim: boolean) => void,
): void {
  const promised = cells.filter(({ inFlight }) => inFlight === promisedInFlight)
  const others = cells.filter(({ inFlight }) => inFlight !== promisedInFlight)
  const numbers = [...new Set(others.map(({ inFlight }) => inFlight))].join(' and ')
  if (promised.length > 0) verdictOf(promised, `, with ${promisedInFlight} in flight`, false)
  if (others.length > 0) verdictOf(others, `, with ${numbers} in flight`, true)
}

/** Says whether rate and CPU are what is promised. Where the load's core was busy all the time, only CPU tells. */
function promise(all: MeasuredCells, text: string, promised: Promised): void {
  const { protocols, against, atLeast, inFlightFrom = 1 } = promised
  const asked = all.cells.filter(
    (cell) => protocols.includes(cell.protocol) && cell.inFlight >= inFlightFrom && cell.tallyOf(against) !== undefined,
  )
  judge(asked, (cells, suffix, isAim) => {
    const loadBound = new Set<number>()
    const broken = cells.flatMap((cell) => {
      const [own, other] = [cell.tallyOf('Countersign') as Tally, cell.tallyOf(against) as Tally]
      const busy = own.loadBusy >= saturated || other.loadBusy >= saturated
      if (busy) loadBound.add(cell.inFlight)
      const found = { ...(busy ? {} : { rate: own.rateOver(other) }), CPU: own.cpuUnder(other) }
      const short = Object.entries(found).filter(([, ratio]) => !(ratio >= atLeast))
      if (short.length === 0) return []
      return [`${nameOf(cell)}: ${short.map(([of, ratio]) => `${of} ${ratio.toFixed(2)}`).join(', ')}`]
    })
    const note = `The core of the load was the limit, so that only CPU was judged, with ${[...loadBound].join(', ')} in flight`
    printVerdict(text + suffix, broken, loadBound.size > 0 ? note : '', isAim)
  })
}

function promiseP99(all: MeasuredCells, atMost: number): void {
  judge(all.cells, (cells, suffix, isAim) => {
    const broken = cells.flatMap((cell) => {
      const own = cell.tallyOf('Countersign')
      const floor = cell.tallyOf('least')
      if (own === undefined || floor === undefined || own.p99Over(floor) <= atMost) return []
      return [`${nameOf(cell)}: ${own.p99Over(floor).toFixed(2)}`]
    })
    printVerdict(`p99 of a sign-in at most ${atMost} times that of the least${suffix}`, broken, '', isAim)
  })
}

/** Memory is at least as fast as Redis, as far as can be told, and a file 0.7 of it. */
function promiseStores(all: MeasuredCells): void {
  const slower = (store: StoreName, holds: (own: Tally, redis: Tally) => boolean): string[] =>
    all.on(store).cells.flatMap((cell) => {
      const own = cell.tallyOf('Countersign')
      const redis = cell.elsewhere('Redis')?.tallyOf('Countersign')
      if (own === undefined || redis === undefined || holds(own, redis)) return []
      return [`${nameOf(cell)}: ${own.rateOver(redis).toFixed(2)}`]
    })
  if (all.on('Redis').cells.length === 0) return
  if (all.on('memory').cells.length > 0) {
    // Two that are equally fast are each the slower one in half of all runs.
    const slowerThanRedis = slower('memory', (own, redis) => own.rateAtMostOver(redis) >= 1)
    printVerdict('memory at least as fast as Redis, as far as its rounds can tell', slowerThanRedis)
  }
  if (all.on('SQLite file').cells.length > 0) {
    printVerdict(
      'a SQLite file at least 0.7 as fast as Redis',
      slower('SQLite file', (own, redis) => own.rateOver(redis) >= 0.7),
    )
  }
}
