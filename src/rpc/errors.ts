import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeFromString } from '@connectrpc/connect/protocol-connect'
import { ViolationsSchema } from '../../gen/server/buf/validate/validate_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { CallEnded, CountersignError, type ErrorMetadata, internalError } from '../shared/errors.ts'
import { RulesBroken, violationsMessage } from './rules.ts'

/**
 * The failure, with a reason, of any thrown error. An unforeseen error becomes INTERNAL: the caller gets a reference,
 * and the cause stays with the error for the log. A call that took too long becomes STORE_UNAVAILABLE, for protocols
 * without a status of their own for that.
 */
export function toFailure(thrown: unknown): CountersignError {
  if (thrown instanceof CountersignError) return thrown
  if (!(thrown instanceof CallEnded)) return internalError(thrown)
  const message = 'The service did not answer in time; try again shortly'
  return new CountersignError('STORE_UNAVAILABLE', message, { retryAfterMs: 1000, cause: thrown })
}

/**
 * Connect's error for a failed call: code and message, ErrorInfo, the rules of the schema that the message breaks, and
 * RetryInfo if a retry can help. Connect's own errors stay as they are.
 */
export function toConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown
  if (thrown instanceof CallEnded) return new ConnectError(thrown.message, codeOf(thrown.code))
  const failure = toFailure(thrown)
  const { reason, code, message, retryAfterMs, metadata, cause } = failure
  const details: NonNullable<ConstructorParameters<typeof ConnectError>[3]> = [
    { desc: ErrorInfoSchema, value: { reason, domain: 'countersign', metadata: wellFormed(metadata) } },
  ]
  if (retryAfterMs !== undefined) {
    details.push({ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(retryAfterMs) } })
  }
  if (cause instanceof RulesBroken) {
    details.push({ desc: ViolationsSchema, value: violationsMessage(cause.violations) })
  }
  const headers = retryAfterMs === undefined ? undefined : { 'retry-after': retryAfterSeconds(retryAfterMs) }
  // Trailers cannot carry half of a surrogate pair.
  return new ConnectError(message.toWellFormed(), codeOf(code), headers, details, failure)
}

/** Protobuf rejects half of a surrogate pair. */
function wellFormed(metadata: ErrorMetadata): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, value.toWellFormed()]))
}

function codeOf(name: CountersignError['code'] | CallEnded['code']): Code {
  return codeFromString(name) ?? Code.Internal
}

/** The value of a Retry-After header: whole seconds, rounded up. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.ceil(retryAfterMs / 1000))
}
