import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect'
import { codeFromString } from '@connectrpc/connect/protocol-connect'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { CountersignError, type ErrorReason } from '../errors.ts'
import { newId } from '../token.ts'

/** Told of every failure before it goes to the caller. */
export type FailureObserver = (failure: CountersignError) => void

/**
 * Makes anything that was thrown a failure with a reason. What nobody foresaw becomes INTERNAL: the caller gets a reference,
 * the cause stays with the error for the log.
 */
export function toFailure(thrown: unknown): CountersignError {
  if (thrown instanceof CountersignError) return thrown
  if (thrown instanceof ConnectError) {
    const reason = reasonsOfConnect[thrown.code]
    if (reason !== undefined) return new CountersignError(reason, thrown.rawMessage, { cause: thrown })
  }
  return new CountersignError('INTERNAL', `The server failed; its log has the cause under ${newId()}`, {
    cause: thrown,
  })
}

/** What Connect itself refuses, before a handler runs. */
const reasonsOfConnect: Partial<Record<Code, ErrorReason>> = {
  [Code.InvalidArgument]: 'INVALID_REQUEST',
  [Code.ResourceExhausted]: 'REQUEST_TOO_LARGE',
  [Code.Unimplemented]: 'INVALID_REQUEST',
}

/** Codes of errors that nobody foresaw. */
const ourFault: ReadonlySet<Code> = new Set([Code.Unknown, Code.Internal, Code.DataLoss])

/** The Connect error of a failure: its code, its message, ErrorInfo, and RetryInfo when a retry can help. */
export function toConnectError(thrown: unknown): ConnectError {
  // A caller that went away, a deadline that passed, a service of the health check that is not here: these have no reason of
  // ours, and Connect has the words for them.
  if (thrown instanceof ConnectError && !(thrown.code in reasonsOfConnect) && !ourFault.has(thrown.code)) return thrown
  const failure = toFailure(thrown)
  const { reason, code, message, retryAfterMs } = failure
  const connectCode = codeFromString(code) ?? Code.Internal
  const info = { desc: ErrorInfoSchema, value: { reason, domain: 'countersign' } }
  const retry =
    retryAfterMs === undefined ? [] : [{ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(retryAfterMs) } }]
  const metadata = retryAfterMs === undefined ? undefined : { 'retry-after': retryAfterSeconds(retryAfterMs) }
  // What Connect said of a refused message, such as the rules it breaks, stays with it.
  const more = thrown instanceof ConnectError ? thrown.details.filter((detail) => 'desc' in detail) : []
  return new ConnectError(message, connectCode, metadata, [info, ...retry, ...more], failure)
}

/** The value of a Retry-After header: whole seconds, rounded up. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.ceil(retryAfterMs / 1000))
}

/** Gives every error of a call its reason. The outermost interceptor, so that it sees those of the others too. */
export function errorInterceptor(observe: FailureObserver): Interceptor {
  const convert = (thrown: unknown): ConnectError => {
    const error = toConnectError(thrown)
    if (error.cause instanceof CountersignError) observe(error.cause)
    return error
  }
  return (next) => async (request) => {
    try {
      const response = await next(request)
      return response.stream ? { ...response, message: convertErrors(response.message, convert) } : response
    } catch (thrown) {
      throw convert(thrown)
    }
  }
}

async function* convertErrors<T>(
  messages: AsyncIterable<T>,
  convert: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  try {
    yield* messages
  } catch (thrown) {
    throw convert(thrown)
  }
}
