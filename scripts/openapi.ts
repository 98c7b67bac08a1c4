/**
 * Writes gen/openapi.json: the OpenAPI document of the REST calls, made of the REST endpoints and of the protos with
 * their comments and validation rules. It has the default paths. The service serves it with its own
 * (src/http/openapi.ts).
 */
import { readFile, writeFile } from 'node:fs/promises'
import type { DescField, DescMethod } from '@bufbuild/protobuf'
import type { Oas3_1Definition, Oas3_1Schema, Oas3PathItem, Oas3SecurityScheme } from '@redocly/openapi-core'
import { ErrorReasonSchema } from '../gen/server/countersign/v1/error_reason_pb.ts'
import { templatePaths } from '../src/http/openapi.ts'
import { type RestEndpoint, restEndpoints } from '../src/http/rest/endpoints.ts'
import { sessionCookieName } from '../src/shared/header-text.ts'
import { serviceOptionsPath } from '../src/shared/rest-paths.ts'
import { calls } from './openapi/calls.ts'
import { failures, Operations, tagOf } from './openapi/operations.ts'
import { Prosaist } from './openapi/prose.ts'
import { Schemas, schemaRef } from './openapi/schemas.ts'
import { readProtoComments } from './proto-comments.ts'

type PathItem = Oas3PathItem<Oas3_1Schema>

/** The document with the default paths. */
export async function openApiDocument(): Promise<Oas3_1Definition> {
  const endpoints = restEndpoints(templatePaths)
  requireAllCalls(endpoints)
  const methods = endpoints.map(({ rpc }) => rpc)
  const comments = await readProtoComments()
  const prosaist = new Prosaist(comments, methods.flatMap(fieldsOf), methods)
  const schemas = new Schemas(prosaist)
  addErrors(schemas, prosaist)
  const operations = new Operations(comments, prosaist, schemas)
  const paths: Record<string, PathItem> = {}
  for (const endpoint of endpoints) {
    const { path, httpMethod } = endpoint
    paths[path] = { ...paths[path], [httpMethod.toLowerCase()]: operations.of(endpoint) }
  }
  const services = new Set(methods.map(({ parent }) => parent))
  const tags = [...services].map((service) => ({
    name: tagOf(service.name),
    description: prosaist.of(service).whole,
  }))
  const ofService = servicePaths(schemas)
  prosaist.requireAllWordingUsed()
  return {
    openapi: '3.1.0',
    info: {
      title: 'Countersign',
      version: await packageVersion(),
      description: aboutAll,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    } as Oas3_1Definition['info'] & object,
    servers: [{ url: '/', description: 'This service.' }],
    tags: [...tags, { name: 'Service', description: 'The service itself: its health, and its keys.' }],
    paths: { ...paths, ...ofService },
    components: {
      securitySchemes,
      parameters: { origin: originParameter },
      schemas: schemas.components,
    },
  }
}

/** All fields of a call's file, which its comments can name. */
function fieldsOf({ parent }: DescMethod): DescField[] {
  return parent.file.messages.flatMap(({ fields }) => fields)
}

/** What is said of a call that REST does not have is a mistake, too. */
function requireAllCalls(endpoints: readonly RestEndpoint[]): void {
  const names = new Set(endpoints.map(({ rpc }) => rpc.localName))
  const without = Object.keys(calls).filter((name) => !names.has(name))
  if (without.length > 0) throw new Error(`REST has no call for ${without.join(', ')} of scripts/openapi/calls.ts`)
}

function addErrors(schemas: Schemas, prosaist: Prosaist): void {
  const values = ErrorReasonSchema.values.filter(({ number }) => number !== 0)
  const lines = values.map((value) => `- \`${value.localName}\`: ${prosaist.ofReason(value)}`)
  schemas.add('ErrorReason', {
    type: 'string',
    description: `The reasons for which a call can fail. They are stable: let programs act on them. Later releases can add more.\n\n${lines.join('\n')}`,
    enum: values.map(({ localName }) => localName),
  })
  schemas.add('Error', {
    type: 'object',
    description: 'A failure.',
    required: ['code', 'message'],
    properties: {
      code: schemaRef('ErrorReason'),
      message: { type: 'string', description: 'What is wrong, and what to do about it. For people; it can change.' },
      metadata: {
        type: 'object',
        description:
          'What the message says that is not fixed text, by name, such as the origin that was seen. Absent if there is nothing.',
        additionalProperties: { type: 'string' },
      },
      triesLeft: {
        type: 'integer',
        minimum: 0,
        description: 'With `RETURN_CODE_WRONG` only: the number of further codes that can be tried.',
      },
    },
  })
}

