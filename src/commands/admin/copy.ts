import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Keyring } from '../../base/token.ts'
import { StoredSessions } from '../../core/users/sessions.ts'
import { AdministrationError, type SearchableStore } from '../../core/users/user-administration.ts'
import { type CopyMark, proofOf, readMark, setMark } from '../../service/copy-mark.ts'
import { CountersignError } from '../../shared/errors.ts'
import { oneLine } from '../command-line.ts'
import { kindOf, storedKinds } from '../stored-kinds.ts'

/** What to copy, and how. */
export interface CopyRequest {
  readonly from: SearchableStore
  readonly to: SearchableStore
  /** Begins a copy anew that broke off: what it left in the new store is removed. */
  readonly again: boolean
  /** File that gets the secret which the old store keeps. */
  readonly secretFile: string | undefined
  /** Secrets of the service's settings. */
  readonly secrets: readonly string[] | undefined
  /** Receives what is being done, for people. */
  readonly say: (line: string) => void
  /** Time in ms for running instances to find the mark. Default: a minute, twice what they take. */
  readonly waitMs?: number
}

/** Numbers of values in both stores, by kind. */
export type Counts = Readonly<Record<string, { readonly from: number; readonly to: number }>>

/** Time in ms by which the clocks of the stores and of this process may differ. */
const clockMs = 5000

/** Most values that are written at a time. */
const atOnce = 200

/** Time in ms before a step that failed is done again. */
const pauseMs = 1000

/**
 * Copies a store to an empty one: all values but what has begun and queues; lists are made anew. A mark in both keeps
 * services from starting, and stops running ones. It leaves the new store once all is there, and stays in the old one.
 *
 * @throws AdministrationError if a store does not fit, something else wrote meanwhile, or the counts differ.
 */
export async function copyStore(request: CopyRequest): Promise<Counts> {
  const { from, to, again, say, waitMs = 60_000 } = request
  const [left, right] = [await readMark(from), await readMark(to)]
  if (left?.side === 'to') throw new AdministrationError(`${from.description} is itself an unfinished copy`)
  if (left?.side === 'done') {
    throw new AdministrationError(
      `${from.description} is a copy that no service has started on, so its secret is not checked: start one first, ` +
        'or take the mark away with --undo',
    )
  }
  if (!again && (left?.side === 'from' || right?.side === 'to')) {
    // An unfinished copy keeps its mark until it is finished.
    const [{ description }, way] = right?.side === 'to' ? [to, ''] : [from, ', or --undo to take the mark away']
    throw new AdministrationError(`${description} has the mark of a copy before. Add --again to begin that anew${way}`)
  }
  if (right?.side !== 'to') await requireEmpty(to)
  const proofs = await proofsOfSecrets(request)
  const run = randomUUID()
  await setMark(from, { side: 'from', other: to.kind ?? 'other', run })
  await setMark(to, { side: 'to', other: from.kind ?? 'other', run })
  say(`both stores are marked; running services stop within ${waitMs / 1000} seconds`)
  await sleep(waitMs)
  await requireMarks(request, run)
  if (right?.side === 'to') await empty(to)
  else {
    // A service wrote there after all. Without the mark, --again does not empty what is its.
    await requireEmpty(to).catch(async (error) => {
      await setMark(to, undefined)
      await setMark(from, left)
      throw error
    })
  }
  say(`copying ${from.description} to ${to.description}`)
  const counts = await copyValues(from, to)
  await requireMarks(request, run)
  await setMark(to, proofs.length === 0 ? undefined : { side: 'done', other: from.kind ?? 'other', run, proofs })
  return counts
}

/** Rejects unless the marks of this run are still there: it must not empty or release what another one has copied. */
async function requireMarks({ from, to }: CopyRequest, run: string): Promise<void> {
  for (const store of [from, to]) {
    if ((await readMark(store))?.run === run) continue
    throw new AdministrationError(`another copy, or --undo, has changed the mark of ${store.description} meanwhile`)
  }
}

/** Takes the mark from a store that was copied. Rejects if there is none, or the store is not complete. */
export async function undoCopy(store: SearchableStore): Promise<CopyMark> {
  const mark = await readMark(store)
  if (mark === undefined) throw new AdministrationError(`${store.description} has no mark of a copy`)
  if (mark.side === 'to') {
    throw new AdministrationError(`${store.description} is an unfinished copy: finish it with --again, or empty it`)
  }
  await setMark(store, undefined)
  return mark
}

async function requireEmpty(store: SearchableStore): Promise<void> {
  for await (const { key } of store.scan('')) {
    const kind = kindOf(key)
    if (/^(?:ping|doctor|copy-mark)$/.test(kind)) continue
    throw new AdministrationError(`${store.description} is not empty: it has a value of the kind ${kind}`)
  }
}

async function empty(store: SearchableStore): Promise<void> {
  await forEach(store.scan(''), async ({ key }) => {
    if (kindOf(key) !== 'copy-mark') await store.take(key)
  })
}

