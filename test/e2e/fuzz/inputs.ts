import type { DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf'
import { restEndpoints } from '../../../src/http/rest/endpoints.ts'
import { type Ingredients, inputOf } from '../../http/generated/inputs.ts'
import { damaged, hostileTexts, messageOf } from '../../http/generated/messages.ts'
import type { Random } from '../../http/generated/random.ts'
import type { World } from '../../http/generated/world.ts'
import type { RawRequest } from '../../support/raw-http.ts'
import { damagedFrames, http1Bytes, http2Frames } from './bytes.ts'

/** What goes out on one connection. */
export interface FuzzInput {
  readonly http: '1.1' | '2'
  readonly bytes: Buffer
}

/** Makes an input: up to three requests on one connection, most of them damaged on the way. */
export function fuzzInputOf(ingredients: Ingredients): FuzzInput {
  const { random } = ingredients
  const first = requestOf(ingredients)
  const requests = [first.request]
  while (random.share() < 0.2 && requests.length < 3) requests.push(requestOf(ingredients).request)
  const isDamaged = random.share() < 0.6
  if (first.http === '2') {
    const frames = http2Frames(requests)
    return { http: '2', bytes: isDamaged ? damagedFrames(frames, random) : Buffer.concat(frames) }
  }
  const bytes = http1Bytes(requests)
  return { http: '1.1', bytes: isDamaged ? damaged(bytes, random) : bytes }
}

function requestOf(ingredients: Ingredients): { http: '1.1' | '2'; request: RawRequest } {
  const { random } = ingredients
  const choice = random.share()
  const http = random.share() < 0.5 ? '2' : '1.1'
  if (choice < 0.4) return { http, request: misplaced(ingredients) }
  if (choice < 0.65) return { http, request: pageRequest(ingredients) }
  return inputOf(ingredients)
}

/** All texts of the world: ids, tokens, keys and signatures that count somewhere. */
function liveTexts({ known, fixture }: World): string[] {
  const texts = (value: JsonValue): string[] => {
    if (typeof value === 'string') return [value]
    return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : []
  }
  return [...known.flatMap((each) => texts(each)), fixture.sessionToken]
}

const endpoints = restEndpoints({ basePath: '/api/auth', endpointPrefix: '/wallet' })

/** A call of the right shape whose values are live ones of other fields. */
function misplaced({ random, world, methods }: Ingredients): RawRequest {
  const live = liveTexts(world)
  const endpoint = random.pick(endpoints)
  const rpc: DescMethod = random.share() < 0.5 ? random.pick(methods) : endpoint.rpc
  const right = messageOf(rpc.input, random.pick(world.known), random)
  const message = withLiveTexts(right, { live, share: random.pick([0, 0.1, 0.5]) }, random)
  const isStream = rpc.methodKind !== 'unary'
  const json = Buffer.from(JSON.stringify(message))
  const isRest = rpc === endpoint.rpc && endpoint.httpMethod === 'POST' && random.share() < 0.9
  const type = isStream ? 'application/connect+json' : 'application/json'
  return {
    method: 'POST',
    target: isRest ? endpoint.path : `/${rpc.parent.typeName}/${rpc.name}`,
    version: '1.1',
    headers: [
      ...common(world, random),
      ['content-type', type],
      ...(isStream ? ([['connect-timeout-ms', '50']] as const) : []),
      ...(random.share() < 0.5 ? ([['authorization', `Bearer ${random.pick(live)}`]] as const) : []),
    ],
    body: isStream ? Buffer.concat([Buffer.from([0]), lengthPrefix(json), json]) : json,
  }
}

function lengthPrefix(bytes: Buffer): Buffer {
  const prefix = Buffer.alloc(4)
  prefix.writeUInt32BE(bytes.length)
  return prefix
}

/** Which texts take the place of others, and of what share of them. */
interface Replacing {
  readonly live: readonly string[]
  readonly share: number
}

function withLiveTexts(object: JsonObject, replacing: Replacing, random: Random): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => {
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        return [name, withLiveTexts(value, replacing, random)]
      }
      return [name, typeof value === 'string' && random.share() < replacing.share ? random.pick(replacing.live) : value]
    }),
  )
}

