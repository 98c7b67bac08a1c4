/**
 * From what single events cost to what an installation holds. Everything here is arithmetic; what was measured comes in as
 * {@link Figures}, what users do as a {@link Day}.
 */
import { type Action, actions, type ByAction, type Day, partOfDay } from './day.ts'
import type { ActionFigures, Cost, Figures } from './figures.ts'

/** Events a second. */
export type Rates = Partial<ByAction<number>>

/** What an installation consists of. */
export interface Installation {
  /** Processes of Countersign with a core each: a worker counts as one. */
  readonly instances: number
  /** Masters of Redis. */
  readonly shards: number
}

/** How full things may get, and how large they are. */
export interface Room {
  /** The part of its core that an instance may use at the busiest moment; the rest is for restarts, bursts and garbage collection. */
  readonly instanceUtilization: number
  /** The same of a master of Redis. */
  readonly redisUtilization: number
  /** Memory for the data of one master, bytes. */
  readonly shardBytes: number
  /** The fullest shard, divided by the average. */
  readonly shardImbalance: number
  /** Most watchers of one instance: `COUNTERSIGN_MAX_STREAMS`. */
  readonly streamsPerInstance: number
}

/** The room that docs/scaling.md computes with: that of default settings, and servers with 8 GiB for Redis. */
export const typicalRoom: Room = {
  instanceUtilization: 0.7,
  redisUtilization: 0.6,
  shardBytes: 6 * 1024 ** 3,
  shardImbalance: 1.1,
  // With 4 GiB of heap, one for each 128 KiB.
  streamsPerInstance: 32_768,
}

/** What an installation can run out of. */
export const resources = [
  'CPU of the instances',
  'CPU of Redis',
  'memory of Redis',
  'streams of the instances',
] as const

/** One of the {@link resources}. */
export type Resource = (typeof resources)[number]

/** For each resource, the part of it that is in use; 1 is all that the room allows. */
export type Usage = Readonly<Record<Resource, number>>

/** The most of something that an installation holds, and what is used up then. */
export interface Capacity {
  readonly most: number
  readonly bottleneck: Resource
  /** What would be the bottleneck next, and the most then. */
  readonly next: { readonly most: number; readonly bottleneck: Resource }
}

/** CPU time of one event in a process that uses this part of its core, microseconds: between what was measured, and never beyond. */
export function microsAt({ light, busy }: Cost, utilization: number): number {
  const range = busy.utilization - light.utilization
  const share = range > 0 ? (utilization - light.utilization) / range : 1
  return light.micros + (busy.micros - light.micros) * Math.min(1, Math.max(0, share))
}

/** A kind of process, as the figures have it. */
type Part = 'instance' | 'redis' | 'replicas'

/**
 * The part of a core that each of `processes` uses, with so many events a second over all and so many microseconds a second beside
 * them. Above 1 it is more than a core.
 */
export function utilizationOf(
  { actions: costs }: Figures,
  part: Part,
  rates: Rates,
  processes: number,
  restMicros: number,
): number {
  // What an event costs depends on what is looked for. Steps of half the way also come to an end where costs fall steeply.
  const usedAt = (utilization: number): number =>
    (total(rates, (action) => microsAt(costs[action][part], utilization)) / processes + restMicros) / 1e6
  let utilization = usedAt(1)
  for (let round = 0; round < 100; round++) utilization = (utilization + usedAt(utilization)) / 2
  return utilization
}

/** What is in use with so many events a second, so many watchers, and so many bytes of records. */
export function usageOf(
  figures: Figures,
  { instances, shards }: Installation,
  { rates, watchers, bytes }: { readonly rates: Rates; readonly watchers: number; readonly bytes: number },
  room: Room = typicalRoom,
): Usage {
  const { watcher, idle } = figures
  const instanceRest = idle.instanceMicros + (watcher.instanceMicros * watchers) / instances
  const redisRest = idle.redisMicros + (watcher.redisMicros * watchers) / shards
  const redis = utilizationOf(figures, 'redis', rates, shards, redisRest) * room.shardImbalance
  return {
    'CPU of the instances':
      utilizationOf(figures, 'instance', rates, instances, instanceRest) / room.instanceUtilization,
    'CPU of Redis': redis / room.redisUtilization,
    'memory of Redis': ((bytes / shards) * room.shardImbalance) / room.shardBytes,
    'streams of the instances': watchers / instances / room.streamsPerInstance,
  }
}