/** Saves the secret that the old store keeps, and returns what proves the secrets that it can have been used with. */
async function proofsOfSecrets({ from, secrets, secretFile }: CopyRequest): Promise<readonly string[]> {
  const kept = (await from.get('secret'))?.value
  if (kept === undefined && secretFile !== undefined) {
    throw new AdministrationError(
      `${from.description} keeps no secret: the new store needs the COUNTERSIGN_SECRET of now`,
    )
  }
  if (kept !== undefined && secretFile !== undefined) saveSecret(kept, secretFile)
  if (kept !== undefined && secretFile === undefined && secrets?.includes(kept) !== true) {
    throw new AdministrationError(
      secrets === undefined
        ? `the secret is in ${from.description}, and the new store keeps none: add --secret-file FILE`
        : `COUNTERSIGN_SECRET is not the secret that ${from.description} keeps: add --secret-file FILE for that one, ` +
            'and set the one of both that the service used',
    )
  }
  const used = new Set([...(secrets ?? []), ...(kept === undefined ? [] : [kept])])
  return [...used].map((secret) => proofOf(new Keyring([secret])))
}

function saveSecret(secret: string, file: string): void {
  try {
    writeFileSync(file, `${secret}\n`, { flag: 'wx', mode: 0o600 })
  } catch (cause) {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    if (!isThere) throw new AdministrationError(`Cannot write ${file}: ${oneLine(cause)}`, { cause })
    // From the copy that is begun anew.
    if (readFileSync(file, 'utf8').trim() === secret) return
    throw new AdministrationError(`${file} already exists, with something else in it`)
  }
}

/** What was read of a kind: how many values, and when those end that do not last, in epoch milliseconds. */
interface Tally {
  count: number
  readonly ends: number[]
}

async function copyValues(from: SearchableStore, to: SearchableStore): Promise<Counts> {
  const read = new Map<string, Tally>()
  const keys = new Set<string>()
  await forEach(from.scan(''), async ({ key, value, life }) => {
    const kind = requireKind(key, from)
    // A scan can find a key twice.
    if (!storedKinds[kind]?.isCopied || keys.has(key)) return
    keys.add(key)
    await patiently(async () => {
      if (await to.create(key, value, life)) return
      const found = await to.get(key)
      if (found === undefined || found.value === value) return
      throw new AdministrationError(
        `something else wrote a value of the kind ${kind} to ${to.description}: stop that, and add --again`,
      )
    })
    const tally = read.get(kind) ?? { count: 0, ends: [] }
    read.set(kind, tally)
    tally.count++
    if (life !== 'forever') tally.ends.push(Date.now() + life.ttlMs)
  })
  const sessions = new StoredSessions(to)
  await forEach(
    sessions.all((beginning) => to.scan(beginning)),
    (session) => patiently(() => sessions.relist(session)),
  )
  return await compare(read, from, to)
}

/** Does a step again if the store does not answer in time: it may have been done, which changes nothing. */
async function patiently(step: () => Promise<unknown>, tries = 10): Promise<void> {
  try {
    await step()
  } catch (error) {
    if (tries === 1 || !(error instanceof CountersignError)) throw error
    await sleep(pauseMs)
    await patiently(step, tries - 1)
  }
}

/** The kind of a value. Throws if this release does not know whether it is to be copied. */
function requireKind(key: string, { description }: SearchableStore): string {
  const kind = kindOf(key)
  if (Object.hasOwn(storedKinds, kind)) return kind
  throw new AdministrationError(
    `${description} has a value of the kind ${kind}, which this release does not know: use the release that wrote it`,
  )
}

/** Counts both stores. Rejects if one of them has more or fewer values of a kind than were read and have not ended. */
async function compare(read: ReadonlyMap<string, Tally>, from: SearchableStore, to: SearchableStore): Promise<Counts> {
  const [here, there] = await Promise.all([countKinds(from), countKinds(to)])
  const endedBy = Date.now() + clockMs
  const counts: Record<string, { from: number; to: number }> = {}
  const differing: string[] = []
  for (const kind of [...new Set([...read.keys(), ...here.keys(), ...there.keys()])].sort()) {
    const { count, ends } = read.get(kind) ?? { count: 0, ends: [] }
    const ended = ends.filter((end) => end <= endedBy).length
    const both = { from: here.get(kind) ?? 0, to: there.get(kind) ?? 0 }
    counts[kind] = both
    if (Object.values(both).some((found) => found > count || found < count - ended)) {
      differing.push(`${kind}: ${both.from} and ${both.to}, of ${count}`)
    }
  }
  if (differing.length === 0) return counts
  throw new AdministrationError(
    `the counts of both stores differ (${differing.join('; ')}): stop what still writes, and add --again`,
  )
}

/** Numbers of the values that are copied. Each key counts once, although a scan can find it twice. */
async function countKinds(store: SearchableStore): Promise<ReadonlyMap<string, number>> {
  const keys = new Set<string>()
  for await (const { key } of store.scan('')) if (storedKinds[kindOf(key)]?.isCopied) keys.add(key)
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(kindOf(key), (counts.get(kindOf(key)) ?? 0) + 1)
  return counts
}

/** Does work for each item, for some at a time. */
async function forEach<T>(items: AsyncIterable<T>, work: (item: T) => Promise<unknown>): Promise<void> {
  let batch: T[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < atOnce) continue
    await Promise.all(batch.map(work))
    batch = []
  }
  await Promise.all(batch.map(work))
}
