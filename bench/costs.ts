import { execFileSync, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { formatMs, machine, paced, printTable } from './harness.ts'
import { hasRedis, root } from './servers.ts'
import { type Action, actions, type ByAction } from './simulate/day.ts'
import {
  type ActionFigures,
  type Cost,
  type CostAtLoad,
  type Figures,
  figuresFile,
  type Idle,
  type RecordsLeft,
} from './simulate/figures.ts'
import { People, type Person, type StartedOrder } from './simulate/people.ts'
import { Stage, type StoredKey, sum, type Used } from './simulate/stage.ts'

// Before this process is pinned, after which it knows of one core only.
const onMachine = machine()
const instanceCount = 2
const masterCount = 3
/** How much is measured. */
interface Extent {
  /** Events of each action that count at either load. */
  readonly events: number
  /** Events before those: a server that has just started is not compiled yet. */
  readonly warmUpEvents: number
  /** Watchers that are left alone. */
  readonly watchers: number
}

const whole: Extent = { events: 1500, warmUpEvents: 1500, watchers: 1000 }
const little: Extent = { events: 300, warmUpEvents: 400, watchers: 300 }
/** Events at once while the instances are busy. */
const atOnce = 32
/** Events a second while they are not. */
const lightPerSecond = 150
/** How long nothing happens but heartbeats: a little longer than from one to the next. */
const idleMs = 16_000
/** Records that live for less count as ones of minutes. */
const shortLifeMs = 3_600_000

/** What each thing that users do costs instances and Redis; also stored in bench/simulate/figures.json. */
export async function benchCosts(): Promise<void> {
  if (!hasRedis()) return
  const figures = await measureFigures(process.argv.includes('--short'))
  printFigures(figures)
  await writeFile(figuresFile, `${JSON.stringify(figures, undefined, 2)}\n`)
}

/**
 * Measures what each action costs, on two instances and a Redis cluster that are started for it. Takes about two minutes on a quiet
 * machine; with `short` half of that.
 */
export async function measureFigures(short = false): Promise<Figures> {
  const extent = short ? little : whole
  await using stage = await Stage.open(instanceCount)
  using people = new People(stage.ports)
  const { memory: emptyMemory } = await stage.used()
  const todo = prepare(people)
  for (const action of actions) await events(todo[action], extent.warmUpEvents)
  const idle = await during(stage, () => pause(idleMs / 2))
  const measured: [Action, ActionFigures][] = []
  for (const action of actions) measured.push([action, await costOf(stage, todo[action], idle, extent.events)])
  const keyBytes = sum([...(await stage.keys()).values()].map(({ bytes }) => bytes))
  const tables = ((await stage.used()).memory - emptyMemory) / keyBytes
  const memory = await Promise.all(stage.instances.map((instance) => instance.usage('memory')))
  const watcher = await watcherOf(stage, people, idle, extent.watchers)
  return {
    measured: {
      machine: onMachine,
      redis: /v=(\S+)/.exec(spawnSync('redis-server', ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? '',
      commit: execFileSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8' }).trim(),
      date: new Date().toISOString().slice(0, 10),
    },
    actions: Object.fromEntries(
      measured.map(([action, figures]) => [action, withTables(figures, tables)]),
    ) as ByAction<ActionFigures>,
    watcher,
    idle: {
      instanceMicros: rounded(idle.instanceMicros / instanceCount),
      redisMicros: rounded(idle.redisMicros / masterCount),
      replicaMicros: rounded(idle.replicaMicros / masterCount),
      commands: rounded(idle.commands / instanceCount),
    },
    instanceBytes: Math.round(sum(memory.map(({ rss }) => rss)) / instanceCount),
  }
}

/** One event of each action. */
function prepare(people: People): ByAction<() => Promise<unknown>> {
  /** Those who have been here, and their sessions. */
  const known: { readonly person: Person; readonly token: string }[] = []
  const abandoned: StartedOrder[] = []
  let next = 0
  const someone = () => known[next++ % known.length] as (typeof known)[number]
  return {
    'first sign-in': async () => {
      const person = people.arrive()
      known.push({ person, token: await people.signIn(person) })
    },
    'sign-in': async () => {
      const { person } = someone()
      known.push({ person, token: await people.signIn(person) })
    },
    order: async () => {
      const { person } = someone()
      const order = await people.startOrder(person)
      known.push({ person, token: await people.finishOrder(person, order) })
    },
    'session check': async () => {
      const { person, token } = someone()
      await people.check(person, token)
    },
    'sign-out': async () => {
      const { person, token } = known.pop() as (typeof known)[number]
      await people.signOut(person, token)
    },
    'unused nonce': async () => await people.leaveNonce(people.arrive()),
    'unused order': async () => {
      abandoned.push(await people.startOrder(people.arrive()))
      // Watchers that wait longer are measured on their own.
      if (abandoned.length > atOnce) abandoned.shift()?.watch[Symbol.dispose]()
    },
  }
}

/** Lets so many events happen, as fast as they can, or so many a second. */
async function events(event: () => Promise<unknown>, count: number, perSecond = Infinity): Promise<void> {
  let left = count
  const once = async (): Promise<unknown> => (left-- > 0 ? await event() : undefined)
  if (Number.isFinite(perSecond)) {
    await paced(atOnce, perSecond, once)(performance.now() + (count * 1000) / perSecond, [])
  } else {
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (left > 0) await once()
      }),
    )
  }
}