function common({ fixture }: World, random: Random): RawRequest['headers'] {
  const host = `localhost:${fixture.port}`
  return [
    ['host', host],
    ['connection', 'close'],
    ...(random.share() < 0.5 ? ([['origin', `http://${host}`]] as const) : []),
  ]
}

/** Paths that are read: of pages, streams, proxies and documents. VALUE is in place of what a client says. */
const readPaths: readonly string[] = [
  ...['/', '/VALUE', '/demo/VALUE', '/pages/VALUE', '/healthz', '/readyz', '/openapi.json', '/.well-known/jwks.json'],
  ...['/c/VALUE', '/cross-device/continue/VALUE', '/cross-device/VALUE/VALUE'],
  ...[
    '/api/auth/sign-in',
    '/api/auth/forward-auth',
    '/api/auth/cross-device/events',
    '/api/auth/cross-device/challenge',
  ],
  ...['/api/auth/openapi.json', '/api/auth/session', '/api/auth/sessions', '/api/auth/computers', '/api/auth/VALUE'],
]

const queryNames = [
  ...[
    ...['orderId', 'after', 'wait', 'challengeToken', 'desktopToken', 'token', 'returnTo', 'redirect', 'connect'],
    ...['message'],
  ],
  ...['encoding', 'base64', 'compression', '', '__proto__', 'orderId'],
]

const readMethods = ['GET', 'GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'DELETE', 'QUERY']

const accepts = ['application/json', 'text/event-stream', 'text/html', '*/*', 'application/json;q=0, */*', ',', 'x/']

const numbers = [
  ...['0', '1', '-1', '25', '26', '1e9', '9007199254740993', '99999999999999999999', '0x1', '1.5', 'NaN', ' 1'],
]

/** A request for what is read by browsers and proxies, with odd parameters and headers. */
function pageRequest({ random, world }: Ingredients): RawRequest {
  const live = liveTexts(world)
  const value = (): string => {
    const choice = random.share()
    if (choice < 0.5) return random.pick(live)
    return choice < 0.75 ? random.pick(numbers) : random.pick(hostileTexts).slice(0, 4000)
  }
  const written = (): string => (random.share() < 0.85 ? encoded(value()) : random.bytes(8).toString('latin1'))
  const path = random.pick(readPaths).replaceAll('VALUE', written)
  const query = Array.from({ length: random.below(4) }, () => `${random.pick(queryNames)}=${written()}`).join('&')
  const inHeader = (): string => value().replaceAll(/[^\t -~]/g, '?')
  const extra: readonly (readonly [string, string])[] = [
    ['authorization', `Bearer ${inHeader()}`],
    ['cookie', `countersign_session=${inHeader()}`],
    ['accept', random.pick(accepts)],
    ['accept-language', inHeader()],
    ['last-event-id', inHeader()],
    ['x-forwarded-uri', inHeader()],
    ['x-forwarded-method', random.pick(readMethods)],
    ['x-original-uri', inHeader()],
    ['x-original-method', inHeader()],
    ['x-forwarded-host', inHeader()],
    ['x-forwarded-proto', random.pick(['http', 'https', 'https, http', 'x', ''])],
    ['x-forwarded-for', inHeader()],
    ['if-none-match', inHeader()],
    ['traceparent', inHeader()],
  ]
  return {
    method: random.pick(readMethods),
    target: `${path.replaceAll(/[\r\n ]/g, '%20')}${query === '' ? '' : `?${query.replaceAll(/[\r\n ]/g, '+')}`}`,
    version: '1.1',
    headers: [...common(world, random), ...extra.filter(() => random.share() < 0.2)],
    body: Buffer.alloc(0),
  }
}

/** Text as a part of an address. Lone surrogates, which have no encoding, are replaced. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}
