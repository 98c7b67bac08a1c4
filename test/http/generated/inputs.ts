import { type DescMethod, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { restEndpoints } from '../../../src/http/rest/endpoints.ts'
import type { RawRequest } from '../../support/raw-http.ts'
import { type Fixture, messageBytes, type Plan, pathOf, requestWith } from '../../wire/differential/requests.ts'
import { damaged, hostileJson, messageOf, withHostileTexts } from './messages.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

/** One input. */
export interface Input {
  readonly http: '1.1' | '2'
  readonly request: RawRequest
  /** The RPC whose path it goes to. */
  readonly method?: DescMethod
  /** Text in the answer after which the client leaves. Without it, the client waits for the end. */
  readonly enough?: string
}

/** What odd inputs are made of. */
export interface Ingredients {
  readonly random: Random
  readonly world: World
  /** Everything about the request but the RPC and its message. */
  readonly plan: Plan
  readonly methods: readonly DescMethod[]
}

/**
 * Makes an input: a call of an RPC or a REST endpoint, a request for a page or for nothing that there is, or no HTTP at
 * all.
 */
export function inputOf(ingredients: Ingredients): Input {
  const choice = ingredients.random.share()
  if (choice < 0.75) return rpcInput(ingredients)
  if (choice < 0.87) return restInput(ingredients)
  return choice < 0.97 ? pathInput(ingredients) : bytesInput(ingredients)
}

const grpcTypes = ['', '-web', '-web-text'].flatMap((kind) =>
  ['', '+proto', '+json'].map((codec) => `application/grpc${kind}${codec}`),
)
const unaryTypes = ['application/json', 'application/json', 'application/proto', 'application/proto', ...grpcTypes]
const streamTypes = ['application/connect+json', 'application/connect+proto', ...grpcTypes]

/** The content types over which every RPC is served. */
export function contentTypesOf({ methodKind }: DescMethod): readonly string[] {
  return [...new Set(methodKind === 'unary' ? unaryTypes : streamTypes)]
}

function rpcInput({ random, world, plan, methods }: Ingredients): Input {
  const method = random.pick(methods)
  const http = random.share() < 0.5 ? '2' : '1.1'
  const isStream = method.methodKind !== 'unary'
  const contentType = random.share() < 0.9 ? random.pick(isStream ? streamTypes : unaryTypes) : plan.contentType
  const own: Plan = {
    ...(http === '2' ? withoutHttp1(plan) : plan),
    contentType,
    // A stream has to end for its answer to be looked at.
    ...(isStream ? { timeout: random.pick(['5', '20', '60', '0', '-1', 'abc', '1.5']), headers: 'none' } : {}),
  }
  const object = messageOf(method.input, random.pick(world.known), random)
  const fixture = fixtureFor(method, world)
  const message = writtenMessage(own, method, object, random)
  return { http, method, request: withOddities(requestWith(own, pathOf(method), message, fixture), random) }
}

function fixtureFor({ localName }: DescMethod, { fixture, revoking, signingOut, remembering }: World): Fixture {
  if (localName === 'signOut') return signingOut
  if (localName.includes('KnownComputer')) return remembering
  return localName.startsWith('revoke') ? revoking : fixture
}

/** Over HTTP/2 there is no way to say these things, or its own library refuses to. */
function withoutHttp1(plan: Plan): Plan {
  return { ...plan, host: 'its own', target: 'plain', chunked: false }
}

function writtenMessage(plan: Plan, method: DescMethod, object: JsonObject, random: Random): Buffer {
  if (plan.spelling !== 'plain' || random.share() < 0.3) return messageBytes(plan, method, object)
  const isJson = plan.contentType?.includes('json') === true
  const bytes = isJson
    ? hostileJson(object, random)
    : Buffer.from(toBinary(method.input, fromJson(method.input, withHostileTexts(object, random))))
  return random.share() < (isJson ? 0.1 : 0.5) ? damaged(bytes, random) : bytes
}

const oddHeaders: readonly (readonly [name: string, value: string])[] = [
  ['cookie', `${'a=b; '.repeat(500)}countersign_session=x`],
  ['cookie', '__proto__=x; constructor=y; countersign_session='],
  ['cookie', `countersign_session=${'A'.repeat(4000)}`],
  ['authorization', `Bearer ${'A'.repeat(5000)}`],
  ['authorization', 'Bearer \u00ff\u00fe'],
  ['authorization', 'Bearer a b c'],
  ['origin', 'http://a:99999'],
  ['origin', 'javascript:alert(1)'],
  ['origin', `https://${'a'.repeat(3000)}.example`],
  ['origin', 'https://b\u00fccher.example'],
  ['x-forwarded-for', `${'203.0.113.7, '.repeat(300)}::1%eth0`],
  ['x-forwarded-for', '[::ffff:1.2.3.4]:99999'],
  ['x-forwarded-for', '__proto__'],
  ['x-forwarded-host', 'a/b?c#d@e'],
  ['x-forwarded-proto', 'gopher'],
  ['forwarded', 'for=_hidden;host="a\\"b"'],
  ['user-agent', `\u00ff\t${'x'.repeat(2000)}`],
  ['accept', '*/*;q=nan'],
  ['accept-encoding', 'gzip;q=1e999, br;q=-1, , ,*;q='],
  ['range', 'bytes=0-0,-1,5-2'],
  ['if-none-match', '*, W/"a", "b'],
  ['last-event-id', '99999999999999999999'],
  ['last-event-id', '-1'],
  ['access-control-request-method', 'TRACE'],
  ['access-control-request-headers', '\u00ff, a b, __proto__'],
  ['sec-fetch-site', 'cross-site'],
  ['grpc-timeout', '99999999H'],
  ['grpc-encoding', 'snappy'],
  ['grpc-accept-encoding', ',,gzip,'],
  ['connect-protocol-version', '__proto__'],
  ['content-language', 'x'.repeat(6000)],
  ['traceparent', '00-zz-zz-00'],
  ['x-http-method-override', 'DELETE'],
  ['__proto__', 'x'],
]

/** The request with one more header or a broken body, now and then. */
function withOddities(request: RawRequest, random: Random): RawRequest {
  const { headers, body } = request
  const odd = random.pick(oddHeaders)
  // A second deadline would replace that of a stream.
  const isTaken = headers.some(([name]) => name === odd[0])
  return {
    ...request,
    headers: random.share() < 0.2 && !isTaken ? [...headers, odd] : headers,
    body: random.share() < 0.05 ? damaged(body, random) : body,
  }
}

const endpoints = restEndpoints({ basePath: '/api/auth', endpointPrefix: '/wallet' })

function restInput({ random, world, plan }: Ingredients): Input {
  const { httpMethod, path, rpc } = random.pick(endpoints)
  const isStream = rpc.methodKind !== 'unary'
  const http = random.share() < 0.5 && !isStream ? '2' : '1.1'
  const own: Plan = {
    ...(http === '2' ? withoutHttp1(plan) : plan),
    httpMethod: random.share() < 0.95 ? httpMethod : plan.httpMethod,
    contentType: random.share() < 0.8 ? 'application/json' : plan.contentType,
    envelope: 'plain',
  }
  const object = messageOf(rpc.input, random.pick(world.known), random)
  const fixture = fixtureFor(rpc, world)
  const message = httpMethod === 'GET' ? Buffer.alloc(0) : writtenMessage(own, rpc, object, random)
  const request = withOddities(requestWith(own, path, message, fixture), random)
  if (httpMethod !== 'GET') return { http, request }
  const { target, headers } = request
  const [orderId, token] = Object.values(withHostileTexts(object, random)).map(String)
  const query = random
    .pick([
      `orderId=${encodeURIComponent(orderId ?? '')}`,
      `orderId=${encodeURIComponent(orderId ?? '')}&challengeToken=${encodeURIComponent(token ?? '')}`,
      'orderId=%zz&orderId=a&=&&__proto__=x',
      '',
    ])
    .slice(0, 8000)
  const bearer = /^[!-~]{1,600}$/.test(token ?? '') ? token : 'x'
  return {
    http,
    request: {
      ...request,
      target: `${target}${target.includes('?') ? '&' : '?'}${query}`,
      headers: [...headers.filter(([name]) => name !== 'authorization'), ['authorization', `Bearer ${bearer}`]],
    },
    // An order that is live is watched for as long as it is.
    ...(isStream ? { enough: '\n\n' } : {}),
  }
}

const paths: readonly string[] = [
  '/',
  '/healthz',
  '/readyz',
  '/openapi.json',
  '/c/aaaaaaaaaaaaaaaaaaaaaa',
  '/c/',
  '/c/%00',
  '/c/a/b/../../c',
  '/pages/',
  '/pages/../main.ts',
  '/pages/%2e%2e/%2e%2e/package.json',
  '/pages/__proto__',
  '/__proto__',
  '/constructor',
  '/favicon.ico',
  '/robots.txt',
  '/.env',
  '/api/auth',
  '/api/auth/',
  '/api/auth/wallet/nope',
  '/api/auth/__proto__',
  '/API/AUTH/WALLET/NONCE',
  '/countersign.v1.SignInService',
  '/countersign.v1.SignInService/',
  '/countersign.v1.SignInService/toString',
  '/countersign.v1.NoService/NoMethod',
  '/grpc.health.v1.Health/NoMethod',
  '/\u00ff\u00fe',
  '/%',
  '/?%',
  '/;a=b',
  '/a'.repeat(2000),
  `/?${'a=b&'.repeat(1000)}`,
]

const pathMethods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'TRACE', 'PROPFIND', 'M-SEARCH', 'DELETE']

