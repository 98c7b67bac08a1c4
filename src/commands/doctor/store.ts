import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { openCommandStore, redisTlsOf } from '../../service/service-store.ts'
import { StoreOpenError } from '../../store/implementation.ts'
import type { ExaminedServer } from '../../store/redis/examine.ts'
import type { Store } from '../../store/store.ts'
import { type Check, type Finding, ok, problem, warning, warningsOf } from './check.ts'
import { lateSweepSeconds } from './postgres.ts'
import type { Setup } from './setup.ts'

/** Most round trips that are timed, and time in milliseconds after which no more are made. */
const maxTrips = 40
const timingMs = 1500

/**
 * Median time of a call in milliseconds beyond which sign-ins are felt to be slow: each makes several calls in a row.
 */
const slowMs = 50

/** Life of what a check that breaks off leaves behind. */
const life = { ttlMs: 10_000 } as const

/** Free space in bytes below which a disk counts as nearly full. */
const littleSpace = 100 * 1024 * 1024

/** Part of its memory that a server has to use to count as nearly full. */
const nearlyFull = 0.9

/** Whether the store opens, keeps what it is given, and answers fast. */
export const store: Check<Setup> = {
  name: 'store',
  needs: ['redis tls'],
  async run(setup) {
    const { file } = setup
    if (file !== undefined && !existsSync(file)) return await tryNewFile(setup, file)
    return await tryStore(await setup.store(), setup.settings.store === 'sqlite::memory:')
  },
  advice: 'Correct COUNTERSIGN_STORE.',
}

/**
 * Tries a file beside the one that is missing, and removes it. The missing one is left to the service, because it would
 * belong to the user who runs this.
 */
async function tryNewFile({ settings }: Setup, file: string): Promise<Finding> {
  const tried = `${file}.doctor-${randomUUID()}`
  try {
    const { close } = await openCommandStore({ ...settings, store: `sqlite:${tried}` })
    await close()
    return ok(`${file} will be made at the first start; its folder can be written`)
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error
    return problem(error.problem.replaceAll(tried, file), error.advice)
  } finally {
    for (const ending of ['', '-wal', '-shm', '-journal'])
      await rm(tried + ending, { force: true }).catch(() => undefined)
  }
}

async function tryStore(opened: Store, isInMemory: boolean): Promise<readonly Finding[]> {
  const times = await timeTrips(opened)
  if (times === undefined) {
    return [
      problem(
        `${opened.description} does not return what was stored in it`,
        'Name another store in COUNTERSIGN_STORE, one that all its users write to in the same place.',
      ),
    ]
  }
  const [median = 0, worst = 0] = [times[Math.floor(times.length / 2)], times.at(-1)]
  const saw =
    `${opened.description}: calls take ${median.toFixed(1)} ms (median), ${worst.toFixed(1)} ms (worst ` +
    `of ${times.length})`
  const inMemory = warning(
    'state is kept in memory',
    'Name a file in COUNTERSIGN_STORE, so that a restart keeps sessions.',
  )
  return [
    median > slowMs ? warning(saw, 'Run the store nearer to the service, on a machine that is less busy.') : ok(saw),
    ...(isInMemory ? [inMemory] : []),
  ]
}

/** Times calls in milliseconds, in ascending order. `undefined` if the store does not keep its contract. */
async function timeTrips(opened: Store): Promise<readonly number[] | undefined> {
  const times: number[] = []
  const timed = async <T>(call: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now()
    const result = await call()
    times.push(performance.now() - startedAt)
    return result
  }
  const endAt = performance.now() + timingMs
  while (times.length < maxTrips && (times.length === 0 || performance.now() < endAt)) {
    const key = `doctor:{${randomUUID()}}`
    const created = await timed(() => opened.create(key, 'first', life))
    const read = await timed(() => opened.get(key))
    const changed = await timed(() => opened.compareAndSet(key, read?.version ?? 0, 'second', life))
    const taken = await timed(() => opened.take(key))
    if (!created || read?.value !== 'first' || !changed || taken !== 'second') return undefined
  }
  return times.sort((one, other) => one - other)
}

