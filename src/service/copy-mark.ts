import type { Logger } from '../base/log.ts'
import { parseRecord, recordText, replaceFound } from '../base/record.ts'
import type { Keyring } from '../base/token.ts'
import { CountersignError, refused } from '../shared/errors.ts'
import { StoreOpenError } from '../store/implementation.ts'
import { mapStore } from '../store/map-store.ts'
import type { Store } from '../store/store.ts'

/**
 * What `countersign admin copy` leaves in both stores. `from`: this one is being copied, or was, and another is in its
 * place. `to`: this one is not complete. `done`: it is, and no service has started on it since.
 */
export interface CopyMark {
  readonly side: 'from' | 'to' | 'done'
  /** Kind of the other store. */
  readonly other: string
  /** The run of the command that set it. */
  readonly run: string
  /** Signatures by the secrets that the service may have used on the other store: with `done`, it needs one of them. */
  readonly proofs?: readonly string[]
}

const markKey = 'copy-mark'

/**
 * Longest time in ms for which a running service uses a store without a look for a mark: half of the minute for which
 * the command waits.
 */
const lookEveryMs = 30_000

/** What to wait before a call on a marked store is tried again, in ms. */
const retryAfterMs = 60_000

/** The mark in a store, if there is one. */
export async function readMark(store: Store): Promise<CopyMark | undefined> {
  const found = await store.get(markKey)
  return found && parseRecord<CopyMark>('mark of a copy', found.value)
}

/** Puts a mark into a store, in place of one that is there; `undefined` takes it away. */
export async function setMark(store: Store, mark: CopyMark | undefined): Promise<void> {
  if (mark === undefined) return void (await store.take(markKey))
  const entry = { key: markKey, value: recordText(mark), life: 'forever' } as const
  while (!(await replaceFound(store, { ...entry, found: await store.get(markKey) }))) {
    // Another command has changed it in between.
  }
}

/** What the secrets of a service sign, for {@link CopyMark.proofs}. */
export function proofOf(keyring: Keyring): string {
  return keyring.sign('store copy', '')
}

/** Rejects with a `StoreOpenError` if a store is marked so that no service may use it. */
export async function requireUsable(store: Store): Promise<void> {
  const mark = await readMark(store)
  if (mark === undefined || mark.side === 'done') return
  const { description } = store
  throw mark.side === 'from'
    ? new StoreOpenError(`${description} was copied to another store (${mark.other}), which takes its place`, {
        advice:
          'Name that one in COUNTERSIGN_STORE. To use this one again, without what has changed since: countersign ' +
          'admin copy --undo',
      })
    : new StoreOpenError(`${description} is an unfinished copy of another store (${mark.other})`, {
        advice: 'Begin the copy anew with countersign admin copy --again.',
      })
}

/**
 * A store whose steps fail from half a minute after it was marked until half a minute after the mark is gone. Looks
 * before a step, so that a process that was held up for long makes none without a look: by two clocks, because one
 * stands still while the machine sleeps, and the other can be set back.
 */
export function guardedStore(store: Store, log: Logger): Store {
  const unseen = { steady: 0, wall: 0 }
  let lookAt = unseen
  let looking: Promise<void> | undefined
  const look = async (): Promise<void> => {
    const next = { steady: performance.now() + lookEveryMs, wall: Date.now() + lookEveryMs }
    try {
      await requireUsable(store)
      lookAt = next
    } catch (cause) {
      if (cause instanceof CountersignError) throw cause
      if (lookAt !== unseen) log.error('the store takes no calls any more', { cause: (cause as Error).message })
      lookAt = unseen
      throw refused('STORE_UNAVAILABLE', { retryAfterMs, cause })
    }
  }
  return mapStore(store, {
    around(_operation, step) {
      if (performance.now() < lookAt.steady && Date.now() < lookAt.wall) return step()
      looking ??= look().finally(() => {
        looking = undefined
      })
      return looking.then(step)
    },
  })
}

/**
 * Checks, at the first start after a copy, that the service has the secret which it had on the other store.
 *
 * @throws TypeError of one line if it has not: all sessions would end.
 */
export async function requireSecretOfCopy(store: Store, keyring: Keyring): Promise<void> {
  const mark = await readMark(store)
  if (mark?.side !== 'done') return
  if (!mark.proofs?.some((proof) => keyring.verify('store copy', '', proof))) {
    throw new TypeError(
      `secret (COUNTERSIGN_SECRET) is not that of the store which was copied here (${mark.other}), so all sessions ` +
        'would end: set that one; to go on without it, run countersign admin copy --undo --from with this store',
    )
  }
  await setMark(store, undefined)
}