function pathInput({ random, world, plan }: Ingredients): Input {
  const http = random.share() < 0.3 ? '2' : '1.1'
  const path = random.pick(http === '2' ? paths.filter((one) => /^[!-~]+$/.test(one)) : paths)
  const own: Plan = { ...(http === '2' ? withoutHttp1(plan) : plan), httpMethod: random.pick(pathMethods) }
  const body = random.share() < 0.3 ? random.bytes(random.below(2000)) : Buffer.alloc(0)
  return { http, request: withOddities(requestWith(own, path, body, world.fixture), random) }
}

/** A request whose first line and headers are not those of HTTP. */
function bytesInput({ random, world, plan }: Ingredients): Input {
  const text = (): string => random.bytes(random.below(200)).toString('latin1')
  const request = requestWith(plan, '/', random.bytes(random.below(500)), world.fixture)
  const header: [string, string] = random.pick([
    [text(), text()],
    ['content-length', random.pick(['-1', '1e3', '99999999999999999999', '+5', '5, 6', ''])],
    ['transfer-encoding', random.pick(['chunked, chunked', 'gzip', 'identity', 'chunked;a=b', '\u000bchunked'])],
    ['connection', 'upgrade'],
    ['upgrade', 'h2c'],
    ['expect', 'a miracle'],
    ['x'.repeat(20_000), 'y'],
    ['x', 'y'.repeat(70_000)],
  ])
  return {
    http: '1.1',
    request: {
      ...request,
      method:
        random.share() < 0.5
          ? plan.httpMethod
          : random.pick([text(), 'CONNECT', 'G\u00c4T', 'GET\t', '', '\u0016\u0003\u0001']),
      target: random.share() < 0.5 ? request.target : random.pick([text(), '*', 'localhost:1', '', '/ a b']),
      headers: random.share() < 0.5 ? [...request.headers, header] : request.headers,
    },
  }
}