async function costOf(
  stage: Stage,
  event: () => Promise<unknown>,
  idle: Period,
  eventCount: number,
): Promise<ActionFigures> {
  const keysBefore = await stage.keys()
  const light = await during(stage, () => events(event, eventCount, lightPerSecond))
  const busy = await during(stage, () => events(event, eventCount))
  const cost = (part: 'instanceMicros' | 'redisMicros' | 'replicaMicros', processes: number): Cost => {
    const at = (period: Period): CostAtLoad => ({
      utilization: rounded(period[part] / processes / 1e6),
      micros: rounded(Math.max(0, ((period[part] - idle[part]) * period.seconds) / eventCount)),
    })
    return { light: at(light), busy: at(busy) }
  }
  const commands = sum([light, busy].map((period) => (period.commands - idle.commands) * period.seconds))
  return {
    instance: cost('instanceMicros', instanceCount),
    redis: cost('redisMicros', masterCount),
    replicas: cost('replicaMicros', masterCount),
    commands: rounded(commands / (2 * eventCount)),
    records: recordsLeft(keysBefore, await stage.keys(), 2 * eventCount),
  }
}

/** What all processes used, a second. */
interface Period extends Idle {
  readonly seconds: number
}

async function during(stage: Stage, work: () => Promise<unknown>): Promise<Period> {
  const before = await stage.used()
  await work()
  const after = await stage.used()
  const seconds = (after.atMs - before.atMs) / 1000
  const perSecond = (of: (used: Used) => number): number => (of(after) - of(before)) / seconds
  return {
    seconds,
    instanceMicros: perSecond(({ instanceMicros }) => instanceMicros),
    redisMicros: perSecond(({ redisMicros }) => redisMicros),
    replicaMicros: perSecond(({ replicaMicros }) => replicaMicros),
    commands: perSecond(({ commands }) => commands),
  }
}

