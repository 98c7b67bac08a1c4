import type { Fields } from './compare.ts'
import type { Plan } from './requests.ts'

/** One request with both answers. */
export interface Pair {
  readonly plan: Plan
  /** The service's answer. */
  readonly ours: Fields
  /** The answer of connect-node's own adapter. */
  readonly theirs: Fields
}

/** A difference that is meant to be. */
export interface Difference {
  /** Why the service answers otherwise. */
  readonly why: string
  /** The fields in which it does. */
  readonly fields: readonly string[] | 'all'
  readonly when: (pair: Pair) => boolean
}

const failure = ['status', 'header grpc-status', 'code', 'message', 'reason', 'metadata'] as const

/**
 * All differences between the service and connect-node's own adapter over the same handlers. The list may only shrink:
 * the test fails at a difference that is not listed, and at an entry that no difference needs.
 */
export const differences: readonly Difference[] = [
  {
    why: 'A compression is named only by an answer that is in it: gRPC\u2019s C library fails on one that is named without need.',
    fields: ['header grpc-encoding', 'header connect-content-encoding'],
    when: ({ ours }) =>
      ours['header grpc-encoding'] === undefined && ours['header connect-content-encoding'] === undefined,
  },
  {
    why: 'Every answer tells browsers not to guess its type, and caches that it depends on the Origin header.',
    fields: ['header x-content-type-options', 'header vary'],
    when: ({ ours }) => ours['header x-content-type-options'] === 'nosniff' && ours['header vary'] === 'Origin',
  },
  {
    why: 'Pages of trusted origins may read the answers (CORS), which an adapter leaves to its application.',
    fields: [
      'header access-control-allow-credentials',
      'header access-control-allow-origin',
      'header access-control-expose-headers',
    ],
    when: ({ plan, theirs }) =>
      ['its own origin', "a preflight's headers"].includes(plan.headers) &&
      theirs['header access-control-allow-origin'] === undefined,
  },
  {
    why: "A browser's preflight is answered in front of all routes.",
    fields: 'all',
    when: ({ plan, ours }) =>
      plan.httpMethod === 'OPTIONS' && plan.headers === "a preflight's headers" && ours.status === 204,
  },
  {
    why: 'No cache keeps the answer to a call; what connect-node refuses before a handler says nothing of caches.',
    fields: ['header cache-control'],
    when: ({ ours, theirs }) => ours['header cache-control'] === 'no-store' && theirs.reason === undefined,
  },
  {
    why: 'A refusal before any RPC is found says what is wrong in the form of REST errors; connect-node sends a status alone.',
    fields: ['body', 'header content-type', 'header cache-control', 'header allow', 'header accept-post'],
    when: ({ ours, theirs }) =>
      ours.status === theirs.status && [400, 404, 405, 415].includes(Number(ours.status)) && theirs.body === '',
  },
  {
    why: 'A Host header that makes no URL is the caller\u2019s mistake; at it, connect-node throws out of its request listener.',
    fields: 'all',
    when: ({ ours, theirs }) => theirs['header x-threw'] === 'yes' && [400, 405, 415].includes(Number(ours.status)),
  },
  {
    why: 'A Host header with a user, path, query or fragment is malformed (RFC 9110, 7.2); connect-node takes a host out of it.',
    fields: 'all',
    when: ({ plan, ours }) =>
      ['with a path', 'with a query', 'with a fragment', 'with a user', 'with a backslash'].includes(plan.host) &&
      ours.status === 400 &&
      String(ours.body).includes('The Host header is malformed'),
  },
  {
    why: 'The service reads an origin from the Host header as it stands, and takes none from one with an empty port.',
    fields: ['message', 'metadata'],
    when: ({ plan, ours, theirs }) =>
      plan.host === 'with an empty port' && ours.code === 'permission_denied' && ours.reason === theirs.reason,
  },
  {
    why: 'gRPC-Web\u2019s text form is served; connect-node does not know it.',
    fields: 'all',
    when: ({ plan, ours, theirs }) =>
      plan.contentType?.startsWith('application/grpc-web-text') === true &&
      ours.status === 200 &&
      theirs.status === 415,
  },
  {
    why: 'A message that does not decode has a reason, and a text that quotes nothing of it; connect-node\u2019s has a code alone.',
    fields: ['message', 'reason', 'metadata'],
    when: ({ ours, theirs }) => isRefusal(ours) && theirs.reason === undefined && ours.code === theirs.code,
  },
  {
    why: 'A body that does not decode or decompress is the caller\u2019s mistake; to connect-node it is an internal error.',
    fields: failure,
    when: ({ ours, theirs }) =>
      ours.reason === 'INVALID_REQUEST' &&
      theirs.code === 'internal' &&
      /^(parse binary: |decompression failed$|received compressed envelope, but do not know how to decompress$)/.test(
        String(theirs.message),
      ),
  },
  {
    why: 'No answer is compressed with Brotli, which takes too much CPU.',
    fields: ['header content-encoding', 'header grpc-encoding'],
    when: ({ theirs }) => theirs['header content-encoding'] === 'br' || theirs['header grpc-encoding'] === 'br',
  },
  {
    why: 'GZIP is gzip, and its weight counts (RFC 9110, 8.4.1 and 12.5.3); connect-node knows the bare name in lower case only.',
    fields: ['header content-encoding', 'header grpc-encoding'],
    when: ({ plan, ours }) =>
      /gzip/i.test(plan.accept ?? '') && (ours['header content-encoding'] ?? ours['header grpc-encoding']) === 'gzip',
  },
  {
    why: 'An unknown compression has a reason beside the code.',
    fields: ['message', 'reason', 'metadata'],
    when: ({ ours, theirs }) =>
      ours.reason === 'COMPRESSION_UNSUPPORTED' && String(theirs.message).startsWith('unknown compression "'),
  },
  {
    why: 'Of a malformed deadline and an unknown compression, the deadline is told.',
    fields: failure,
    when: ({ ours, theirs }) =>
      ours.reason === 'INVALID_REQUEST' && String(theirs.message).startsWith('unknown compression "'),
  },
  {
    why: 'A target in absolute form counts (RFC 9112, 3.2.2); to connect-node it is another path.',
    fields: 'all',
    when: ({ plan, theirs }) => plan.target === 'absolute form' && theirs.status === 404,
  },
  {
    why: 'A call that is refused for its compression is told those that are known; connect-node leaves them out.',
    fields: ['', 'connect-', 'grpc-'].map((prefix) => `header ${prefix}accept-encoding`),
    when: ({ plan }) =>
      ['nothing named', 'unknown one', 'GZIP in upper case', 'two, named together'].includes(plan.encoding),
  },
  {
    why: 'No message, or several, is INVALID_REQUEST like all that is wrong with a body, and INVALID_REQUEST has one code.',
    fields: failure,
    when: ({ ours, theirs }) =>
      isRefusal(ours) && /^protocol error: (missing|received extra) input message/.test(String(theirs.message)),
  },
  {
    why: 'Of several messages none is read; connect-node reads the first before it sees that there are more.',
    fields: failure,
    when: ({ plan, ours, theirs }) =>
      plan.envelope === 'two messages' && isRefusal(ours) && theirs.reason === undefined,
  },
  {
    why: 'Flags of an envelope that no protocol has given a meaning are refused; connect-node ignores them.',
    fields: 'all',
    when: ({ plan, ours }) =>
      ['unknown flags', 'the flag of an end', 'the flag of trailers'].includes(plan.envelope) &&
      ours.message === 'The body has unknown flags',
  },
  {
    why: 'A deadline beyond 15 minutes is cut to them; connect-node with such a limit refuses it.',
    fields: 'all',
    when: ({ ours, theirs }) =>
      /^timeout \d+ms must be <= 900000$/.test(String(theirs.message)) &&
      ours.code !== 'deadline_exceeded' &&
      !String(ours.message).endsWith('-timeout is malformed'),
  },
  {
    why: 'A call without any time is over before its message is read.',
    fields: failure,
    when: ({ plan, ours, theirs }) =>
      plan.timeout === '0' && ours.code === 'deadline_exceeded' && theirs.reason === undefined,
  },
]

/** Whether the service says that the body is at fault. */
function isRefusal({ reason }: Fields): boolean {
  return reason === 'INVALID_REQUEST' || reason === 'REQUEST_TOO_LARGE'
}
