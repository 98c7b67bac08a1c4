import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { type DescMethod, fromJson, type JsonObject, type JsonValue, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { OrderService } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { RawRequest } from '../../support/raw-http.ts'
import { envelope } from '../../support/rpc-call.ts'

/** What the requests refer to: things that exist in the store, and that no request changes. */
export interface Fixture {
  /** Port of the service, which its Host headers name. */
  readonly port: number
  /** The token of a session whose user has many. */
  readonly sessionToken: string
  readonly cookie: string
  /** An order of each kind of interest, with the tokens to ask for it. */
  readonly waiting: { readonly orderId: string; readonly challengeToken: string }
  readonly cancelled: { readonly orderId: string; readonly desktopToken: string }
}

const unknownOrder = 'ord_aaaaaaaaaaaaaaaaaaaaaa'
const hex64 = 'ab'.repeat(32)
const hex128 = 'cd'.repeat(64)

/** The RPCs, each with messages that it takes, whatever becomes of them. */
const rpcs: Record<string, { readonly method: DescMethod; readonly messages: (fixture: Fixture) => JsonObject[] }> = {
  issueNonce: {
    method: SignInService.method.issueNonce,
    messages: () => [{}, { appName: 'Countersign' }, { appName: 'Another' }, { appName: 'G\u00e4rten \ud83c\udf3b' }],
  },
  verifySignIn: {
    method: SignInService.method.verifySignIn,
    messages: () => [
      { nonceId: 'unknown', publicKeyHex: hex64, signatureHex: hex128 },
      { nonceId: 'unknown', publicKeyHex: '', signatureHex: 'ab', adapterId: 'nimiq', address: 'NQ07' },
      { nonceId: 'no such id', publicKeyHex: 'abc', signatureHex: '', address: '', adapterId: '-' },
      { nonceId: '\n'.repeat(70), publicKeyHex: 'x'.repeat(600), signatureHex: 'y', address: 'z'.repeat(90) },
    ],
  },
  startOrder: {
    method: OrderService.method.startOrder,
    messages: () => [
      { kind: 'ORDER_KIND_LOGIN' },
      { kind: 'ORDER_KIND_SIGN', returnTo: '/done', displayTitle: 'Pay', payloadHash: 'sha256:abc' },
      {},
      { kind: 1, returnTo: '//elsewhere.example' },
      { kind: 9, displayTitle: '', displaySummary: '', payloadHash: ' ', adapterId: ' ', returnTo: '' },
      { kind: 2, displayTitle: 'two\nlines' },
      { kind: 2, adapterId: 'unheard-of' },
    ],
  },
  previewOrder: {
    method: OrderService.method.previewOrder,
    messages: (fixture) => [
      { orderId: unknownOrder, claimToken: 'wrong' },
      { orderId: fixture.waiting.orderId, claimToken: 'wrong' },
      { orderId: '', claimToken: 'x'.repeat(513) },
    ],
  },
  claimOrder: {
    method: OrderService.method.claimOrder,
    messages: (fixture) => [
      { orderId: unknownOrder, claimToken: 'wrong' },
      { orderId: fixture.waiting.orderId, claimToken: 'wrong' },
      { orderId: '', claimToken: 'x'.repeat(513), claimKey: 'short' },
    ],
  },
  getOrderChallenge: {
    method: OrderService.method.getOrderChallenge,
    messages: (fixture) => [
      fixture.waiting,
      { orderId: unknownOrder, challengeToken: 'wrong' },
      { ...fixture.waiting, challengeToken: 'wrong' },
    ],
  },
  approveOrder: {
    method: OrderService.method.approveOrder,
    messages: (fixture) => [
      { orderId: unknownOrder, challengeToken: '', proof: { publicKeyHex: hex64, signatureHex: hex128 } },
      { ...fixture.waiting, proof: { publicKeyHex: hex64, signatureHex: hex128 } },
      { ...fixture.waiting, proof: { publicKeyHex: hex64, signatureHex: hex128, address: 'NQ07 0000' } },
      { ...fixture.waiting },
      { ...fixture.waiting, proof: {}, rememberComputer: true },
      { orderId: '?', proof: { publicKeyHex: '0', signatureHex: '0', address: '', adapterId: '' } },
    ],
  },
  rejectOrder: {
    method: OrderService.method.rejectOrder,
    messages: (fixture) => [
      { orderId: unknownOrder, challengeToken: 'wrong' },
      { ...fixture.waiting, challengeToken: 'wrong' },
    ],
  },
  cancelOrder: {
    method: OrderService.method.cancelOrder,
    messages: (fixture) => [fixture.cancelled, { orderId: unknownOrder, desktopToken: 'wrong' }],
  },
  finalizeOrder: {
    method: OrderService.method.finalizeOrder,
    messages: (fixture) => [fixture.cancelled, { orderId: unknownOrder, desktopToken: 'wrong' }],
  },
  watchOrder: {
    method: OrderService.method.watchOrder,
    messages: (fixture) => [
      fixture.cancelled,
      { ...fixture.cancelled, afterSequence: 1 },
      { ...fixture.cancelled, afterSequence: 99 },
      { orderId: unknownOrder, desktopToken: 'wrong' },
      { ...fixture.cancelled, desktopToken: 'wrong' },
      { orderId: '%', desktopToken: 'x'.repeat(600) },
    ],
  },
  getCurrentSession: { method: SessionService.method.getCurrentSession, messages: () => [{}] },
  signOut: { method: SessionService.method.signOut, messages: () => [{}] },
  listSessions: { method: SessionService.method.listSessions, messages: () => [{}] },
  revokeSession: {
    method: SessionService.method.revokeSession,
    messages: () => [{ sessionId: 'unknown' }, { sessionId: '' }],
  },
  revokeOtherSessions: { method: SessionService.method.revokeOtherSessions, messages: () => [{}] },
  introspectSession: {
    method: SessionService.method.introspectSession,
    messages: ({ sessionToken }) => [{ token: sessionToken }, { token: 'wrong' }, { token: '' }],
  },
}

/** Calls that would change what other requests see if they were made with a session. */
const changesSessions: ReadonlySet<string> = new Set(['signOut', 'revokeOtherSessions'])

const httpMethods = ['POST', 'GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'post'] as const

const targets: Record<string, (path: string, port: number) => string> = {
  plain: (path) => path,
  query: (path) => `${path}?a=b`,
  'two queries': (path) => `${path}?a?b`,
  'message in the query': (path) => `${path}?connect=v1&encoding=json&message=%7B%7D`,
  'query that is not encoded right': (path) => `${path}?%zz=%`,
  fragment: (path) => `${path}#a`,
  'fragment after a query': (path) => `${path}?a#b`,
  'two slashes in front': (path) => `/${path}`,
  'two slashes in the middle': (path) => path.replace(/\/(?=\w+$)/, '//'),
  'slash at the end': (path) => `${path}/`,
  'absolute form': (path, port) => `http://localhost:${port}${path}`,
  'encoded letter': (path) => path.replace('countersign', '%63ountersign'),
  'another case': (path) => path.toLowerCase(),
  'unknown RPC': (path) => `${path}s`,
  'dot segments': (path) => `/x/..${path}`,
}

const hosts: Record<string, (port: number) => string | undefined> = {
  'its own': (port) => `localhost:${port}`,
  'its own in upper case': (port) => `LOCALHOST:${port}`,
  'its address': (port) => `127.0.0.1:${port}`,
  'its address in short': (port) => `127.1:${port}`,
  'its IPv6 address': (port) => `[::1]:${port}`,
  foreign: () => 'evil.example',
  'foreign with a port': () => 'evil.example:8443',
  'with an underscore': () => 'a_b.example',
  'with a dot at the end': (port) => `localhost.:${port}`,
  'without a port': () => 'localhost',
  'with an empty port': () => 'localhost:',
  'missing, over HTTP/1.0': () => undefined,
  'with a blank': () => 'a b',
  'with a bracket': () => '[',
  'with a percent sign': () => '%',
  'with a port out of range': () => 'a:99999',
  'with a path': (port) => `localhost:${port}/x`,
  'with a query': (port) => `localhost:${port}?x`,
  'with a fragment': (port) => `localhost:${port}#x`,
  'with a user': (port) => `user@localhost:${port}`,
  'with a backslash': (port) => `localhost:${port}\\x`,
  empty: () => '',
}

const contentTypes: readonly (string | undefined)[] = [
  ...['application/json', 'application/proto', 'application/json; charset=utf-8', 'application/json;charset=utf-8'],
  ...['application/json;  charset=utf-8', 'application/json ; charset=utf-8', 'application/json; charset=utf8'],
  ...['application/json; charset=UTF-8', 'application/json; charset="utf-8"', 'application/json; charset=latin1'],
  ...['application/json; q=1', 'application/json;', 'APPLICATION/JSON', 'Application/Proto'],
  ...['application/proto; charset=utf-8', 'application/proto;charset=utf8', 'application/connect+json'],
  ...['application/connect+json; charset=utf-8', 'application/connect+proto'],
  ...['application/connect+proto; charset=utf-8', 'application/connectjson', 'application/connect', 'application/grpc'],
  ...['application/grpc+proto', 'application/grpc+json', 'application/grpc+json; charset=utf-8'],
  ...['application/grpc+thrift', 'application/grpc-web', 'application/grpc-web+proto', 'application/grpc-web+json'],
  ...['application/grpc-web-text', 'application/grpc-web-text+proto', 'application/x-protobuf'],
  ...['application/x-www-form-urlencoded', 'text/plain', 'text/plain; application/json', 'nonsense', '', undefined],
]

const gzip = (bytes: Buffer): Buffer => gzipSync(bytes)

/** What the header says of the body, and what is true. */
const encodings: Record<string, { readonly header?: string; readonly encode: (bytes: Buffer) => Buffer }> = {
  none: { encode: (bytes) => bytes },
  identity: { header: 'identity', encode: (bytes) => bytes },
  gzip: { header: 'gzip', encode: gzip },
  br: { header: 'br', encode: (bytes) => brotliCompressSync(bytes) },
  'nothing named': { header: '', encode: (bytes) => bytes },
  'unknown one': { header: 'deflate', encode: (bytes) => bytes },
  'GZIP in upper case': { header: 'GZIP', encode: gzip },
  'two, named together': { header: 'gzip, gzip', encode: (bytes) => gzip(gzip(bytes)) },
  'gzip without the header': { encode: gzip },
  'gzip that is plain': { header: 'gzip', encode: (bytes) => bytes },
  'br that is plain': { header: 'br', encode: (bytes) => bytes },
  'br that is gzip': { header: 'br', encode: gzip },
  'gzip cut off': { header: 'gzip', encode: (bytes) => gzip(bytes).subarray(0, -9) },
  'gzip cut off in its head': { header: 'gzip', encode: (bytes) => gzip(bytes).subarray(0, 5) },
  'gzip with a wrong checksum': { header: 'gzip', encode: (bytes) => flipped(gzip(bytes), -6) },
  'gzip with more after it': { header: 'gzip', encode: (bytes) => Buffer.concat([gzip(bytes), Buffer.from('more')]) },
  'gzip in two members': {
    header: 'gzip',
    encode: (bytes) => Buffer.concat([gzip(bytes.subarray(0, 5)), gzip(bytes.subarray(5))]),
  },
  'gzip of a megabyte': {
    header: 'gzip',
    encode: (bytes) => gzip(Buffer.concat([bytes, Buffer.alloc(1_000_000, ' ')])),
  },
  'br of a megabyte': {
    header: 'br',
    // The best compression, which is the default, takes 100 ms.
    encode: (bytes) =>
      brotliCompressSync(Buffer.concat([bytes, Buffer.alloc(1_000_000, ' ')]), {
        params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
      }),
  },
}

const acceptedEncodings: readonly (string | undefined)[] = [
  ...[undefined, 'gzip', 'br', 'gzip, deflate, br, zstd', 'br, gzip', 'br;q=0.5, gzip', 'GZIP', 'identity', 'deflate'],
  ...['*', ''],
]

const timeouts: readonly (string | undefined)[] = [
  ...[undefined, '20000', '0', '1', '900000', '1200000', '9999999999', '12345678901', '000020000', '-1', '1.5', '1e3'],
  ...['0x10', 'abc', ' ', ''],
]

/** gRPC's spelling of a Connect timeout. */
function grpcTimeout(timeout: string): string {
  return /^\d+$/.test(timeout) ? (timeout.length > 8 ? '99999999S' : `${timeout}m`) : timeout
}

type HeaderList = readonly (readonly [string, string])[]

const otherHeaders: Record<string, (fixture: Fixture) => HeaderList> = {
  none: () => [],
  'protocol version 1': () => [['connect-protocol-version', '1']],
  'protocol version 2': () => [['connect-protocol-version', '2']],
  'protocol version in words': () => [['connect-protocol-version', 'one']],
  'its own origin': ({ port }) => [['origin', `http://localhost:${port}`]],
  'a foreign origin': () => [['origin', 'https://evil.example']],
  'no origin to show': () => [['origin', 'null']],
  'a malformed origin': () => [['origin', 'http://a/b']],
  "a preflight's headers": ({ port }) => [
    ['origin', `http://localhost:${port}`],
    ['access-control-request-method', 'POST'],
  ],
  'forwarded headers that nobody trusts': () => [
    ['x-forwarded-host', 'evil.example'],
    ['x-forwarded-proto', 'https'],
    ['x-forwarded-for', '203.0.113.7'],
  ],
  'a user agent that is not ASCII': () => [['user-agent', 'B\u00e4r\u00ff/1.0']],
  'a continuation to wait for': () => [['expect', '100-continue']],
  'trailers to come': () => [['te', 'trailers']],
  'the same header twice': () => [
    ['x-twice', 'a'],
    ['x-twice', 'b'],
  ],
  'two content types': () => [['content-type', 'application/proto']],
  'two timeouts': () => [['connect-timeout-ms', '20000']],
}

const credentials: Record<string, (fixture: Fixture) => HeaderList> = {
  none: () => [],
  'a good token': ({ sessionToken }) => [['authorization', `Bearer ${sessionToken}`]],
  'a good token, oddly spelled': ({ sessionToken }) => [['authorization', `bEARER   ${sessionToken}  `]],
  'a good cookie': ({ cookie }) => [['cookie', cookie]],
  'a wrong token': () => [['authorization', 'Bearer wrong']],
  'a token whose signature is wrong': ({ sessionToken }) => [
    ['authorization', `Bearer ${sessionToken.slice(0, -4)}AAAA`],
  ],
  'a password': () => [['authorization', 'Basic YTpi']],
  'an empty token': () => [['authorization', 'Bearer ']],
  'a cookie of rubbish': () => [['cookie', '=;;a=b; \u00e4; countersign_session=%%%']],
}

/** How a message is written; for JSON. Every other codec gets the same bytes, which then are broken. */
const jsonSpellings: Record<string, (message: JsonObject, method: DescMethod) => string | Buffer> = {
  'byte order mark': (message) => `\ufeff${JSON.stringify(message)}`,
  'two byte order marks': (message) => `\ufeff\ufeff${JSON.stringify(message)}`,
  'UTF-16': (message) => Buffer.from(`\ufeff${JSON.stringify(message)}`, 'utf16le'),
  'snake_case names': (message) =>
    JSON.stringify(message).replace(/"(\w+)":/g, (name) =>
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    ),
  'names in upper case': (message) => JSON.stringify(message).replace(/"(\w+)":/g, (name) => name.toUpperCase()),
  'both spellings of a name': (message) => {
    const text = JSON.stringify(message)
    const snake = text.replace(/"(\w+)":/g, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
    return text === '{}' ? text : `${text.slice(0, -1)},${snake.slice(1)}`
  },
  'unknown fields': (message) => JSON.stringify({ ...message, unheard: { of: [1, null, 'x'] }, '': 0 }),
  'null for every field': (_, method) =>
    JSON.stringify(Object.fromEntries(method.input.fields.map(({ jsonName }) => [jsonName, null]))),
  'a number for every field': (_, method) => everyField(method, 7),
  'text for every field': (_, method) => everyField(method, '7'),
  'true for every field': (_, method) => everyField(method, true),
  'a list for every field': (_, method) => everyField(method, ['7']),
  'an object for every field': (_, method) => everyField(method, { a: 'b' }),
  'a large number for every field': (_, method) => everyField(method, 4_294_967_296),
  'a negative number for every field': (_, method) => everyField(method, -1),
  'a fraction for every field': (_, method) => everyField(method, 1.5),
  'half a surrogate pair for every field': (_, method) => everyField(method, 'x\ud83d'),
  'an emoji for every field': (_, method) => everyField(method, '\ud83e\udd80'),
  'long text for every field': (_, method) => everyField(method, 'x'.repeat(3000)),
  'line breaks for every field': (_, method) => everyField(method, 'a\r\nb'),
  'control characters that are not escaped': (_, method) => everyField(method, 'a@b').replaceAll('@', '\u0007'),
  'no UTF-8 in every field': (_, method) => Buffer.from(everyField(method, '\u00ff\u00fe'), 'latin1'),
  'NaN for every field': (_, method) => everyField(method, 'NaN').replaceAll('"NaN"', 'NaN'),
  'numbers with an exponent': (message) => JSON.stringify(message).replace(/:(\d+)/g, ':$1e0'),
  'numbers as text': (message) => JSON.stringify(message).replace(/:(\d+)/g, ':"$1"'),
  'a name twice': (message) =>
    `${JSON.stringify(message).slice(0, -1)}${'{}' === JSON.stringify(message) ? '' : ','}"kind":2,"kind":1}`,
  'an enum by another name': (message) => JSON.stringify({ ...message, kind: 'LOGIN' }),
  'an enum by number as text': (message) => JSON.stringify({ ...message, kind: '1' }),
  'a prototype': (message) =>
    `${JSON.stringify(message).slice(0, -1)}${'{}' === JSON.stringify(message) ? '' : ','}"__proto__":{"nonceId":"x"}}`,
  'white space around': (message) => ` \t\r\n${JSON.stringify(message, undefined, 2)}\n\n`,
  'white space that JSON does not know': (message) => `\u00a0${JSON.stringify(message)}`,
  'escapes in names': (message) =>
    JSON.stringify(message).replace(/"([a-z])/g, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`),
  'more after it': (message) => `${JSON.stringify(message)}{}`,
  'a comma too many': (message) => `${JSON.stringify(message).slice(0, -1)},}`,
  'a comment': (message) => `/* a */${JSON.stringify(message)}`,
  'single quotes': (message) => JSON.stringify(message).replaceAll('"', "'"),
  'cut off': (message) => JSON.stringify(message).slice(0, -1),
  nothing: () => '',
  'white space only': () => ' \n ',
  'a zero byte': () => Buffer.alloc(1),
  'an empty object': () => '{}',
  'an empty list': () => '[]',
  'a list of the message': (message) => JSON.stringify([message]),
  'null alone': () => 'null',
  'a number alone': () => '7',
  'text alone': () => '"text"',
  'true alone': () => 'true',
  'lists in lists': () => `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  'lists in lists in an unknown field': () => `{"a":${'['.repeat(3000)}${']'.repeat(3000)}}`,
  'exactly 64 KiB': (message) => JSON.stringify(message).padEnd(65_536),
  'a byte more than 64 KiB': (message) => JSON.stringify(message).padEnd(65_537),
  'an unknown field of 200 kB': () => JSON.stringify({ a: 'x'.repeat(200_000) }),
}

/** Binary messages that are odd or broken. For JSON, they are broken. */
const binarySpellings: Record<string, (message: Buffer) => Buffer> = {
  'bytes: tag without a value': (message) => Buffer.concat([message, Buffer.from([0x0a])]),
  'bytes: length beyond the end': (message) => Buffer.concat([message, Buffer.from([0x0a, 0x7f, 0x78])]),
  'bytes: varint without an end': (message) => Buffer.concat([message, Buffer.from([0x08, 0xff, 0xff])]),
  'bytes: varint of eleven bytes': (message) =>
    Buffer.concat([message, Buffer.from([0x08, ...Array(10).fill(0xff), 1])]),
  'bytes: tag zero': (message) => Buffer.concat([message, Buffer.from([0x00, 0x01])]),
  'bytes: wire type 6': (message) => Buffer.concat([message, Buffer.from([0x0e])]),
  'bytes: group without an end': (message) => Buffer.concat([message, Buffer.from([0xa3, 0x06])]),
  'bytes: end of no group': (message) => Buffer.concat([message, Buffer.from([0xa4, 0x06])]),
  'bytes: number where text is': (message) =>
    Buffer.concat([message, Buffer.from([0x08, 0x01, 0x10, 0x01, 0x18, 0x01])]),
  'bytes: text where a number is': (message) => Buffer.concat([message, Buffer.from([0x0a, 1, 0x78, 0x1a, 1, 0x78])]),
  'bytes: text that is no UTF-8': (message) => Buffer.concat([message, Buffer.from([0x0a, 2, 0xff, 0xfe])]),
  'bytes: unknown fields': (message) => Buffer.concat([message, Buffer.from([0xf8, 0x3f, 1, 0xfa, 0x3f, 1, 0x78])]),
  'bytes: a field twice': (message) => Buffer.concat([message, message]),
  'bytes: byte order mark': (message) => Buffer.concat([Buffer.from('\ufeff'), message]),
}

/** What is done to the envelope of a message, in the protocols that have one. */
const envelopes: Record<string, (data: Buffer, flags: number) => Buffer> = {
  plain: envelope,
  'compressed, it says': (data) => envelope(data, 1),
  'not compressed, it says': (data) => envelope(data, 0),
  'unknown flags': (data, flags) => envelope(data, flags | 0x40),
  'the flag of an end': (data, flags) => envelope(data, flags | 0x02),
  'the flag of trailers': (data, flags) => envelope(data, flags | 0x80),
  'two messages': (data, flags) => Buffer.concat([envelope(data, flags), envelope(data, flags)]),
  'no message': () => Buffer.alloc(0),
  'half a head': (data, flags) => envelope(data, flags).subarray(0, 3),
  'a message cut off': (data, flags) => envelope(Buffer.concat([data, Buffer.alloc(9)]), flags).subarray(0, -4),
  'a length of gigabytes': (data, flags) => {
    const bytes = envelope(data, flags)
    bytes.writeUInt32BE(0xffff_fff0, 1)
    return bytes
  },
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  const index = copy.length + at
  copy.writeUInt8(copy.readUInt8(index) ^ 0xff, index)
  return copy
}

function everyField(method: DescMethod, value: JsonValue): string {
  return JSON.stringify(Object.fromEntries(method.input.fields.map(({ jsonName }) => [jsonName, value])))
}

/** A request, said in the words of the tables above. */
export interface Plan {
  readonly rpc: string
  /** Which of the RPC's messages. */
  readonly message: number
  /** How the message is written. */
  readonly spelling: string
  readonly httpMethod: string
  readonly target: string
  readonly host: string
  readonly contentType: string | undefined
  readonly encoding: string
  readonly accept: string | undefined
  readonly timeout: string | undefined
  readonly envelope: string
  readonly headers: string
  readonly credentials: string
  readonly chunked: boolean
}

const plainPlan: Omit<Plan, 'rpc'> = {
  message: 0,
  spelling: 'plain',
  httpMethod: 'POST',
  target: 'plain',
  host: 'its own',
  contentType: 'application/json',
  encoding: 'none',
  accept: undefined,
  timeout: undefined,
  envelope: 'plain',
  headers: 'none',
  credentials: 'none',
  chunked: false,
}

const values = {
  spelling: ['plain', ...Object.keys(jsonSpellings), ...Object.keys(binarySpellings)],
  httpMethod: httpMethods,
  target: Object.keys(targets),
  host: Object.keys(hosts),
  contentType: contentTypes,
  encoding: Object.keys(encodings),
  accept: acceptedEncodings,
  timeout: timeouts,
  envelope: Object.keys(envelopes),
  headers: Object.keys(otherHeaders),
  credentials: Object.keys(credentials),
  chunked: [false, true],
} satisfies { readonly [Name in keyof typeof plainPlan]?: readonly Plan[Name][] }

/** The codecs and protocols that every RPC is called over. */
const streamTypes = ['application/connect+json', 'application/connect+proto'] as const
const unaryTypes = ['application/json', 'application/proto'] as const
const grpcTypes = ['application/grpc', 'application/grpc-web+proto', 'application/grpc-web+json'] as const

function usualTypes(rpc: string): readonly string[] {
  return [...(rpc === 'watchOrder' ? streamTypes : unaryTypes), ...grpcTypes]
}

/** The RPCs and content types for which every value of a plan is tried. */
const thoroughly = [
  ['issueNonce', 'application/json'],
  ['issueNonce', 'application/grpc-web+proto'],
  ['verifySignIn', 'application/json'],
  ['verifySignIn', 'application/proto'],
  ['startOrder', 'application/json'],
  ['listSessions', 'application/json'],
  ['listSessions', 'application/grpc'],
  ['watchOrder', 'application/connect+json'],
  ['watchOrder', 'application/grpc-web+proto'],
] as const

/** Each message of each RPC over each protocol, and every other value of a plan by itself. */
export function simplePlans(): Plan[] {
  const plans: Plan[] = []
  for (const [rpc, { messages }] of Object.entries(rpcs)) {
    for (const contentType of usualTypes(rpc)) {
      messages(noFixture).forEach((_, message) => {
        for (const auth of ['none', 'a good token', 'a good cookie', 'a wrong token']) {
          if (message === 0 || auth === 'none')
            plans.push({ ...plainPlan, rpc, message, contentType, credentials: auth })
        }
      })
    }
  }
  for (const [rpc, contentType] of thoroughly) {
    const plain = { ...plainPlan, rpc, contentType, ...(rpc === 'listSessions' ? { credentials: 'a good token' } : {}) }
    for (const [name, all] of Object.entries(values)) {
      for (const value of all) plans.push({ ...plain, [name]: value })
    }
  }
  // Faults that only show together.
  for (const odd of [
    { timeout: '0', spelling: 'cut off' },
    { encoding: 'gzip of a megabyte', envelope: 'two messages', contentType: 'application/grpc-web+proto' },
    { encoding: 'gzip', accept: '' },
    { httpMethod: 'OPTIONS', headers: "a preflight's headers" },
    { encoding: 'gzip that is plain', spelling: 'a byte more than 64 KiB', chunked: true },
  ]) {
    plans.push({ ...plainPlan, rpc: 'startOrder', ...odd })
  }
  return plans.map(harmless)
}

/** The same call over every protocol: each message of each RPC, and each way to write one that suits the codec. */
export function callsOverEveryProtocol(): Plan[][] {
  const calls: Plan[] = Object.entries(rpcs).flatMap(([rpc, { messages }]) =>
    messages(noFixture).flatMap((_, message) =>
      ['none', 'a good token', 'a wrong token'].map((auth) => ({ ...plainPlan, rpc, message, credentials: auth })),
    ),
  )
  const over = (plan: Plan, codec: 'json' | 'proto'): Plan[] =>
    (plan.rpc === 'watchOrder' ? [`application/connect+${codec}`] : [`application/${codec}`, `application/${codec}`])
      .concat(`application/grpc-web+${codec}`, `application/grpc-web-text+${codec}`, `application/grpc+${codec}`)
      .map((contentType, index) => harmless({ ...plan, contentType, encoding: index === 1 ? 'gzip' : 'none' }))
  const written = ['issueNonce', 'verifySignIn', 'startOrder', 'watchOrder'].flatMap((rpc) => [
    ...Object.keys(jsonSpellings).map((spelling) => over({ ...plainPlan, rpc, spelling }, 'json')),
    ...Object.keys(binarySpellings).map((spelling) => over({ ...plainPlan, rpc, spelling }, 'proto')),
  ])
  return [...calls.map((plan) => [...over(plan, 'json'), ...over(plan, 'proto')]), ...written]
}

/** Requests in which several things are odd at once. */
export function mixedPlans(seed: number, count: number): Plan[] {
  const mostly = <T>(plain: T, all: readonly T[], weight: number): fc.Arbitrary<T> =>
    fc.oneof({ weight, arbitrary: fc.constant(plain) }, { weight: 10, arbitrary: fc.constantFrom(...all) })
  const plan = fc.constantFrom(...Object.keys(rpcs)).chain((rpc) =>
    fc.record<Plan>({
      rpc: fc.constant(rpc),
      message: fc.nat(rpcs[rpc]!.messages(noFixture).length - 1),
      spelling: mostly('plain', values.spelling, 15),
      httpMethod: mostly('POST', values.httpMethod, 400),
      target: mostly('plain', values.target, 150),
      host: mostly('its own', values.host, 120),
      contentType: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom<string | undefined>(...usualTypes(rpc)) },
        { weight: 2, arbitrary: fc.constantFrom(...contentTypes) },
      ),
      encoding: mostly('none', values.encoding, 40),
      accept: mostly(undefined, values.accept, 5),
      timeout: mostly(undefined, values.timeout, 100),
      envelope: mostly('plain', values.envelope, 60),
      headers: mostly('none', values.headers, 20),
      credentials: fc.constantFrom(...values.credentials),
      chunked: fc.boolean(),
    }),
  )
  return fc.sample(plan, { seed, numRuns: count }).map(harmless)
}

const noFixture: Fixture = {
  port: 0,
  sessionToken: '',
  cookie: '',
  waiting: { orderId: '', challengeToken: '' },
  cancelled: { orderId: '', desktopToken: '' },
}

function harmless(plan: Plan): Plan {
  const isGood = plan.credentials.startsWith('a good')
  return isGood && changesSessions.has(plan.rpc) ? { ...plan, credentials: 'a wrong token' } : plan
}

/** The RPC of a plan. */
export function methodOf({ rpc }: Plan): DescMethod {
  return rpcs[rpc]!.method
}

/** The bytes of a request. */
export function requestOf(plan: Plan, fixture: Fixture): RawRequest {
  const { method, messages } = rpcs[plan.rpc]!
  const object = messages(fixture)[plan.message] as JsonObject
  return requestWith(plan, pathOf(method), messageBytes(plan, method, object), fixture)
}

/** The path of an RPC. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`
}

/** A request for any path and with any message, in which everything else is as a plan says. */
export function requestWith(plan: Omit<Plan, 'rpc'>, path: string, message: Buffer, fixture: Fixture): RawRequest {
  const { port } = fixture
  const host = hosts[plan.host]!(port)
  const contentType = plan.contentType?.toLowerCase() ?? ''
  const streaming = contentType.includes('connect+')
  const grpc = contentType.includes('grpc')
  const enveloped = streaming || grpc
  const prefix = grpc ? 'grpc-' : streaming ? 'connect-content-' : 'content-'
  const acceptName = grpc ? 'grpc-accept-encoding' : streaming ? 'connect-accept-encoding' : 'accept-encoding'
  const { header: encodingHeader, encode } = encodings[plan.encoding]!
  const encoded = encode(message)
  const isCompressed = encodingHeader !== undefined && !['', 'identity'].includes(encodingHeader)
  const body = enveloped ? envelopes[plan.envelope]!(encoded, isCompressed ? 1 : 0) : encoded
  const headers: [string, string][] = [['connection', 'close']]
  if (host !== undefined) headers.push(['host', host])
  if (plan.contentType !== undefined) headers.push(['content-type', plan.contentType])
  if (encodingHeader !== undefined) headers.push([`${prefix}encoding`, encodingHeader])
  if (plan.accept !== undefined) headers.push([acceptName, plan.accept])
  if (plan.timeout !== undefined) {
    headers.push(grpc ? ['grpc-timeout', grpcTimeout(plan.timeout)] : ['connect-timeout-ms', plan.timeout])
  }
  for (const [name, value] of [...otherHeaders[plan.headers]!(fixture), ...credentials[plan.credentials]!(fixture)]) {
    headers.push([name, value])
  }
  return {
    method: plan.httpMethod,
    target: targets[plan.target]!(path, port),
    // HTTP/1.0 is the only version that has requests without a Host header, and it has no chunks.
    version: host === undefined ? '1.0' : '1.1',
    headers,
    body: contentType.includes('-text') ? Buffer.from(body.toString('base64')) : body,
    chunked: plan.chunked && host !== undefined,
  }
}

/** A message in the spelling and codec of a plan. */
export function messageBytes(
  { spelling, contentType }: Pick<Plan, 'spelling' | 'contentType'>,
  method: DescMethod,
  object: JsonObject,
): Buffer {
  const inBinary = (): Buffer => Buffer.from(toBinary(method.input, fromJson(method.input, object)))
  const binary = binarySpellings[spelling]
  if (binary !== undefined) return binary(inBinary())
  const json = jsonSpellings[spelling]
  if (json !== undefined) {
    const text = json(object, method)
    return typeof text === 'string' ? Buffer.from(text) : text
  }
  return contentType?.toLowerCase().includes('json') ? Buffer.from(JSON.stringify(object)) : inBinary()
}