/** What became of the records while so many events happened. */
function recordsLeft(
  before: ReadonlyMap<string, StoredKey>,
  after: ReadonlyMap<string, StoredKey>,
  count: number,
): Record<string, RecordsLeft> {
  const born = [...after].filter(([key, stored]) => kindOf(key, before.get(key)) !== kindOf(key, stored))
  const gone = [...before].filter(([key, stored]) => kindOf(key, after.get(key)) !== kindOf(key, stored))
  const kinds = Map.groupBy(born, ([key, stored]) => kindOf(key, stored))
  const lost = Map.groupBy(gone, ([key, stored]) => kindOf(key, stored))
  const left: Record<string, RecordsLeft> = {}
  for (const kind of new Set([...kinds.keys(), ...lost.keys()])) {
    const own = kinds.get(kind) ?? []
    const sample = (own.length > 0 ? own : (lost.get(kind) ?? [])).map(([, stored]) => stored)
    const net = rounded((own.length - (lost.get(kind)?.length ?? 0)) / count)
    // Expired ones of an earlier action, or the key of all instances.
    if (Math.abs(net) < 0.02) continue
    left[kind] = {
      count: net,
      bytes: Math.round(sum(sample.map(({ bytes }) => bytes)) / sample.length),
      lifeMs: sample[0]?.lifeMs === null ? null : Math.max(...sample.map(({ lifeMs }) => lifeMs ?? 0)),
    }
  }
  return left
}

function kindOf(key: string, stored: StoredKey | undefined): string {
  if (stored === undefined) return ''
  const [, name = ''] = key.split(':')
  return stored.lifeMs !== null && stored.lifeMs < shortLifeMs ? `${name} (minutes)` : name
}

/** Counts what Redis needs for its tables, which it does not count for single keys. */
function withTables(actionFigures: ActionFigures, factor: number): ActionFigures {
  const records = Object.entries(actionFigures.records).map(([kind, left]) => [
    kind,
    { ...left, bytes: Math.round(left.bytes * factor) },
  ])
  return { ...actionFigures, records: Object.fromEntries(records) }
}

async function watcherOf(
  stage: Stage,
  people: People,
  idle: Period,
  watcherCount: number,
): Promise<Figures['watcher']> {
  const heap = async (): Promise<number> =>
    sum(
      (await Promise.all(stage.instances.map((instance) => instance.usage('memory')))).map(({ heapUsed }) => heapUsed),
    )
  const orders: StartedOrder[] = []
  const before = await heap()
  await events(async () => orders.push(await people.startOrder(people.arrive())), watcherCount)
  const heapBytes = Math.round(((await heap()) - before) / watcherCount)
  const watched = await during(stage, () => pause(idleMs))
  for (const { watch } of orders) watch[Symbol.dispose]()
  const each = (part: keyof Idle): number => rounded(Math.max(0, watched[part] - idle[part]) / watcherCount)
  return {
    heapBytes,
    instanceMicros: each('instanceMicros'),
    redisMicros: each('redisMicros'),
    replicaMicros: each('replicaMicros'),
    commands: each('commands'),
  }
}

function rounded(number: number): number {
  return Number(number.toPrecision(4))
}

/** Prints what was measured. */
export function printFigures({ actions: measured, watcher, idle }: Figures): void {
  const micros = (number: number): string => formatMs(number / 1000)
  printTable(
    'What users do: CPU time for one event, on two instances and a Redis cluster of three masters',
    ['instance, light load', 'busy', 'masters, light load', 'busy', 'replicas, busy', 'commands', 'records left'],
    actions.map((action) => {
      const { instance, redis, replicas, commands, records } = measured[action]
      const cells = [instance.light, instance.busy, redis.light, redis.busy, replicas.busy]
      const bytes = sum(Object.values(records).map((left) => left.count * left.bytes))
      return [action, ...cells.map((cost) => micros(cost.micros)), commands.toFixed(1), `${Math.round(bytes)} bytes`]
    }),
  )
  printTable(
    'What goes on by itself, a second',
    ['instance', 'a master', 'a replica', 'commands'],
    [
      ['one watcher', watcher],
      ['an instance without watchers', idle],
    ].map(([name, used]) => {
      const { instanceMicros, redisMicros, replicaMicros, commands } = used as Idle
      return [name as string, ...[instanceMicros, redisMicros, replicaMicros].map(micros), commands.toFixed(2)]
    }),
  )
}