/** The most of something that can be had. `usage` says what so many of it use. */
export function capacityOf(usage: (count: number) => Usage): Capacity {
  const limits = resources
    .map((bottleneck) => ({ bottleneck, most: mostBelow((count) => usage(count)[bottleneck] <= 1) }))
    .toSorted((a, b) => a.most - b.most)
  const [first, next] = limits as [Capacity['next'], Capacity['next']]
  return { ...first, next }
}

/** The largest number that fits, to within a thousandth. What nothing bounds is infinite. */
function mostBelow(fits: (count: number) => boolean): number {
  let high = 1
  while (fits(high)) {
    high *= 2
    if (high > 1e15) return Infinity
  }
  let low = high === 1 ? 0 : high / 2
  while (high - low > high / 2000) {
    const middle = (low + high) / 2
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}

/** Bytes of the records in the store after events have happened at these rates for so long. */
export function bytesOf(figures: Figures, rates: Rates, seconds: number): number {
  return total(rates, (action) => recordBytesOf(figures.actions[action], seconds))
}

/** Bytes that each event a second holds after so many seconds. */
function recordBytesOf({ records }: ActionFigures, seconds: number): number {
  return Object.values(records).reduce((sum, { count, bytes, lifeMs }) => {
    const lifeSeconds = lifeMs === null ? seconds : Math.min(seconds, lifeMs / 1000)
    return sum + count * bytes * lifeSeconds
  }, 0)
}

/** Events a second on the average of a day. Everybody has signed in before. */
export function averageRates({ users, perUser }: Day): ByAction<number> {
  return Object.fromEntries(
    actions.map((action) => [action, action === 'first sign-in' ? 0 : (users * perUser[action]) / 86_400]),
  ) as ByAction<number>
}

/** Events a second at the busiest moment of a day. */
export function peakRates(day: Day): ByAction<number> {
  return mapRates(averageRates(day), (rate) => rate * day.peakFactor)
}

/** Watchers at a time with so many orders a second. */
export function watchersOf({ orderSeconds, unusedOrderSeconds }: Day, rates: Rates): number {
  return (rates.order ?? 0) * orderSeconds + (rates['unused order'] ?? 0) * unusedOrderSeconds
}

/** What the busiest moment of a day uses. */
export function usageOfDay(figures: Figures, installation: Installation, day: Day, room: Room = typicalRoom): Usage {
  const rates = peakRates(day)
  return usageOf(
    figures,
    installation,
    { rates, watchers: watchersOf(day, rates), bytes: standingBytes(figures, day) },
    room,
  )
}

/**
 * Bytes of the records that users have in the long run, at the busiest moment: what signed-in sessions take until they expire, each
 * user's own records, and what lives for minutes.
 */
export function standingBytes({ actions: measured }: Figures, day: Day): number {
  const rates = averageRates(day)
  const ofUser = sumOf(measured['first sign-in'], ({ lifeMs }) => lifeMs === null)
  const shortLived = total(rates, (action) =>
    Object.values(measured[action].records).reduce(
      (sum, { count, bytes, lifeMs }) =>
        lifeMs !== null && lifeMs < 3_600_000 && count > 0 ? sum + (count * bytes * lifeMs) / 1000 : sum,
      0,
    ),
  )
  const signIns = (rates['sign-in'] ?? 0) + (rates.order ?? 0)
  const sessions = Math.max(0, signIns - rates['sign-out']) * day.sessionSeconds
  const list = measured['first sign-in'].records.sessions
  const session = measured['first sign-in'].records.session
  const users = day.users * (ofUser + (list?.bytes ?? 0))
  return users + sessions * (session?.bytes ?? 0) + shortLived * day.peakFactor
}

function sumOf({ records }: ActionFigures, counts: (left: ActionFigures['records'][string]) => boolean): number {
  return Object.values(records).reduce((sum, left) => (counts(left) ? sum + left.count * left.bytes : sum), 0)
}

/** What a run is expected to come to. */
export interface Expected {
  /** CPU time of all instances, microseconds. */
  readonly instanceMicros: number
  /** CPU time of all masters, microseconds. */
  readonly redisMicros: number
  /** CPU time of all replicas, microseconds. */
  readonly replicaMicros: number
  readonly commands: number
  /** Keys at the end. */
  readonly keys: number
  /** Bytes of the masters' data at the end. */
  readonly memory: number
}

/** A run that compresses a day: `population` users do in `seconds` what they do in a day, and nobody has been there before. */
export interface Run extends Installation {
  readonly day: Day
  readonly population: number
  readonly seconds: number
}

/** Steps into which a run is cut. */
const steps = 200

/** What a run should come to. */
export function expect(figures: Figures, run: Run): Expected {
  const { day, instances, shards, seconds, population } = run
  const counts = countsOf(run)
  const { watcher, idle } = figures
  const sums = { instance: 0, redis: 0, replicas: 0 }
  let watcherSeconds = 0
  for (let step = 0; step < steps; step++) {
    const part = partOfDay(day, step / steps, (step + 1) / steps)
    const stepSeconds = seconds / steps
    const rates = mapRates(counts, (count) => (count * part) / stepSeconds)
    // Those whose order is not over yet at the end count as long as the run lasts.
    const lasting = (lifeSeconds: number): number => Math.min(lifeSeconds, (steps - step) * stepSeconds)
    const watchers =
      (rates.order ?? 0) * lasting(day.orderSeconds) + (rates['unused order'] ?? 0) * lasting(day.unusedOrderSeconds)
    watcherSeconds += watchers * stepSeconds
    const add = (name: Part, processes: number, idleMicros: number, watcherMicros: number): void => {
      const restMicros = idleMicros + (watcherMicros * watchers) / processes
      sums[name] += utilizationOf(figures, name, rates, processes, restMicros) * processes * stepSeconds * 1e6
    }
    add('instance', instances, idle.instanceMicros, watcher.instanceMicros)
    add('redis', shards, idle.redisMicros, watcher.redisMicros)
    add('replicas', shards, idle.replicaMicros, watcher.replicaMicros)
  }
  const stored = storedAfter(figures, day, population, counts, seconds)
  return {
    instanceMicros: sums.instance,
    redisMicros: sums.redis,
    replicaMicros: sums.replicas,
    commands:
      total(counts, (action) => figures.actions[action].commands) +
      watcherSeconds * watcher.commands +
      idle.commands * instances * seconds,
    keys: stored.keys,
    memory: stored.bytes,
  }
}

/** How often each thing happens in a run. */
export function countsOf({ day, population }: Pick<Run, 'day' | 'population'>): ByAction<number> {
  const of = (action: Exclude<Action, 'first sign-in'>): number => population * day.perUser[action]
  const first = population * (1 - Math.exp(-day.perUser['sign-in']))
  return {
    'first sign-in': first,
    'sign-in': of('sign-in') - first,
    order: of('order'),
    'session check': of('session check'),
    'sign-out': of('sign-out'),
    'unused nonce': of('unused nonce'),
    'unused order': of('unused order'),
  }
}

/** What is in the store at the end of a run. */
function storedAfter(
  { actions: measured }: Figures,
  day: Day,
  population: number,
  counts: ByAction<number>,
  seconds: number,
): { readonly keys: number; readonly bytes: number } {
  let keys = 0
  let bytes = 0
  for (const action of actions) {
    for (const [kind, left] of Object.entries(measured[action].records)) {
      // A user's list is there as long as one session is in it, which no single event says.
      if (kind === listKind) continue
      const alive = left.lifeMs === null ? 1 : partOfDay(day, Math.max(0, 1 - left.lifeMs / 1000 / seconds), 1)
      keys += counts[action] * left.count * alive
      bytes += counts[action] * left.count * alive * left.bytes
    }
  }
  const signIns = counts['first sign-in'] + counts['sign-in'] + counts.order
  const live = Math.max(0, 1 - counts['sign-out'] / signIns)
  const lists = population * (1 - Math.exp((-signIns / population) * live))
  return { keys: keys + lists, bytes: bytes + lists * (measured['first sign-in'].records[listKind]?.bytes ?? 0) }
}

/** The kind of record that lists the sessions of a user. */
const listKind = 'sessions'

function total(rates: Rates, each: (action: Action) => number): number {
  return actions.reduce((sum, action) => sum + (rates[action] ?? 0) * each(action), 0)
}

function mapRates(rates: ByAction<number>, change: (rate: number) => number): ByAction<number> {
  return Object.fromEntries(actions.map((action) => [action, change(rates[action])])) as ByAction<number>
}