/** Whether the disk of the embedded store has room, and the running service removes what has expired. */
export const disk: Check<Setup> = {
  name: 'disk',
  needs: ['store'],
  applies: ({ file }) => file !== undefined,
  async run(setup) {
    const { file = '' } = setup
    const folder = dirname(file)
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const saw = `${Math.floor(free / 1024 / 1024).toLocaleString('en')} MiB are free in ${folder}`
    const room = free < littleSpace ? warning(saw, 'Make room: once the disk is full, users cannot sign in.') : ok(saw)
    // Without a running service, expired rows stay.
    const isSwept = existsSync(file) && (await setup.runsHere())
    return [room, ...(isSwept ? await lateSweep(file) : [])]
  },
  advice: 'Let the user of the service read the folder of the store.',
}

async function lateSweep(file: string): Promise<Finding[]> {
  // Loaded on demand, because other stores do not need SQLite.
  const { oldestEnd } = await import('../../store/sqlite-copy.ts')
  const seconds = (Date.now() - (oldestEnd(file) ?? Date.now())) / 1000
  return warningsOf([
    seconds > lateSweepSeconds,
    `expired rows have been in ${file} for ${Math.round(seconds / 3600)} hours`,
    'Look in the log of the service for errors of the store: it removes them every few seconds.',
  ])
}

/** Whether the Redis servers keep what they are given. That they are new enough is part of the check "store". */
export const redis: Check<Setup> = {
  name: 'redis',
  needs: ['store'],
  applies: ({ redisUrl }) => redisUrl !== undefined,
  async run({ settings, redisUrl = '' }) {
    // Loaded on demand, because the embedded default does not need the Redis client.
    const { examineRedis } = await import('../../store/redis/examine.ts')
    const servers = await examineRedis(redisUrl, redisTlsOf(settings))
    const findings = servers.flatMap((server) => judge(server, servers.length))
    return findings.length > 0 ? findings : ok(servers.map(describe).join('; '))
  },
  advice: 'Fix that server, or remove it from the cluster.',
}

function judge(server: ExaminedServer, servers: number): Finding[] {
  if ('problem' in server) return [problem(`a server cannot be asked: ${server.problem}`)]
  const { maxMemory = 0, usedMemory = 0, policy, persistent, replicas } = server
  return [
    ...judgePolicy(policy, maxMemory),
    ...warningsOf(
      [
        maxMemory > 0 && usedMemory > maxMemory * nearlyFull,
        `Redis uses ${Math.round((usedMemory / maxMemory) * 100)} % of its maxmemory`,
        'Raise its maxmemory: once it is full, users cannot sign in.',
      ],
      [
        persistent === false && servers === 1 && !replicas,
        'Redis keeps nothing on disk and has no replica, so its restart signs all users out',
        'Set appendonly to yes, or give it a replica.',
      ],
    ),
  ]
}

function judgePolicy(policy: string, maxMemory: number): Finding[] {
  if (policy === 'noeviction') return []
  if (policy === 'unknown') {
    const fix = 'Permit INFO, or make sure that its maxmemory-policy is noeviction.'
    return [warning('Redis does not say what it does when its memory is full', fix)]
  }
  const saw = `Redis drops sessions and orders when its memory is full: its maxmemory-policy is ${policy}`
  const fix = 'Set maxmemory-policy to noeviction.'
  return [maxMemory > 0 ? problem(saw, fix) : warning(`${saw}, though it has no maxmemory yet`, fix)]
}

function describe(server: ExaminedServer): string {
  if ('problem' in server) return server.problem
  const { version = 'of an unknown version', policy, persistent } = server
  const kept = persistent === undefined ? '' : persistent ? ', keeps its data on disk' : ', keeps nothing on disk'
  return `Redis ${version}, maxmemory-policy ${policy}${kept}`
}
