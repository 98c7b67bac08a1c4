/**
 * A record that is stored as JSON (nonce, order, user, session). `v` is the version of its shape; without it, the
 * version is 1.
 *
 * A field that older releases can ignore is added under the same version. Any other change is a new version, which is
 * written only from the release after the one that can read it, because two releases run side by side during an
 * upgrade.
 */
export interface StoredRecord {
  readonly v?: number
}

/** A record that a newer release stored. */
class RecordVersionError extends Error {
  override readonly name = 'RecordVersionError'
}

/**
 * Parses a stored record. Throws a {@link RecordVersionError} if its version is above `newest`, the newest that this
 * release reads. `what` is the kind of record for the message, such as "order".
 */
export function parseRecord<R extends StoredRecord>(what: string, text: string, newest: number): R {
  const record = JSON.parse(text) as R
  const { v = 1 } = record
  if (v <= newest) return record
  throw new RecordVersionError(
    `the stored ${what} has version ${v} of a newer Countersign; this release reads versions up to ${newest}: upgrade this instance`,
  )
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