function servicePaths(schemas: Schemas): Record<string, PathItem> {
  const status = (name: string, description: string): Oas3_1Schema => ({
    type: 'object',
    description,
    required: ['status'],
    properties: { status: { type: 'string', const: name } },
  })
  const alive = schemas.add('Alive', status('ok', 'The process answers.'))
  const ready = schemas.add('Ready', status('ready', 'The service takes calls.'))
  const stopping = schemas.add('Stopping', status('stopping', 'The service stops, and takes no more calls soon.'))
  const keySet = schemas.add('KeySet', keySetSchema)
  const serviceOptions = schemas.add('ServiceOptions', serviceOptionsSchema)
  const get = (operation: Omit<NonNullable<PathItem['get']>, 'tags' | 'security'>): PathItem => ({
    get: { tags: ['Service'], security: [], ...operation } as NonNullable<PathItem['get']>,
  })
  const json = (schema: Oas3_1Schema): { 'application/json': { schema: Oas3_1Schema } } => ({
    'application/json': { schema },
  })
  const { '500': failed, '503': away } = failures(['INTERNAL', 'STORE_UNAVAILABLE'])
  return {
    '/healthz': get({
      operationId: 'getHealth',
      summary: 'Says that the process is up',
      responses: { '200': { description: 'It is up.', content: json(alive) } },
    }),
    '/readyz': get({
      operationId: 'getReadiness',
      summary: 'Says whether the service can take calls: its store answers, and it does not stop',
      responses: {
        '200': { description: 'It can.', content: json(ready) },
        '500': failed as object,
        '503': {
          ...away,
          description: 'It cannot: it stops, or `STORE_UNAVAILABLE`.',
          content: json({ oneOf: [stopping, schemaRef('Error')] }),
        },
      },
    }),
    [templatePaths.basePath + serviceOptionsPath]: get({
      operationId: 'getOptions',
      summary: 'Returns what a page has to know before it offers a sign-in',
      description: 'Public, for pages of any origin. It may be cached for as long as Cache-Control says.',
      responses: {
        '200': { description: 'The options.', content: json(serviceOptions) },
        ...failures(['METHOD_NOT_ALLOWED']),
      },
    }),
    '/.well-known/jwks.json': get({
      operationId: 'getKeySet',
      summary: 'Returns the public keys of access tokens',
      description:
        'It is also under the base path of the other calls. It may be cached for as long as Cache-Control says.',
      responses: {
        '200': { description: 'The keys.', content: json(keySet) },
        ...failures(['ROUTE_NOT_FOUND']),
      },
    }),
  }
}

const text: Oas3_1Schema = { type: 'string' }

const texts = (description: string): Oas3_1Schema => ({ type: 'array', items: text, description })

const serviceOptionsSchema: Oas3_1Schema = {
  type: 'object',
  description: 'What the settings of the service offer.',
  required: ['appName', 'adapters', 'demoWallet', 'languages', 'parts'],
  properties: {
    appName: { ...text, description: 'Name in the first line of what wallets sign.' },
    adapters: texts('Ids of the configured wallet adapters.'),
    demoWallet: { type: 'boolean', description: 'Whether the demo wallet is offered, for trying the service out.' },
    languages: texts('Languages that the pages speak (BCP 47).'),
    parts: texts(
      'Parts of the service that are on: `pages`, `account` (the account page), `wallets` (several wallets for a ' +
        'user), `open-orders` (pages start orders of every kind without a start key), `access-tokens`, `oidc`. Later ' +
        'releases can add more.',
    ),
  },
}

const keySetSchema: Oas3_1Schema = {
  type: 'object',
  description: 'A JWK Set (RFC 7517).',
  required: ['keys'],
  properties: {
    keys: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['kty', 'crv', 'x', 'kid', 'alg', 'use'],
        properties: {
          kty: { ...text, enum: ['EC', 'OKP'] },
          crv: { ...text, enum: ['P-256', 'Ed25519'] },
          x: { ...text, description: '32 bytes, base64url: the point’s first coordinate, or the whole Ed25519 key.' },
          y: { ...text, description: 'The point’s second coordinate; absent for Ed25519.' },
          kid: { ...text, description: 'The key’s thumbprint (RFC 7638, SHA-256), which tokens name.' },
          alg: { ...text, enum: ['ES256', 'EdDSA', 'Ed25519'] },
          use: { ...text, const: 'sig' },
        },
      },
    },
  },
}

const originParameter = {
  name: 'Origin',
  in: 'header',
  description:
    'The origin of the calling page. Browsers send it themselves. A program can leave it out if it calls the service by the host of its public URL; otherwise it sends the origin of the page that it acts for.',
  schema: { type: 'string' },
} as const

const bearer = (description: string): Oas3SecurityScheme =>
  ({ type: 'http', scheme: 'bearer', description }) as Oas3SecurityScheme

const securitySchemes: Record<string, Oas3SecurityScheme> = {
  sessionToken: bearer(
    'The session token, from `verifySignIn` or `finalizeOrder`. If a cookie is sent too, the token counts.',
  ),
  sessionCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookieName(false),
    description: 'The session cookie. It counts from trusted origins only.',
  },
  claimToken: bearer('The token of the claim URL, from its fragment.'),
  challengeToken: bearer('The phone’s token of the order, from `claimOrder` or `redeemHandOver`.'),
  challengeTokenInUrl: {
    type: 'apiKey',
    in: 'query',
    name: 'challengeToken',
    description: 'The same in the URL, for callers that cannot set headers. The service does not log it; others may.',
  },
  desktopToken: bearer('The desktop’s token of the order, from `startOrder`.'),
  startKey: bearer('One of the service’s start keys, if it has any. Only the application’s backend has them.'),
}

const aboutAll = `Wallet-signature sign-in, and approval of orders on another device. These are the REST calls; the same calls exist over
Connect, gRPC and gRPC-Web.

Times are epoch milliseconds. Keys and signatures are hex: lower case in answers, either case in requests. Fields of a request
that are not known are ignored, and later releases can add fields to answers. A failure is an \`Error\`; what to do about it
stands with its reason.`

async function packageVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** The text of gen/openapi.json. */
export async function openApiText(): Promise<string> {
  return `${JSON.stringify(await openApiDocument(), undefined, 2)}\n`
}

if (import.meta.main) await writeFile(new URL('../gen/openapi.json', import.meta.url), await openApiText())
