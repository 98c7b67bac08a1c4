import { actions, type Day, typicalDay } from '../../bench/simulate/day.ts'
import { type Figures, readFigures } from '../../bench/simulate/figures.ts'
import {
  averageRates,
  bytesOf,
  type Capacity,
  capacityOf,
  type Installation,
  peakRates,
  type Rates,
  type Resource,
  standingBytes,
  typicalRoom,
  usageOf,
  usageOfDay,
  watchersOf,
} from '../../bench/simulate/model.ts'
import { markdownTable } from './markdown.ts'

const figures = await readFigures()

/** The parts of docs/scaling.md. */
export function scalingParts(): Readonly<Record<string, string>> {
  return {
    'the figures': figuresTable(figures),
    'the day': dayTable(typicalDay),
    'single things': singleTable(),
    'whole days': daysTable(),
    'the memory': memoryTable(),
  }
}

/** Sizes that the tables have rows for: each is what somebody would build. */
const sizes: readonly Installation[] = [
  { instances: 1, shards: 1 },
  { instances: 10, shards: 1 },
  { instances: 10, shards: 3 },
  { instances: 10, shards: 12 },
  { instances: 100, shards: 1 },
  { instances: 100, shards: 3 },
  { instances: 100, shards: 6 },
  { instances: 100, shards: 12 },
]

function figuresTable({ actions: measured, watcher, idle, instanceBytes, measured: where }: Figures): string {
  const micros = (number: number): string => `${number < 10 ? number.toFixed(1) : Math.round(number)} µs`
  const rows = actions.map((action) => {
    const { instance, redis, replicas, commands } = measured[action]
    const cpu = [instance.light, instance.busy, redis.busy, replicas.busy].map((cost) => micros(cost.micros))
    return [action, ...cpu, commands.toFixed(1)]
  })
  const beside = [
    ['one watcher, a second', watcher],
    ['an instance without watchers, a second', idle],
  ] as const
  for (const [name, { instanceMicros, redisMicros, replicaMicros, commands }] of beside) {
    rows.push([
      name,
      micros(instanceMicros),
      micros(instanceMicros),
      micros(redisMicros),
      micros(replicaMicros),
      commands.toFixed(2),
    ])
  }
  const head = ['', 'instance, light load', 'instance, busy', 'masters, busy', 'replicas, busy', 'commands']
  return (
    `Measured on ${where.machine}, Redis ${where.redis}, commit ${where.commit}, ${where.date}. A watcher takes ` +
    `${kib(watcher.heapBytes)} of heap, an instance without watchers ${mib(instanceBytes)} of memory.\n\n${markdownTable(head, rows)}`
  )
}

function dayTable(day: Day): string {
  const average = averageRates(day)
  const rows = actions
    .filter((action) => action !== 'first sign-in')
    .map((action) => [
      action,
      String(day.perUser[action]),
      round(average[action]),
      round(average[action] * day.peakFactor),
    ])
  return markdownTable(['', 'for each user, a day', 'a second, on average', 'a second, at the peak'], rows)
}

/** What an installation holds if it does one thing only. */
function singleTable(): string {
  const only = (rates: Rates, seconds: number, watchers = 0) => ({
    rates,
    watchers,
    bytes: bytesOf(figures, rates, seconds),
  })
  // For an hour, so that what lives for minutes is there as often as it gets.
  const hour = 3600
  const columns: readonly (readonly [string, (count: number) => ReturnType<typeof only>])[] = [
    ['sign-ins/s', (count) => only({ 'sign-in': count }, hour)],
    ['session checks/s', (count) => only({ 'session check': count }, hour)],
    ['orders/s, watched', (count) => only({ order: count }, hour, count * typicalDay.orderSeconds)],
    ['watchers', (count) => only({ 'unused order': count / typicalDay.unusedOrderSeconds }, hour, count)],
  ]
  const rows = sizes.map((installation) => [
    nameOf(installation),
    ...columns.map(([, of]) => {
      const { most, bottleneck, next } = capacityOf((count) => usageOf(figures, installation, of(count)))
      return `${round(most)} (${short[bottleneck]}; then ${short[next.bottleneck]} at ${round(next.most)})`
    }),
  ])
  return markdownTable(['', ...columns.map(([name]) => name)], rows)
}

/** How many users of the typical day an installation holds. */
function daysTable(): string {
  const rows = sizes.map((installation) => {
    const of = (users: number) => ({ ...typicalDay, users })
    const capacity: Capacity = capacityOf((users) => usageOfDay(figures, installation, of(users)))
    const day = of(capacity.most)
    const peak = peakRates(day)
    return [
      nameOf(installation),
      round(capacity.most),
      round(peak['sign-in'] + peak.order),
      round(peak['session check']),
      round(watchersOf(day, peak)),
      capacity.bottleneck,
      `${capacity.next.bottleneck}, at ${round(capacity.next.most)} users`,
    ]
  })
  const head = [
    '',
    'users',
    'sign-ins/s',
    'session checks/s',
    'orders in flight',
    'watchers',
    'bottleneck',
    'the next one',
  ]
  return markdownTable(head, rows)
}

/** What users take in Redis. */
function memoryTable(): string {
  const kinds = new Map<string, { readonly bytes: number; readonly lifeMs: number | null; readonly after: string }>()
  for (const action of actions) {
    for (const [kind, { count, bytes, lifeMs }] of Object.entries(figures.actions[action].records)) {
      const name = kind === 'order (minutes)' ? `order, after: ${action}` : kind
      if (count > 0 && !kinds.has(name)) kinds.set(name, { bytes, lifeMs, after: action })
    }
  }
  const rows = [...kinds].map(([kind, { bytes, lifeMs, after }]) => [kind, `${bytes} bytes`, lifeOf(lifeMs), after])
  const whole = standingBytes(figures, typicalDay)
  const each = Math.round(whole / typicalDay.users)
  const shards = Math.ceil((whole * typicalRoom.shardImbalance) / typicalRoom.shardBytes)
  return (
    `${markdownTable(['record', 'memory', 'life', 'comes with'], rows)}\n` +
    `With the day above that is ${each} bytes for each user, ${gib(whole)} for ${round(typicalDay.users)}: ${shards} masters ` +
    `with ${gib(typicalRoom.shardBytes)} for data each.\n`
  )
}

const short: Readonly<Record<Resource, string>> = {
  'CPU of the instances': 'instances',
  'CPU of Redis': 'Redis',
  'memory of Redis': 'memory',
  'streams of the instances': 'streams',
}

function nameOf({ instances, shards }: Installation): string {
  return `${instances} instance${instances > 1 ? 's' : ''}, ${shards} shard${shards > 1 ? 's' : ''}`
}

function lifeOf(lifeMs: number | null): string {
  if (lifeMs === null) return 'forever'
  return lifeMs > 86_400_000 ? `${Math.round(lifeMs / 86_400_000)} days` : `${Math.ceil(lifeMs / 60_000)} minutes`
}

/** Two digits are all that such a computation is good for. */
function round(number: number): string {
  return Number(number.toPrecision(2)).toLocaleString('en-US')
}

function kib(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`
}

function gib(bytes: number): string {
  return `${(bytes / 1024 ** 3).toPrecision(2)} GiB`
}
