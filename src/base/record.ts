import { CountersignError } from '../shared/errors.ts'

/**
 * Version of the shape of a record that is stored as JSON (nonce, order, user, session): its field `v`.
 *
 * A field that older releases can ignore is added under the same version. Any other change is a new version of that
 * kind, which is written only from the release after the one that can read it, because two releases run side by side
 * during an upgrade.
 */
const recordVersion = 1

/** A record of another version, which a newer release stored. */
class RecordVersionError extends Error {
  override readonly name = 'RecordVersionError'
}

/** The text of a record, to be stored. */
export function recordText(record: object): string {
  return JSON.stringify({ v: recordVersion, ...record })
}

/**
 * Parses a stored record. Throws a {@link RecordVersionError} if this release cannot read its version. `what` is the
 * kind of record for the message, such as "order".
 */
export function parseRecord<R>(what: string, text: string): R {
  const { v, ...record } = JSON.parse(text)
  if (v === recordVersion) return record
  throw new RecordVersionError(
    `the stored ${what} has version ${v}, and this release reads version ${recordVersion}: upgrade this instance`,
  )
}

/** What is written in place of what was read: `found` is absent if nothing was. */
interface Overwrite<Life> {
  readonly key: string
  readonly found: { readonly version: number } | undefined
  readonly value: string
  readonly life: Life
}

/** The steps of a store that write in place of what was read. */
interface RecordWriter<Life> {
  create(key: string, value: string, life: Life): Promise<boolean>
  compareAndSet(key: string, version: number, value: string, life: Life): Promise<boolean>
}

/** Stores a value in place of what was read. Resolves with false, without a change, if another was stored meanwhile. */
export async function replaceFound<Life>(
  store: RecordWriter<Life>,
  { key, found, value, life }: Overwrite<Life>,
): Promise<boolean> {
  return found === undefined
    ? await store.create(key, value, life)
    : await store.compareAndSet(key, found.version, value, life)
}

/** The steps of a store that a change takes. */
interface RecordStore<Life> extends RecordWriter<Life> {
  get(key: string): Promise<{ readonly value: string; readonly version: number } | undefined>
  now(): number
}

/**
 * Most tries of a change. Each lost race means that another caller changed the record; after this many, the store
 * breaks its contract.
 */
const maxTries = 256

/**
 * Changes the record under a key by compare-and-set. `change` gets what `read` makes of the stored text, `undefined` if
 * there is none, and the store's time. It returns the text to store with its life, or `undefined` to change nothing; it
 * is called again after a lost race. Resolves with what the last call returned.
 */
export async function changeRecord<R, Life, C extends { readonly value: string; readonly life: Life } | undefined>(
  store: RecordStore<Life>,
  key: string,
  read: (text: string, now: number) => R,
  change: (found: R | undefined, now: number) => C | Promise<C>,
): Promise<C> {
  for (let tries = 0; tries < maxTries; tries++) {
    const found = await store.get(key)
    const now = store.now()
    const next = await change(found && read(found.value, now), now)
    if (next === undefined) return next
    if (await replaceFound(store, { key, found, value: next.value, life: next.life })) return next
  }
  throw new CountersignError('STORE_UNAVAILABLE', 'The record kept changing; try again shortly', {
    retryAfterMs: 1000,
    cause: new Error(`a record ${key.split(':', 1)}: kept changing`),
  })
}

/** What a stored nonce or order says of the service that made it. */
export interface RecordOrigin {
  /** The origin that it was made for. */
  readonly origin: string
  /** The service's application name. */
  readonly appName: string
}

/**
 * Why a stored nonce or order must not be used here, for the log; `undefined` if it may be. Services that share a store
 * find each other's nonces and orders, and a signature over one of them was not meant for this service: it counts only
 * if the record has this service's application name and an origin that is trusted now.
 */
export function mismatchReason(
  record: RecordOrigin,
  appName: string,
  origins: { accepts(origin: string): boolean },
): Error | undefined {
  if (record.appName !== appName) {
    return new Error(`it is of another application than ${JSON.stringify(appName)}, which shares the store`)
  }
  if (!origins.accepts(record.origin)) return new Error(`its origin, ${record.origin}, is not trusted here`)
  return undefined
}
