import type { IncomingHttpHeaders } from 'node:http'
import { maxBodyBytes } from '../limits/limits.ts'
import { toConnectError } from '../rpc/errors.ts'
import { undecodable } from '../rpc/read-input.ts'
import { CountersignError, type ErrorMetadata, refused } from '../shared/errors.ts'
import type { Refusals } from '../wire/contract.ts'

/** The errors for requests that cannot be read. */
export const refusals: Refusals = {
  malformedBody: (problem, cause) => invalid(`The body ${problem}`, { cause }),
  endedEarly: (cause) => invalid('The request ended before its body did', { cause }),
  maxBodyBytes,
  bodyTooLarge: () => refused('REQUEST_TOO_LARGE', { metadata: { max_bytes: String(maxBodyBytes) } }),
  malformedHeader: (name) => invalid(`The header ${name} is malformed`, { metadata: { header: name } }),
  undecodable,
  unknownEncoding: (supported) => refused('COMPRESSION_UNSUPPORTED', { metadata: { encodings: supported } }),
  isUnknownEncoding: (thrown) => thrown instanceof CountersignError && thrown.reason === 'COMPRESSION_UNSUPPORTED',
  toConnectError,
}

function invalid(
  message: string,
  options?: { readonly metadata?: ErrorMetadata; readonly cause?: unknown },
): CountersignError {
  return new CountersignError('INVALID_REQUEST', message, options)
}

/**
 * Whether a body is JSON, by its content type. Forms of a foreign page cannot have this type (the Fetch standard's CORS
 * protocol).
 */
export function isJson(headers: IncomingHttpHeaders): boolean {
  return /^application\/json\b/i.test(headers['content-type'] ?? '')
}

/** Whether a body is a form, by its content type. */
export function isForm(headers: IncomingHttpHeaders): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')
}

/** The refusal of a body of another type than JSON. */
export function notJson(): CountersignError {
  return invalid('Send JSON, with the header content-type: application/json')
}

/** The refusal of a form in which a parser found objects within objects. */
export function nestedForm(): CountersignError {
  return invalid('Send a form whose parameters have plain names, without brackets')
}

const alreadyReadText =
  'The body of this request was read before Countersign got it, and cannot be read again. Mount Countersign ' +
  'before any other reader of bodies (a body parser, an upload handler, the framework itself), or let that leave ' +
  'the parsed JSON, the text or the bytes in request.body or request.rawBody; see docs/mounting.md of Countersign'

/** The failure of a body that other code has read: a mistake in the assembly of the application, logged as INTERNAL. */
export function alreadyRead(): CountersignError {
  const reference = crypto.randomUUID()
  return new CountersignError('INTERNAL', alreadyReadText, {
    metadata: { reference },
    cause: new Error(alreadyReadText),
  })
}
