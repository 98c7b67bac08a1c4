import type { OriginPolicy } from './origin-policy.ts'

/** What a stored nonce or order says of the service that made it. */
export interface RecordOrigin {
  /** The origin that it was made for. */
  readonly origin: string
  /** The service's application name. Releases before this field wrote records without it. */
  readonly appName?: string
  /** The text for the wallet to sign. Its first line begins with the application name. */
  readonly message: string
}

/**
 * Why a stored nonce or order must not be used here, for the log; `undefined` if it may be. Services that share a store find
 * each other's nonces and orders, and a signature over one of them was not meant for this service: it counts only if the
 * record has this service's application name and an origin that is trusted now.
 */
export function whyForeign(record: RecordOrigin, appName: string, origins: OriginPolicy): Error | undefined {
  if (!isOfApp(record, appName)) {
    return new Error(`it is of another application than ${JSON.stringify(appName)}, which shares the store`)
  }
  if (!origins.accepts(record.origin)) return new Error(`its origin, ${record.origin}, is not trusted here`)
  return undefined
}

function isOfApp(record: RecordOrigin, appName: string): boolean {
  if (record.appName !== undefined) return record.appName === appName
  const [firstLine] = record.message.split('\n', 1)
  return firstLine === `${appName} requests authentication` || firstLine === `${appName} requests approval`
}
