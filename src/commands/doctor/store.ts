import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { silentLogger } from '../../log.ts'
import { openServiceStore } from '../../service-store.ts'
import type { Store } from '../../store/store.ts'
import { sqliteFile } from '../store-file.ts'
import { type Check, type Finding, ok, problem, warning } from './check.ts'
import type { Examination } from './examination.ts'
import { messageOf } from './words.ts'

/** Most round trips that are timed, and time in milliseconds after which no more are made. */
const maxTrips = 40
const timingMs = 1500

/** Median time of a call in milliseconds beyond which sign-ins are felt to be slow: each makes several calls in a row. */
const slowMs = 50

/** Life of what a check that breaks off leaves behind. */
const life = { ttlMs: 10_000 } as const

/** Free space in bytes below which a disk counts as nearly full. */
const littleSpace = 100 * 1024 * 1024

/** Whether the store opens, keeps what it is given, and answers fast. */
export const storeCheck: Check<Examination> = {
  name: 'store',
  needs: ['redis tls'],
  limitMs: 6000,
  async run(examination) {
    const file = sqliteFile(examination.settings.store)
    try {
      if (file !== undefined && !existsSync(file)) return [await tryNewFile(examination, file)]
      return await tryStore(await examination.store(), examination.settings.store === 'sqlite::memory:')
    } catch (error) {
      return [fromMessage(messageOf(error))]
    }
  },
}

/** Whether the disk of the embedded store has room. */
export const diskCheck: Check<Examination> = {
  name: 'disk',
  needs: ['store'],
  limitMs: 2000,
  applies: ({ settings }) => sqliteFile(settings.store) !== undefined,
  async run({ settings }) {
    const folder = dirname(sqliteFile(settings.store) ?? '')
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const saw = `${Math.floor(free / 1024 / 1024).toLocaleString('en')} MiB are free in ${folder}`
    return [free < littleSpace ? warning(saw, 'Make room before the disk is full: then nobody can sign in.') : ok(saw)]
  },
}

/**
 * Tries a file beside the one that is missing, and removes it. The missing one is left to the service, because it would belong to
 * whoever runs this.
 */
async function tryNewFile({ settings }: Examination, file: string): Promise<Finding> {
  const tried = `${file}.doctor-${randomUUID()}`
  try {
    const { close } = await openServiceStore({ ...settings, store: `sqlite:${tried}` }, silentLogger)
    await close()
    return ok(`${file} will be made at the first start; its folder can be written`)
  } catch (error) {
    return fromMessage(messageOf(error).replaceAll(tried, file))
  } finally {
    for (const ending of ['', '-wal', '-shm', '-journal'])
      await rm(tried + ending, { force: true }).catch(() => undefined)
  }
}

/** The message of an error at the opening: what is wrong and, as its last sentence, what to do. */
function fromMessage(message: string): Finding {
  const [, saw = message, fix = 'Correct COUNTERSIGN_STORE.'] = /^(.*)\. ([A-Z].*\.)$/s.exec(message) ?? []
  return problem(saw, fix)
}

async function tryStore(store: Store, isInMemory: boolean): Promise<readonly Finding[]> {
  const times = await timeTrips(store)
  if (times === undefined) {
    return [
      problem(
        `${store.description} does not return what was stored in it`,
        'Name another store in COUNTERSIGN_STORE, one that all its users write to in the same place.',
      ),
    ]
  }
  const [median = 0, worst = 0] = [times[Math.floor(times.length / 2)], times.at(-1)]
  const saw = `${store.description}: calls take ${median.toFixed(1)} ms (median), ${worst.toFixed(1)} ms (worst of ${times.length})`
  const findings =
    median > slowMs ? [warning(saw, 'Run the store nearer to the service, on a machine that is less busy.')] : [ok(saw)]
  if (isInMemory) {
    findings.push(
      warning('state is kept in memory', 'Name a file in COUNTERSIGN_STORE, so that a restart keeps sessions.'),
    )
  }
  return findings
}

/** Times calls in milliseconds, in ascending order. `undefined` if the store does not keep its contract. */
async function timeTrips(store: Store): Promise<readonly number[] | undefined> {
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
    const created = await timed(() => store.create(key, 'first', life))
    const read = await timed(() => store.get(key))
    const changed = await timed(() => store.compareAndSet(key, read?.version ?? 0, 'second', life))
    const taken = await timed(() => store.take(key))
    if (!created || read?.value !== 'first' || !changed || taken !== 'second') return undefined
  }
  return times.sort((one, other) => one - other)
}
